// SPDX-License-Identifier: Apache-2.0
// The cluster ledger and the planner of gangs, kept true by the node and pod caches: the one account of who holds what,
// shared by all controllers.
//
// Thread-safe: one lock around ledger and planner, so that two reconcile threads do not count on the same free GPU.
// Callbacks are called without it, on the thread that brought the news.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/competition.h"
#include "controllers/cluster/nominations.h"
#include "controllers/cluster/pod_devices.h"
#include "controllers/cluster/pod_volumes.h"
#include "controllers/policy/gang_planner.h"

namespace grus {

class ClusterAccount {
 public:
  // Registers handlers: stop and join both informers before this goes. `volumes` and `devices` may be null: pods may
  // then run where theirs are not.
  ClusterAccount(kube::Informer& nodes, kube::Informer& pods, const kube::Clock& clock,
                 Nominations nominations = Nominations::kAuto, PodVolumes* volumes = nullptr,
                 PodDevices* devices = nullptr);

  // REQUIRES of these: before the informers start.
  // Called once, before anything is planned: with AddPlace() for what an earlier process has promised, and Enqueue()
  // for what it has begun.
  void BeforePlanning(std::function<void()> callback) { before_planning_.push_back(std::move(callback)); }
  void OnFreed(std::function<void()> callback) { on_freed_.push_back(std::move(callback)); }
  // A gang whose standing changed, by key. Urgent: it was placed, has the reservation, or competition began during its
  // start. Otherwise only its status text is stale.
  void OnStanding(std::function<void(const std::string& gang, bool is_urgent)> callback) {
    on_standing_.push_back(std::move(callback));
  }
  void OnVolumeClaim(std::function<void(const kube::ObjectKey& claim)> callback) {
    if (volumes_ != nullptr) volumes_->OnVolumeClaim(std::move(callback));
  }
  // Of launchers that are lost: somebody looks after their jobs.
  void KeepRoomOfLaunchers() { keeps_room_of_launchers_ = true; }
  void TellPlaced(const std::string& gang) const { Tell({.urgent = {gang}}); }  // It has found its places.
  bool HasNode(const std::string& name) const;
  std::string HostnameOf(const std::string& node) const;  // Its label kubernetes.io/hostname; empty: none is known.
  // `owner` is a job's key as text. See ClusterLedger.
  void KeepPlaces(const std::string& owner, const ShapePtr& shape, int count);
  Room RoomFor(const std::string& owner, const ShapePtr& shape, int at_most);
  // Who waits for free room that is kept for it and that such a pod could take, if the scheduler liked; empty: nobody.
  std::string ReservedFrom(const std::string& owner, const PodShape& shape) const;

  // One shape for all pods that are alike to placement. `volumes` are the pod's, with what is wrong with its devices.
  ShapePtr ShapeOf(const kube::Pod& pod, VolumeLimits volumes = {});
  VolumeLimits VolumesOf(const kube::Pod& pod) const;

  std::vector<Place> PlacesOf(const std::string& gang) const;  // Of those of its pods that are not bound yet.
  void AddPlace(const std::string& gang, const Place& place);  // One that a start finds in the cluster.
  void SetPlaces(const std::string& gang, const std::vector<Place>& places);  // Keeps just these of its places.
  // Gives up those of its places whose node has no room for them any more, or does not take such pods.
  void KeepWhatHolds(const std::string& gang);
  void Enqueue(const GangDemand& demand);  // For the first Ask().
  // Puts the demand into the queue and plans. What is placed is in PlacesOf() from then on.
  GangStanding Ask(const GangDemand& demand);
  void StopAsking(const std::string& gang);  // Its places stay.
  void Forget(const std::string& gang);      // They do not.
  void SetEnd(const std::string& gang, std::optional<std::int64_t> unix_seconds);
  // After which it is worth while that this gang asks again although nothing happens; nullopt: never.
  std::optional<kube::Duration> TimeUntilChange(const std::string& gang) const;
  std::string AnyWaiting() const;  // A gang that waits: its pass would plan for all. Empty: none.
  // Whether a gang that `counts` waits for room, or a pod outside any gang that asks for a device is unschedulable.
  // `counts` is called with the lock held: it must not come back here.
  bool IsAnyoneWaiting(const std::function<bool(const std::string& gang)>& counts) const;

  // Whether owners other than this one have places, whose room the scheduler takes for free.
  bool HaveOthersPlaces(const std::string& owner) const;
  // Whether the scheduler must be held to the places of `gang`: competition threatens one of them; or pods of another
  // shape are on their way, which the scheduler may bind there (pods alike only swap places); or pods of this gang
  // could take what is reserved for another gang, or their launcher's room.
  bool MustHold(const std::string& gang);
  // Whether it was planned beside others on nodes that it does not fill. The scheduler would spread what was packed,
  // until no node is whole.
  bool SharesNodes(const std::string& gang) const;
  // Whether places are held by pinning members to nodes rather than by nominating them.
  bool Pins() const { return nominations_ == Nominations::kPin || !are_honoured_.load(); }
  void SetNominationsHonoured(bool are_honoured) { are_honoured_ = are_honoured; }  // They count as such at first.
  // Whether the pods of a gang of that priority can be given to the scheduler, which has been keeping the places for it
  // since `held`: what the scheduler was at before may still take one, but for 20 s at most.
  Safety Check(const std::string& gang, const std::vector<Place>& places, int priority, kube::TimePoint held) const;

 private:
  // Whom a change concerns.
  struct Effects {
    std::vector<std::string> urgent = {}, stale = {};  // Gangs, for OnStanding().
    bool has_freed = false;                            // Room, for OnFreed().
  };
  // Calls `change` with the lock held, and then tells those concerned.
  void Apply(const std::function<void(Effects&)>& change);
  void Tell(const Effects& effects) const;

  void OnNode(const kube::Change& change);
  void OnPod(const kube::Change& change, bool is_first_list);
  void OnDevices(const std::string& node);
  void OnNeeds(const std::string& key);
  // Urgent for the gangs whose places it threatens now, and did not before.
  void NoteWaitingLocked(const kube::Pod* before, const kube::Pod* after, bool is_first_list, Effects& effects);
  // The same, of a pod whose device claims may have changed; it is accounted anew.
  void RecountLocked(const kube::Pod& pod, Effects& effects);
  void PutWaitingLocked(const kube::Pod& pod, Effects& effects);
  void BindLocked(const kube::Pod& pod, std::string_view node, const Resources& request);
  ShapePtr NeedOfLocked(const kube::Pod& pod);
  ShapePtr TakePresentLocked(const kube::Pod& pod);
  // The launcher is lost: what it had is kept until its job's next pass, which knows whether another one comes.
  void KeepForLauncherLocked(const kube::Pod& before, const kube::Pod* after);
  bool CouldShutOutLauncherLocked(const std::string& job) const;
  const std::string& ReservedFromLocked(const std::string& owner, const PodShape& shape) const;

  const kube::Clock& clock_;
  const Nominations nominations_;
  const kube::Informer &nodes_, &pods_;
  PodVolumes* const volumes_;
  const PodDevices* const devices_;
  const kube::Store::IndexId pods_by_device_key_;
  std::atomic<bool> are_honoured_{true};
  std::once_flag has_begun_;  // To plan.
  bool keeps_room_of_launchers_ = false;
  std::vector<std::function<void()>> before_planning_, on_freed_;
  std::vector<std::function<void(const std::string&, bool)>> on_standing_;

  mutable std::mutex mutex_;  // Guards what follows.
  ClusterLedger ledger_;
  GangPlanner planner_;
  ShapePool shapes_;
  Competition competition_{ledger_};
  std::unordered_map<std::string, ShapePtr> present_;  // By UID, what pods with device claims are counted as.
  std::set<std::string> waiting_;                      // Gangs by key.
  std::map<std::string, bool> placed_;                 // Likewise, and whether it knows that its places are threatened.
};

}  // namespace grus
