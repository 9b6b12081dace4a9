// SPDX-License-Identifier: Apache-2.0
// How urgent a change of a pod is to its gang, and which group and volume claims a pod depends on. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"
#include "controllers/frame/key_feed.h"

namespace grus {

// Either may be null: the pod was created, or is gone. kSoon: only a count in the status changes.
News NewsOfMember(const kube::Pod* before, const kube::Pod* after);

// The group of `kind` that a pod belongs to, as far as its labels say; nullopt: none. A pod that has the gate and no
// label at all belongs to the group with the empty name, which cannot exist: the pass for it tells the pod so.
std::optional<kube::ObjectKey> GroupOfPod(const kube::Kind& kind, const kube::Pod& pod);

// "namespace/name" of the volume claims that decide where a member without a node can run. `kind`: the group's.
std::vector<std::string> VolumeClaimsAwaitedBy(const kube::Kind& kind, const kube::Pod& pod);

}  // namespace grus
