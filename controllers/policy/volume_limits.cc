// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/volume_limits.h"

#include <algorithm>

namespace grus {
namespace {

constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";     // Set once claim and volume are both bound.
constexpr char kOldClass[] = "volume.beta.kubernetes.io/storage-class";  // Still wins over spec.storageClassName.

bool IsBound(const kube::PersistentVolumeClaim& claim) {
  const auto& annotations = claim.metadata.annotations;
  return !claim.spec.volume_name.empty() && annotations.find(kBindCompleted) != annotations.end();
}

std::string ProblemOf(const ClaimFacts& facts) {
  if (facts.claim == nullptr) return "does not exist";
  const kube::PersistentVolumeClaim& claim = *facts.claim;
  if (claim.metadata.is_being_deleted()) return "is being deleted";
  if (claim.status.phase == "Lost") return "has lost its volume";
  if (IsBound(claim)) {
    if (facts.volume != nullptr || !facts.are_volumes_known) return {};
    return "is bound to PersistentVolume " + std::string(claim.spec.volume_name) + ", which does not exist";
  }
  const bool is_delayed = claim.spec.volume_name.empty() && facts.storage_class != nullptr &&
                          facts.storage_class->volume_binding_mode == "WaitForFirstConsumer";
  const bool is_unknown = !facts.are_classes_known && !ClassOf(claim).empty();
  return is_delayed || is_unknown ? std::string() : "is not bound to a volume yet";
}

}  // namespace

std::string ClassOf(const kube::PersistentVolumeClaim& claim) {
  const auto& annotations = claim.metadata.annotations;
  const auto old = annotations.find(kOldClass);
  return std::string(old != annotations.end() ? old->second : claim.spec.storage_class_name);
}

void AddClaim(VolumeLimits& limits, const std::string& name, const ClaimFacts& facts) {
  if (const std::string problem = ProblemOf(facts); !problem.empty()) {
    if (limits.problem.empty()) limits.problem = "PersistentVolumeClaim " + name + " " + problem;
    return;
  }
  if (!IsBound(*facts.claim) || facts.volume == nullptr || !facts.volume->spec.node_affinity.required) return;
  // Volumes of one zone have equal selectors: one is enough.
  const kube::NodeSelector& where = *facts.volume->spec.node_affinity.required;
  if (std::ranges::find(limits.affinity, where) == limits.affinity.end()) limits.affinity.push_back(where);
}

std::vector<std::string> VolumeClaimsOf(const kube::Pod& pod) {
  std::vector<std::string> names;
  for (const kube::Volume& volume : pod.spec.volumes) {
    if (volume.claim) {
      names.push_back(volume.claim->claim_name);
    } else if (volume.ephemeral && !pod.metadata.name.empty()) {
      names.push_back(pod.metadata.name + "-" + volume.name.str());
    }
  }
  return names;
}

}  // namespace grus
