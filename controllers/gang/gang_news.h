// SPDX-License-Identifier: Apache-2.0
// What a change of a pod is worth to its gang, and which other changes matter to it. Pure functions.
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
// label at all belongs to the group with the empty name, which cannot exist: the pass for it tells the pod so.
std::optional<kube::ObjectKey> GroupOfPod(const kube::Kind& kind, const kube::Pod& pod);

// "namespace/name" of the volume claims on which it depends where a member without a node can run. `kind`: the group's.
std::vector<std::string> VolumeClaimsAwaitedBy(const kube::Kind& kind, const kube::Pod& pod);

}  // namespace grus
