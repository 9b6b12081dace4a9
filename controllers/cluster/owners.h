// SPDX-License-Identifier: Apache-2.0
// Labels by which pods belong to objects of grus, and what such an owner is called in the ledger. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"

namespace grus {

inline constexpr char kJobNameLabel[] = "ai.centauruscloud.io/job-name";
inline constexpr char kRoleLabel[] = "ai.centauruscloud.io/role";

// The job that a pod belongs to, as far as its labels say.
std::optional<kube::ObjectKey> JobOf(const kube::ObjectMeta& pod);
// For Informer::AddIndex() on pods, where all share it: the key of its job, as ObjectKey::ToString() says it.
std::vector<std::string> JobKeysOf(const kube::Object& pod);

// The group of `kind` (a PodGroup) that a pod belongs to, as far as its labels say; empty: none.
std::string_view GroupNameOf(const kube::Kind& kind, const kube::ObjectMeta& pod);
// A group's key in the ledger: "namespace/name"; of scheduling.sigs.k8s.io with the API group in front.
std::string GangKey(const kube::Kind& kind, const kube::ObjectKey& group);
// The other way round; nullopt: it is the key of another kind's.
std::optional<kube::ObjectKey> GroupOfGang(const kube::Kind& kind, std::string_view gang);

// A job's launcher is an owner of its own, beside the job whose workers they are: their places end with other pods.
std::string LauncherOwner(const std::string& job);

// On a member that may go to this node alone: nominations are not honoured.
inline constexpr char kGangPinnedAnnotation[] = "scheduling.ai.centauruscloud.io/pinned-to";
// As the pod was planned for: without the pin that came later.
kube::PodSpec WithoutPin(const kube::Pod& pod);

// Whose places a bound pod ends: those of a gang, or of the job whose worker or launcher it is. Empty: nobody's.
std::string OwnerOf(const kube::Pod& pod);

}  // namespace grus
