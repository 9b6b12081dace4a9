// SPDX-License-Identifier: Apache-2.0
// The cluster ledger and the planner of gangs, kept up to date by the node and pod caches: the one account of who holds
// what, shared by all controllers. Thread-safe: one lock around ledger and planner, so that two reconcile threads do
// not count on the same free GPU.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/account_callbacks.h"
#include "controllers/cluster/account_metrics.h"
#include "controllers/cluster/competition.h"
#include "controllers/cluster/nominations.h"
#include "controllers/cluster/pod_devices.h"
#include "controllers/cluster/pod_volumes.h"
#include "controllers/policy/gang_planner.h"
#include "controllers/policy/size_planner.h"
#include "controllers/queues/queue_setup.h"

namespace grus {

class ClusterAccount : public AccountCallbacks {
 public:
  // Registers handlers: stop and join both informers before this goes. `volumes` and `devices` may be null: placement
  // then ignores where a pod's volumes and claimed devices are. `metrics` may be null; read them only while this lives.
  ClusterAccount(kube::Informer& nodes, kube::Informer& pods, const kube::Clock& clock,
                 Nominations nominations = Nominations::kAuto, PodVolumes* volumes = nullptr,
                 PodDevices* devices = nullptr, kube::Registry* metrics = nullptr);

  void CountAlso(kube::Informer& far_pods);  // Of namespaces that are not managed. As `pods`.
  void OnVolumeClaim(std::function<void(const kube::ObjectKey& claim)> callback);
  // Keeps the room of a lost launcher until its job's next pass. For a controller of jobs.
  void KeepRoomOfLostLaunchers() { keeps_room_of_lost_launchers_ = true; }
  void SetResizeSeconds(double seconds) { sizes_.SetResizeSeconds(seconds); }  // Before anything is planned.
  // Replaces all queues and pools, and plans anew. Jobs and gangs that run go on.
  void SetQueues(QueueSetup setup);
  QueuesReport Queues();  // Plans, if anything changed, and says what everybody uses and waits for.
  // What the queues must know of a job or gang. Call it before Ask(), and in each pass while it runs.
  void PutHolder(const std::string& owner, const Holder& holder);
  void RemoveHolder(const std::string& owner);                           // It is gone, or has ended.
  std::optional<RuntimeLimit> RuntimeLimitOf(const std::string& owner);  // nullopt: its queue sets none.
  // Workers that a job should have, by what GPUs are worth in it; nullopt: all it can get. RoomFor() keeps to it.
  std::optional<int> TargetOf(const std::string& owner);
  std::optional<YieldNotice> YieldOf(const std::string& owner) const;             // nullopt: it may keep what it has.
  void NoteResize(const std::string& owner, int from, int to);                    // A running job now has `to` workers.
  void NotifyPlaced(const std::string& gang) const { Tell({.urgent = {gang}}); }  // Calls OnStanding(): urgent.
  bool HasNode(const std::string& name) const;
  int MostDevicesOnANode() const;
  std::string OnlyPoolFor(const PodShape& shape) const;   // Whose nodes accept such pods; empty: none, or several.
  std::string HostnameOf(const std::string& node) const;  // Its label kubernetes.io/hostname; empty: none is known.
  // Counts bound pods whose events are still on their way. Whoever has seen them bound will give their places up.
  void CatchUpWith(const std::vector<std::shared_ptr<const kube::Pod>>& pods);
  void KeepPlaces(const std::string& owner, const ShapePtr& wanted, int count);
  Room RoomFor(const std::string& owner, const ShapePtr& wanted, int at_most);
  // The gang for which free room is reserved that the scheduler could give to such a pod of `owner`; empty: none.
  std::string ReservedFrom(const std::string& owner, const PodShape& shape) const;

  // One shape for all pods that are alike to placement. `volumes`: from VolumesOf().
  ShapePtr ShapeOf(const kube::Pod& pod, VolumeLimits volumes = {});
  VolumeLimits VolumesOf(const kube::Pod& pod) const;

  std::vector<Place> PlacesOf(const std::string& gang) const;                 // For its pods that are not bound yet.
  void AddPlace(const std::string& gang, const Place& place);                 // One found in the cluster at start.
  void SetPlaces(const std::string& gang, const std::vector<Place>& places);  // Keeps only these.
  // Drops those of its places whose node no longer has room for them or no longer accepts such pods.
  void DropPlacesThatNoLongerFit(const std::string& gang);
  void Enqueue(const GangDemand& demand);  // Queues it for the first Ask().
  // Queues the demand and plans. PlacesOf() has what is placed from then on.
  GangStanding Ask(const GangDemand& demand);
  void StopAsking(const std::string& gang);  // Its places stay.
  void Forget(const std::string& gang);      // Its places go, too. What is known of its end stays.
  void SetEnd(const std::string& gang, std::optional<std::int64_t> unix_seconds);
  // When this gang should ask again even if nothing changes; nullopt: never.
  std::optional<kube::Duration> TimeUntilChange(const std::string& gang) const;
  std::string AnyWaiting() const;  // Any waiting gang: its pass plans for all. Empty: none waits.
  // Whether a gang that `counts` waits, or a pod of no owner that asks for an accelerator. `counts` runs with the lock.
  bool IsAnyoneWaiting(const std::function<bool(const std::string& gang)>& counts) const;

  // Whether the places of `gang` must be protected: they name GPUs; competition threatens one; pods of another shape
  // may be bound there (those alike only swap places); or its own pods could take room that is kept for another gang or
  // its launcher.
  bool MustProtect(const std::string& gang);
  // Whether it shares the devices of a node. The scheduler would spread what the planner packed.
  bool SharesNodes(const std::string& gang) const;
  // Whether members are pinned to their nodes rather than nominated.
  bool Pins() const { return nominations_ == Nominations::kPin || !are_honoured_.load(); }
  void SetNominationsHonoured(bool are_honoured) { are_honoured_ = are_honoured; }  // Assumed at first.
  // Whether the pods of a gang of that priority can be given to the scheduler, which has kept their places since
  // `since`. A pod that it began to schedule before may still take one, for 20 s at most.
  Safety Check(const std::string& gang, const std::vector<Place>& places, int priority, kube::TimePoint since) const;

 private:
  void Apply(const std::function<void(Effects&)>& change);  // With the lock held; then Tell(), without it.
  std::int64_t UnixSeconds() const;                         // Now.
  // Plans, and notes who is concerned. `asking`: who gets the answer, and need not be told.
  void PlanLocked(const std::string& asking, Effects& effects);
  void PlanSizesLocked(Effects& effects);
  void LimitByQueueLocked(const std::string& owner, const Resources& request, Room& room);
  int LimitPlacesLocked(const std::string& owner, const Resources& request, int count);
  ShapePtr InPoolLocked(const std::string& owner, const ShapePtr& shape);  // In the pool that the owner is in, if any.
  void OnNode(const kube::Change& change);
  void OnPod(const kube::Change& change, bool is_first_list);
  void OnDevices(const std::string& node);
  void OnNeeds(const std::string& key);
  // Makes urgent the gangs whose places the pod threatens now and did not before.
  void NoteWaitingLocked(const kube::Pod* before, const kube::Pod* after, bool is_first_list, Effects& effects);
  // The same for a pod whose device claims may have changed; accounts for the pod anew.
  void RecountLocked(const kube::Pod& pod, Effects& effects);
  void PutWaitingLocked(const kube::Pod& pod, Effects& effects);
  void BindLocked(const kube::Pod& pod, std::string_view node, const Resources& request);
  ShapePtr NeedOfLocked(const kube::Pod& pod);
  ShapePtr TakePresentLocked(const kube::Pod& pod);
  void KeepForLauncherLocked(const kube::Pod& before, const kube::Pod* after);
  void CountLocked(const kube::Pod& pod);  // If it holds room on a node.
  friend class PodPlacer;                  // What a scheduler asks, pod by pod.

  const kube::Clock& clock_;
  const Nominations nominations_;
  const kube::Informer &nodes_, &pods_;
  PodVolumes* const volumes_;
  const PodDevices* const devices_;
  const kube::Store::IndexId pods_by_device_key_;
  std::atomic<bool> are_honoured_{true};
  std::once_flag has_begun_;  // Planning.
  bool keeps_room_of_lost_launchers_ = false;

  mutable std::mutex mutex_;  // Guards what follows.
  bool has_planned_ = false;  // Before, what earlier processes promised may not be in the ledger yet.
  ClusterLedger ledger_;
  ClusterQueues queues_{ledger_};
  GangPlanner planner_;
  SizePlanner sizes_{ledger_, queues_};
  std::int64_t sized_at_ = 0;  // When a start last asked for sizes.
  AccountMetrics metrics_;
  ShapePool shapes_;
  Competition competition_{ledger_};
  std::unordered_map<std::string, ShapePtr> present_;  // By UID: the need that a pod with device claims counts with.
  std::set<std::string> waiting_;                      // Gangs by key.
  std::map<std::string, bool> placed_;                 // Likewise; true: it knows that its places are threatened.
};

}  // namespace grus
