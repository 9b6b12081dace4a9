// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/cluster_account.h"

#include <algorithm>

#include "controllers/cluster/owners.h"
#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/gpu_annotations.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/gpushare_gpus.h"
#include "controllers/policy/placement.h"
#include "controllers/policy/reservation_keeper.h"
#include "controllers/policy/waited.h"
#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr std::int64_t kReserveAfterSeconds = 15;  // That a gang has waited.

// No sign of more pods like it: a DaemonSet's pod is made for its own node, and a job has one launcher.
bool IsOneOff(const kube::Pod& pod) {
  const kube::OwnerReference* controller = pod.metadata.Controller();
  return (controller && controller->kind == "DaemonSet") || pod.metadata.Label(kRoleLabel) == "launcher";
}

// The node on which a pod holds room; empty: none. A pod that has ended holds nothing, though it still names its node.
// For a foreign pod or a launcher that waits for others to leave, the scheduler keeps the room on its nominated node.
std::string_view HeldNode(const kube::Pod* pod) {
  if (pod == nullptr || HasEnded(*pod)) return {};
  if (!pod->spec.node_name.empty()) return pod->spec.node_name.view();
  const bool waits = pod->spec.scheduling_gates.empty() && !pod->metadata.is_being_deleted() &&
                     (OwnerOf(*pod).empty() || IsOneOff(*pod));
  return waits ? pod->status.nominated_node_name.view() : std::string_view();
}

// Requests change when a pod is resized in place; of which GPU its part is may be told late.
bool AskForTheSame(const kube::Pod& a, const kube::Pod& b) {
  const auto is_same = [&](const char* annotation) {
    return a.metadata.Annotation(annotation) == b.metadata.Annotation(annotation);
  };
  return a.spec.containers == b.spec.containers && a.spec.init_containers == b.spec.init_containers &&
         a.spec.resources == b.spec.resources && is_same(api::kHeldGpusAnnotation) &&
         is_same(api::kPlannedGpuAnnotation) && is_same(api::kMemoryMiBAnnotation) && is_same(api::kGpushareIndex);
}

// With the GPUs of which it has any, if they are known.
Resources HoldingOf(const kube::Pod& pod, const PodDevices* devices) {
  Resources request = RequestOf(pod, devices);
  if (!AsksForGpuParts(request)) return request;
  std::string gpus = GpusOf(pod);
  // Before a pod is bound, nobody but its user has written that.
  const bool may_be_assumed = !pod.spec.node_name.empty() && request.Extended(api::kGpuMemResource) > 0;
  if (gpus.empty() && may_be_assumed) gpus = AssumedGpuOf(pod);
  return OnGpu(std::move(request), gpus);
}

// The scheduler may bind it now.
bool IsWaiting(const kube::Pod& pod) {
  return !HasEnded(pod) && !pod.metadata.is_being_deleted() && pod.spec.node_name.empty() &&
         pod.spec.scheduling_gates.empty();
}

// It has no owner and does not wait for a node: more of its kind may come.
bool IsPresent(const kube::Pod* pod) {
  return pod && !HasEnded(*pod) && !pod->metadata.is_being_deleted() && !IsWaiting(*pod) && OwnerOf(*pod).empty() &&
         !IsOneOff(*pod);
}

// The scheduler found no place for it, and tries again only when something changes. A pod whose gate was just lifted
// still has the condition of a gated one.
bool IsUnschedulable(const kube::Pod& pod) {
  const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
  return scheduled && !scheduled->is_true() && scheduled->reason != "SchedulingGated";
}

// A change that a pod which waits does not wait otherwise for: an annotation, another try of the scheduler.
bool WaitsAsBefore(const kube::Pod* before, const kube::Pod& after) {
  return before && before->metadata.uid == after.metadata.uid && IsWaiting(*before) && before->spec == after.spec &&
         before->metadata.labels == after.metadata.labels && OwnerOf(*before) == OwnerOf(after) &&
         IsOneOff(*before) == IsOneOff(after) && IsUnschedulable(*before) == IsUnschedulable(after) &&
         before->status.nominated_node_name == after.status.nominated_node_name;
}

}  // namespace

std::int64_t ClusterAccount::UnixSeconds() const { return grus::UnixSeconds(kube::Time{clock_.WallNow()}); }

ClusterAccount::ClusterAccount(kube::Informer& nodes, kube::Informer& pods, const kube::Clock& clock,
                               Nominations nominations, PodVolumes* volumes, PodDevices* devices,
                               kube::Registry* metrics)
    : clock_(clock),
      nominations_(nominations),
      nodes_(nodes),
      pods_(pods),
      volumes_(volumes),
      devices_(devices),
      pods_by_device_key_(pods.AddIndex(DeviceKeysOf)),
      planner_(ledger_, kReserveAfterSeconds, &queues_),
      metrics_(metrics, queues_, clock) {
  ledger_.Observe(&queues_);
  nodes.AddHandler([this](const kube::Change& change, bool) { OnNode(change); });
  CountAlso(pods);
  if (metrics != nullptr) {
    metrics->AddGaugeFamily("grus_pool_free_gpus",
                            "GPUs that nobody holds, by pool: on empty nodes, and on nodes that are partly used.",
                            {"pool", "nodes"}, [this] {
                              std::lock_guard lock(mutex_);
                              return metrics_.FreeGpus();
                            });
  }
  if (devices == nullptr) return;
  devices->OnNode([this](const std::string& node) { OnDevices(node); });
  devices->OnNeeds([this](const std::string& key) { OnNeeds(key); });
}

void ClusterAccount::CountAlso(kube::Informer& far_pods) {
  far_pods.AddHandler([this](const kube::Change& change, bool is_first_list) { OnPod(change, is_first_list); });
}

void ClusterAccount::OnVolumeClaim(std::function<void(const kube::ObjectKey& claim)> callback) {
  if (volumes_ != nullptr) volumes_->OnVolumeClaim(std::move(callback));
}

void ClusterAccount::OnNode(const kube::Change& change) {
  const auto* before = static_cast<const kube::Node*>(change.before.get());
  const auto* after = static_cast<const kube::Node*>(change.after.get());
  if (before && after && before->spec == after->spec && before->status.allocatable == after->status.allocatable &&
      before->status.capacity == after->status.capacity && before->metadata.labels == after->metadata.labels &&
      before->metadata.Annotation(api::kGpuInventoryAnnotation) ==
          after->metadata.Annotation(api::kGpuInventoryAnnotation) &&
      before->metadata.is_being_deleted() == after->metadata.is_being_deleted()) {
    return;  // A heartbeat.
  }
  Apply([&](Effects& effects) {
    if (after) ledger_.PutNode(StateOf(*after, devices_));  // Under the lock: the last thread has seen all changes.
    else ledger_.RemoveNode(before->metadata.name);
    effects.has_freed = true;
  });
}

void ClusterAccount::Apply(const std::function<void(Effects&)>& change) {
  Effects effects;
  {
    std::lock_guard lock(mutex_);
    change(effects);
  }
  Tell(effects);
}

void ClusterAccount::NoteWaitingLocked(const kube::Pod* before, const kube::Pod* after, bool is_first_list,
                                       Effects& effects) {
  const kube::TimePoint now = clock_.Now();
  const bool was_present = IsPresent(before), is_present = IsPresent(after);
  if (was_present != is_present || (is_present && before->spec != after->spec)) {
    const ShapePtr had = was_present ? TakePresentLocked(*before) : nullptr;
    const ShapePtr has = is_present ? NeedOfLocked(*after) : nullptr;
    if (has && after->spec.resource_claims) present_[std::string(after->metadata.uid)] = has;
    if (had && had != has) competition_.RemovePresent(had, now);
    if (has && had != has) competition_.AddPresent(has);
  }
  if (before && (!after || before->metadata.uid != after->metadata.uid)) {
    competition_.Remove(std::string(before->metadata.uid), now);
  }
  if (!after) return;
  const std::string uid(after->metadata.uid);
  if (IsWaiting(*after)) {
    if (!WaitsAsBefore(before, *after)) PutWaitingLocked(*after, effects);
    return;
  }
  const bool was_seen = competition_.Remove(uid, now) || (before && !HeldNode(before).empty());
  const std::string owner = OwnerOf(*after);
  // Of pods that ran before this process started, nobody knows which had a place.
  if (!was_seen && !is_first_list && !owner.empty() && !IsOneOff(*after) && !HeldNode(after).empty()) {
    competition_.AddBound(owner, NeedOfLocked(*after), now);
  }
}

void ClusterAccount::PutWaitingLocked(const kube::Pod& pod, Effects& effects) {
  const kube::TimePoint now = clock_.Now();
  const ShapePtr need = NeedOfLocked(pod);
  WaitingPod waiting{OwnerOf(pod),          need,          pod.spec.priority.value_or(0),
                     !IsUnschedulable(pod), IsOneOff(pod), !pod.status.nominated_node_name.empty()};
  if (!competition_.Put(std::string(pod.metadata.uid), std::move(waiting), now)) return;
  for (auto& [gang, knows] : placed_) {
    if (knows || !competition_.Suits(need, gang) || !competition_.Threatens(gang, now)) continue;
    knows = true;
    effects.urgent.push_back(gang);
  }
}

// The shape that the pod was counted with: its device claims may ask for something else by now.
ShapePtr ClusterAccount::TakePresentLocked(const kube::Pod& pod) {
  if (pod.spec.resource_claims) {
    if (const auto counted = present_.extract(std::string(pod.metadata.uid))) return counted.mapped();
  }
  return NeedOfLocked(pod);
}

void ClusterAccount::OnPod(const kube::Change& change, bool is_first_list) {
  const auto* before = static_cast<const kube::Pod*>(change.before.get());
  const auto* after = static_cast<const kube::Pod*>(change.after.get());
  const std::string_view held = HeldNode(before), holds = HeldNode(after);
  const bool is_same_pod = before && after && before->metadata.uid == after->metadata.uid;
  const bool is_same_holding = held == holds && (holds.empty() || (is_same_pod && AskForTheSame(*before, *after) &&
                                                                   before->metadata.labels == after->metadata.labels));
  Apply([&](Effects& effects) {
    NoteWaitingLocked(before, after, is_first_list, effects);
    // Of a pod that is being bound, the GPU that it was given counts, whatever its user writes meanwhile.
    const bool is_nominated = is_same_pod && !holds.empty() && held == holds && after->spec.node_name.empty();
    const Resources* const given = is_nominated ? ledger_.RequestOf(std::string(after->metadata.uid)) : nullptr;
    if (!is_same_holding && !(given != nullptr && NamesGpu(*given))) {
      effects.has_used = true;
      effects.has_freed = !held.empty();
      // Bind() replaces the holding of a pod that now holds another node or other resources.
      if (!held.empty() && !(is_same_pod && !holds.empty())) {
        ledger_.Release(std::string(before->metadata.uid));
        KeepForLauncherLocked(*before, after);
      }
      if (!holds.empty()) BindLocked(*after, holds, HoldingOf(*after, devices_));
    }
    // PodPlacer counts pods before they are seen bound, and some never are.
    const bool is_over = before && held.empty() && (!is_same_pod || HasEnded(*after));
    if (is_over && ledger_.RequestOf(std::string(before->metadata.uid)) != nullptr) {
      ledger_.Release(std::string(before->metadata.uid));
      effects.has_used = effects.has_freed = true;
    }
    if (after && after->metadata.is_being_deleted()) ledger_.NoteEnding(std::string(after->metadata.uid));
  });
}

void ClusterAccount::BindLocked(const kube::Pod& pod, std::string_view node, const Resources& request) {
  // Of those with parts of GPUs, the ledger knows also where such pods may run.
  const ShapePtr footprint = AsksForGpuParts(request) ? NeedOfLocked(pod) : shapes_.Share(FootprintOf(pod));
  std::string owner = OwnerOf(pod);
  if (owner.empty()) owner = OwnerOfOthers(pod.metadata.ns);
  ledger_.Bind(std::string(pod.metadata.uid), std::string(node), request, owner, footprint);
}

void ClusterAccount::CountLocked(const kube::Pod& pod) {
  const std::string_view node = HeldNode(&pod);
  if (!node.empty()) BindLocked(pod, node, HoldingOf(pod, devices_));
}

void ClusterAccount::CatchUpWith(const std::vector<std::shared_ptr<const kube::Pod>>& pods) {
  Apply([&](Effects& effects) {
    for (const auto& pod : pods) {
      const std::string uid(pod->metadata.uid);
      if (HeldNode(pod.get()).empty() || ledger_.RequestOf(uid)) continue;
      // What the cache still has is released by an event that is yet to come; anything else would never be.
      const auto now = pods_.Get<kube::Pod>(pod->metadata.Key());
      if (!now || now->metadata.uid != pod->metadata.uid || HeldNode(now.get()).empty()) continue;
      CountLocked(*now);
      effects.has_used = true;
    }
  });
}

void ClusterAccount::RecountLocked(const kube::Pod& pod, Effects& effects) {
  const std::string uid(pod.metadata.uid);
  const std::string_view node = HeldNode(&pod);
  // A pod that is not accounted for yet will be, with what is known now.
  if (const Resources* held = ledger_.RequestOf(uid); held && !node.empty()) {
    const Resources request = HoldingOf(pod, devices_);
    // Until the GPUs of its parts are told, they are taken for those of its place.
    const bool tells_gpu = AsksForClaimedGpus(request) && NamesGpu(request) && request != *held;
    if (tells_gpu || !AreAlikeWithoutGpu(request, *held)) BindLocked(pod, node, request);
  }
  const kube::TimePoint now = clock_.Now();
  const ShapePtr need = NeedOfLocked(pod), waiting = competition_.NeedOf(uid);
  if (const auto known = present_.find(uid); known != present_.end() && known->second != need) {
    competition_.RemovePresent(known->second, now);
    competition_.AddPresent(known->second = need);
  }
  if (!waiting || waiting == need || !IsWaiting(pod)) return;
  competition_.Remove(uid, now);  // PutWaitingLocked() then takes it as new.
  PutWaitingLocked(pod, effects);
}

void ClusterAccount::KeepForLauncherLocked(const kube::Pod& before, const kube::Pod* after) {
  if (!keeps_room_of_lost_launchers_) return;
  // A pod that is also labelled as a member of a gang is no launcher: nobody would give its room back.
  const kube::ObjectKey job{before.metadata.ns, std::string(before.metadata.Label(kJobNameLabel))};
  const std::string owner = OwnerOf(before);
  if (before.spec.node_name.empty() || job.name.empty() || owner != LauncherOwner(job.ToString())) return;
  if ((after && after->status.phase == "Succeeded") || !ledger_.PlacesOf(owner).empty()) return;
  ledger_.AddPlace(owner, std::string(before.spec.node_name), NeedOfLocked(before));
}

ShapePtr ClusterAccount::NeedOfLocked(const kube::Pod& pod) {
  return shapes_.Share(AloneOf(grus::ShapeOf(pod, devices_)));
}

ShapePtr ClusterAccount::ShapeOf(const kube::Pod& pod, VolumeLimits volumes) {
  PodShape shape = grus::ShapeOf(pod, devices_);
  shape.volume_affinity = std::move(volumes.affinity);
  std::lock_guard lock(mutex_);
  return shapes_.Share(std::move(shape));
}

bool ClusterAccount::HasNode(const std::string& name) const {
  std::lock_guard lock(mutex_);
  const LedgerNode* node = ledger_.FindNode(name);
  return node && node->is_known;
}

int ClusterAccount::MostDevicesOnANode() const {
  std::lock_guard lock(mutex_);
  std::int64_t most = 0;
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr) continue;
    const Resources& has = node->state.allocatable;
    const std::string_view device = has.Accelerator();
    if (!IsGpuPart(device)) most = std::max(most, has.Extended(device));
  }
  return static_cast<int>(std::min<std::int64_t>(most, 1024));
}

std::string ClusterAccount::HostnameOf(const std::string& node) const {
  std::lock_guard lock(mutex_);
  const LedgerNode* found = ledger_.FindNode(node);
  return found ? std::string(found->state.labels.Get(kHostnameLabel)) : std::string();
}

void ClusterAccount::KeepPlaces(const std::string& owner, const ShapePtr& wanted, int count) {
  Apply([&](Effects& effects) {
    const std::size_t before = ledger_.PlacesOf(owner).size();
    const ShapePtr shape = InPoolLocked(owner, wanted);
    count = LimitPlacesLocked(owner, shape->request, count);
    const PoolPlacement in_pool =
        queues_.is_active() ? queues_.PlacementIn(queues_.HomeOf(owner)) : PoolPlacement::kBinPack;
    const PoolPlacement placement = shape->placement.value_or(in_pool);
    const bool are_on_few_nodes = Packs(placement) && !HasConstraints(ledger_, {shape});
    if (!are_on_few_nodes) KeepChosenPlaces(ledger_, owner, shape, count, placement);
    else ledger_.KeepPlaces(owner, *shape, count);
    effects.has_used = ledger_.PlacesOf(owner).size() != before;
    effects.has_freed = ledger_.PlacesOf(owner).size() < before;
  });
}

Room ClusterAccount::RoomFor(const std::string& owner, const ShapePtr& wanted, int at_most) {
  std::lock_guard lock(mutex_);
  const ShapePtr shape = InPoolLocked(owner, wanted);
  const ReservedRoom* may_use = planner_.reservations().RoomOf(owner);
  Room room = ledger_.RoomFor(owner, *shape, at_most, may_use);
  if (HasConstraints(ledger_, {shape})) {
    // Its own places count as taken: see how many more fit beside them.
    const int planned = static_cast<int>(ledger_.PlacesOf(owner).size());
    const std::size_t more = PlacesFor(ledger_, shape, at_most - planned, may_use, PoolPlacement::kBinPack).size();
    room.copies = std::min(room.copies, planned + static_cast<int>(more));
  }
  if (queues_.is_active()) LimitByQueueLocked(owner, shape->request, room);
  return room;
}

std::vector<Place> ClusterAccount::PlacesOf(const std::string& gang) const {
  std::lock_guard lock(mutex_);
  return ledger_.PlacesOf(gang);
}

void ClusterAccount::AddPlace(const std::string& gang, const Place& place) {
  std::lock_guard lock(mutex_);
  ledger_.AddPlace(gang, place.node, place.shape, place.gpu);
}

void ClusterAccount::SetPlaces(const std::string& gang, const std::vector<Place>& places) {
  Apply([&](Effects& effects) {
    if (places.empty()) placed_.erase(gang);
    else placed_.try_emplace(gang);
    // A pass only drops places; binds may have ended others meanwhile.
    if (ledger_.PlacesOf(gang).size() <= places.size()) return;
    ledger_.DropPlaces(gang);
    for (const Place& place : places) ledger_.AddPlace(gang, place.node, place.shape, place.gpu);
    effects.has_freed = true;
  });
}

void ClusterAccount::DropPlacesThatNoLongerFit(const std::string& gang) {
  Apply([&](Effects& effects) {
    const std::vector<Place> places = ledger_.PlacesOf(gang);
    ledger_.DropPlaces(gang);
    for (const Place& place : places) {
      const LedgerNode* node = ledger_.FindNode(place.node);
      if (!node || !node->CanHold(*place.shape, node->used)) continue;
      ledger_.AddPlace(gang, place.node, place.shape, place.gpu);
    }
    const std::size_t left = ledger_.PlacesOf(gang).size();
    if (left == 0) placed_.erase(gang);
    if (left == places.size()) return;
    effects.urgent = {gang};  // Its reconciler finds another place, or drops the rest.
    effects.has_freed = true;
  });
}

}  // namespace grus
