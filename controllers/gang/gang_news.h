// SPDX-License-Identifier: Apache-2.0
// How much a change of a pod matters to its gang, and whose changes do besides. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"
#include "controllers/frame/key_feed.h"

namespace grus {

// Either may be null: created, or gone. kSoon: a count in the status.
News NewsOfMember(const kube::Pod* before, const kube::Pod* after);

// The group of `kind` that a pod belongs to, as far as its labels say; nullopt: none. A pod that has the gate and no
// label at all is of the group without a name, which nobody can make: so it can be told.
std::optional<kube::ObjectKey> GroupOfPod(const kube::Kind& kind, const kube::Pod& pod);

// "namespace/name" of the volume claims on which it depends where a member without a node can run. `kind`: the group's.
std::vector<std::string> VolumeClaimsAwaitedBy(const kube::Kind& kind, const kube::Pod& pod);

}  // namespace grus
