// SPDX-License-Identifier: Apache-2.0
// Brings the pods of one PodGroup to the scheduler together, or not at all.
//
// A pass reads only caches and the ledger, plans purely, and writes in this order, so that it may stop after any write
// and the next pass comes to the same end: status of a roll-back; deletes; nominations, without lifting gates in the
// same pass; lifted gates, lowest ordinals first; status; events. The next pass waits until the caches have seen these
// writes, and with them every pod that was bound before. There is one reconciler for each of the two kinds of PodGroup.
// Thread-safe: many keys at once.
#pragma once

#include "clientlib/base/log.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/frame/key_feed.h"
#include "controllers/gang/gang_plan.h"
#include "controllers/gang/gang_status_writer.h"
#include "controllers/gang/member_writer.h"

namespace grus {

// The leases of other programs that matter to gangs. Null: as if nobody ever held the lease.
struct GangPeers {
  LeaseWatch* scheduler = nullptr;
  LeaseWatch* scheduler_plugins = nullptr;  // While it is held, the status of groups is its holder's to write.
};

class GangReconciler final : public kube::Reconciler {
 public:
  // `kind`: PodGroup or LegacyPodGroup. Adds indexes to `pods`. REQUIRES: the informers are not started yet.
  GangReconciler(kube::Client& client, const kube::Kind& kind, kube::Informer& groups, kube::Informer& pods,
                 ClusterAccount& account, GangPeers peers, kube::EventRecorder& events, const kube::Clock& clock,
                 const kube::Log& log);

  // Sends keys of changed groups to `queue`. Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  using Group = std::shared_ptr<const api::PodGroup>;
  // What is kept of a group between passes. A restart may lose it.
  struct Memory {
    std::set<std::string> avoid;       // See GangView.
    bool is_planned_by_owner = false;  // As GangView says.
    bool is_adopted = false;           // The places that an earlier process had planned are in the ledger.
    std::optional<kube::TimePoint> protected_since;  // Of all its places, while they are verified.
  };

  // Feeds the gangs that have members which are nominated and still gated.
  void FeedNominated() const;
  void EnqueueBegun();
  GangView Observe(const Group& group, const std::string& gang);
  std::vector<Member> ReadMembers(const api::PodGroup& group, bool has_planning_owner);
  // Puts what an earlier process had planned into the account.
  void AdoptPlaces(GangView& view);
  ShapePtr ShapeOf(const kube::Pod& pod, VolumeLimits volumes);
  void PutHolder(const GangView& view);
  void AskAccount(GangView& view);
  void KeepPlaces(const GangView& view, const GangPlan& plan);
  kube::Result<Deferred> Execute(const GangView& view, const GangPlan& plan, std::atomic<bool>& may_have_lifted,
                                 std::stop_token stop);
  kube::Duration TimeToLookAgain(const GangView& view, const GangPlan& plan, Deferred deferred) const;
  // Reports a failed write in the status, and decides when to retry.
  kube::Result<kube::Action> Refused(const GangView& view, const GangPlan& plan, bool may_have_lifted,
                                     kube::Error error, std::stop_token stop);
  // Records an event on each pod that has waited for a while for a group that does not exist.
  kube::Action TellOrphans(const kube::ObjectKey& key);
  void Forget(const kube::ObjectKey& key);

  const kube::Kind& kind_;
  kube::Informer& groups_;
  kube::Informer& pods_;
  ClusterAccount& account_;
  const GangPeers peers_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_group_, pods_by_volume_claim_;
  kube::WriteTracker writes_;
  KeyFeed feed_;
  GangStatusWriter statuses_;
  MemberWriter members_;
  kube::ObjectMemory<Memory> memory_;
};

}  // namespace grus
