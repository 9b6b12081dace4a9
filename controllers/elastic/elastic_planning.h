// SPDX-License-Identifier: Apache-2.0
// Plans one ElasticHorovodJob: adds to the view what the shared account says of the job, calls the pure plan, and keeps
// in the account the places that the plan takes.
//
// From the look at the free room until the places are kept, no other job is planned. A job that gets fewer workers than
// it wants is hungry until it has them: it is planned again whenever room comes free.
// Thread-safe, for one pass over each job at a time.
#pragma once

#include <mutex>
#include <optional>
#include <set>

#include "controllers/cluster/cluster_account.h"
#include "controllers/elastic/elastic_caches.h"
#include "controllers/elastic/elastic_plan.h"
#include "controllers/elastic/job_holders.h"
#include "controllers/elastic/job_quotas.h"
#include "controllers/frame/key_feed.h"

namespace grus {

class ElasticPlanning {
 public:
  // Hungry jobs go to `feed`. REQUIRES: the informers are not started yet.
  ElasticPlanning(kube::Client& client, const ElasticCaches& caches, ClusterAccount& account, const KeyFeed& feed,
                  const kube::Clock& clock);

  // Blocks while it asks the API server what the pods of a waiting job will be.
  Plan MakePlan(View& view, std::stop_token stop);
  // Frees the room of pods that this pass planned and could not make. Room that comes free no longer wakes the job.
  void ReleaseUnmade(const View& view);
  // The scheduler found no node for the workers: from now on plan with the pods as they are in the cluster.
  void LearnPods(const View& view);
  bool IsHungry(const kube::ObjectKey& job) const;
  void Forget(const kube::ObjectKey& job);

 private:
  struct Pods;  // Those for which the account is asked for room.

  Pods PodsOf(View& view);
  static std::optional<kube::Duration> TimeUntilOtherPods(const Pods& pods);
  Plan PlanWithRoom(View& view);
  // Asks the planner for the places of a start, and notes the answer in the view. True: the job waits in the queue.
  bool AskForStart(View& view, const Sizes& sizes, const Pods& pods);
  // The priority of a start that may ask for room now; nullopt: it may not.
  std::optional<int> PriorityOfStart(View& view, const Sizes& sizes, const Pods& pods) const;
  void LookForMore(View& view, const Sizes& sizes, const Pods& pods);
  // Finds new places for gated workers that lost theirs.
  void ReplaceLostPlaces(View& view, const Pods& pods);
  void KeepPlaces(const View& view, const Pods& pods, bool is_queued, const Plan& plan);
  void ForgetRoom(const kube::ObjectKey& job);  // All places of the job.
  void SetHungry(const kube::ObjectKey& job, bool is_hungry);
  void FeedHungry() const;
  void FeedHungryWithVolumes(const kube::ObjectKey& claim);

  const ElasticCaches caches_;
  ClusterAccount& account_;
  const KeyFeed& feed_;
  JobPods pods_;
  JobQuotas quotas_;
  JobHolders holders_;

  std::mutex planning_mutex_;         // Held from the look at the free room until its places are kept.
  mutable std::mutex mutex_;          // Guards hungry_.
  std::set<kube::ObjectKey> hungry_;  // Jobs with fewer workers than they want.
};

}  // namespace grus
