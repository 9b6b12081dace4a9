// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/pod_volumes.h"

namespace grus {
namespace {

using kube::ObjectKey;
using kube::PersistentVolume;
using kube::PersistentVolumeClaim;

// Placement does not read all that changes in a claim: not its owners, for example.
bool IsSame(const PersistentVolumeClaim& a, const PersistentVolumeClaim& b) {
  return a.metadata.uid == b.metadata.uid && a.spec == b.spec && a.status == b.status &&
         a.metadata.annotations == b.metadata.annotations &&
         a.metadata.is_being_deleted() == b.metadata.is_being_deleted();
}

}  // namespace

PodVolumes::PodVolumes(kube::Informer& claims, kube::Informer& volumes, kube::Informer& classes)
    : claims_(claims), volumes_(volumes), classes_(classes) {
  claims.AddHandler([this](const kube::Change& change, bool) {
    const auto* before = static_cast<const PersistentVolumeClaim*>(change.before.get());
    const auto* after = static_cast<const PersistentVolumeClaim*>(change.after.get());
    if (!before || !after || !IsSame(*before, *after)) Tell(change.Any().metadata.Key());
  });
  volumes.AddHandler([this](const kube::Change& change, bool) { TellOfVolume(change); });
  classes.AddHandler([this](const kube::Change& change, bool) { TellOfClass(change); });
}

void PodVolumes::Tell(const ObjectKey& claim) const {
  for (const auto& tell : on_volume_claim_) tell(claim);
}

void PodVolumes::TellOfVolume(const kube::Change& change) const {
  const auto* before = static_cast<const PersistentVolume*>(change.before.get());
  const auto* after = static_cast<const PersistentVolume*>(change.after.get());
  if (before && after && before->spec == after->spec) return;
  const kube::ClaimReference& claim = (after ? after : before)->spec.claim_ref;
  if (!claim.name.empty()) Tell({claim.ns, claim.name});
}

// Classes are rarely created, and only claims that wait for a volume depend on them.
void PodVolumes::TellOfClass(const kube::Change& change) const {
  if (change.before && change.after) return;
  for (const auto& claim : claims_.List<PersistentVolumeClaim>()) {
    if (claim->spec.volume_name.empty() && ClassOf(*claim) == change.Any().metadata.name) Tell(claim->metadata.Key());
  }
}

VolumeLimits PodVolumes::LimitsOf(const kube::Pod& pod) const {
  VolumeLimits limits;
  if (pod.spec.volumes.empty() || !claims_.HasList()) return limits;
  for (const std::string& name : VolumeClaimsOf(pod)) {
    const ObjectKey key{pod.metadata.ns, name};
    const auto claim = claims_.Get<PersistentVolumeClaim>(key);
    const auto volume = claim ? volumes_.Get<PersistentVolume>({"", claim->spec.volume_name}) : nullptr;
    const auto storage_class = claim ? classes_.Get<kube::StorageClass>({"", ClassOf(*claim)}) : nullptr;
    AddClaim(limits, key.ToString(),
             {claim.get(), volume.get(), storage_class.get(), volumes_.HasList(), classes_.HasList()});
  }
  return limits;
}

}  // namespace grus
