// SPDX-License-Identifier: Apache-2.0
// Labels that tie pods to objects of grus, and the names of such owners in the ledger. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"
#include "controllers/policy/owner_names.h"

namespace grus {

inline constexpr char kJobNameLabel[] = "ai.centauruscloud.io/job-name";
inline constexpr char kRoleLabel[] = "ai.centauruscloud.io/role";
// On what grus makes and watches, or may delete.
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by", kManagedBy[] = "grus";

// The job that a pod belongs to, as far as its labels say.
std::optional<kube::ObjectKey> JobOf(const kube::ObjectMeta& pod);
// For Informer::AddIndex() on pods, so that all share one index: the key of the job, as by ObjectKey::ToString().
std::vector<std::string> JobKeysOf(const kube::Object& pod);

// The group of `kind` (a PodGroup) that a pod belongs to, as far as its labels say; empty: none.
std::string_view GroupNameOf(const kube::Kind& kind, const kube::ObjectMeta& pod);
// A group's key in the ledger: "namespace/name"; of scheduling.sigs.k8s.io with the API group in front.
std::string GangKey(const kube::Kind& kind, const kube::ObjectKey& group);
// The inverse; nullopt: the gang is of another kind.
std::optional<kube::ObjectKey> GroupOfGang(const kube::Kind& kind, std::string_view gang);

// On a pinned member: the only node that it may go to.
inline constexpr char kGangPinnedAnnotation[] = "scheduling.ai.centauruscloud.io/pinned-to";
// The spec that was planned for: without the pin, which came later.
kube::PodSpec WithoutPin(const kube::Pod& pod);

// The owner whose place ends when the pod is bound: its gang; else its job, or LauncherOwner() of it. Empty: none.
std::string OwnerOf(const kube::Pod& pod);

}  // namespace grus
