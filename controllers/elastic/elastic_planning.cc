// SPDX-License-Identifier: Apache-2.0
// How the elastic reconciler plans: between the ledger, which it shares with all, and the pure plan.
#include <algorithm>

#include "controllers/cluster/priorities.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_reconciler.h"
#include "controllers/elastic/elastic_status.h"

namespace grus {

using api::ElasticHorovodJob;

namespace {

bool HasEnded(const api::ElasticHorovodJobStatus& status) {
  return status.phase == kPhaseSucceeded || status.phase == kPhaseFailed;
}

int BoundWorkers(const View& view) {
  return static_cast<int>(std::count_if(view.pods.begin(), view.pods.end(), [](const Worker& w) {
    return w.is_bound && !w.is_ending && !w.has_lost_node;
  }));
}

}  // namespace

bool ElasticReconciler::WantsMore(const View& view) {
  const ElasticHorovodJob& job = *view.job;
  const int granted = view.workers ? view.workers->granted : 0;
  return !HasEnded(job.status) && !job.spec.run_policy.suspend && granted < SizesOf(job.spec.workers).wanted;
}

int ElasticReconciler::OwedWorkers(const View& view) {
  return view.workers ? std::max(0, view.workers->granted - BoundWorkers(view)) : 0;
}

ShapePtr ElasticReconciler::ShapeOfWorker(const ElasticHorovodJob& job) {
  const auto worker = WorkerOf(job);
  return room_.ShapeOf(*worker, room_.VolumesOf(*worker));
}

std::shared_ptr<const kube::Pod> ElasticReconciler::WorkerOf(const ElasticHorovodJob& job) {
  {
    std::lock_guard lock(mutex_);
    const auto it = verified_.find(job.metadata.Key());
    if (it != verified_.end() && it->second.uid == job.metadata.uid &&
        it->second.generation == job.metadata.generation && it->second.worker) {
      return it->second.worker;
    }
  }
  auto worker = std::make_shared<const kube::Pod>(WorkerPod(job));
  std::lock_guard lock(mutex_);
  VerifiedLocked(job).worker = worker;
  return worker;
}

Plan ElasticReconciler::MakePlan(View& view) {
  const ElasticHorovodJob& job = *view.job;
  const Sizes sizes = SizesOf(job.spec.workers);
  const int granted = view.workers ? view.workers->granted : 0;
  const int bound = BoundWorkers(view);
  const std::string owner = job.metadata.Key().ToString();
  if (HasEnded(job.status) || (granted >= sizes.wanted && bound >= granted)) {
    // Also of what a pass claimed that had not seen the last binds.
    room_.Forget(owner);
    Plan plan = PlanElasticJob(view);
    quotas_.Note(view, plan);
    return plan;
  }
  const auto worker = WorkerOf(job);
  const ShapePtr shape = ShapeOfWorker(job);
  std::lock_guard lock(planning_mutex_);
  const int owed = OwedWorkers(view);
  const bool is_start = granted == 0 && (!view.workers || view.workers->replicas == 0);
  bool is_queued = false;
  if (WantsMore(view)) view.quota = quotas_.LimitOf(view, sizes.wanted);
  if (is_start) {
    is_queued = AskForStart(view, Admitted(view, sizes), *worker, shape);
  } else if (granted < sizes.wanted) {
    view.room = room_.RoomFor(owner, shape, sizes.wanted - granted + owed);
    view.room.copies = std::max(0, view.room.copies - owed);
    view.is_room_reserved = room_.IsReservedForOther(owner);
  }
  Plan plan = PlanElasticJob(view);
  quotas_.Note(view, plan);
  // Workers of the last run that are still there are none of those that start.
  const int claims = plan.workers ? std::max(0, plan.workers->granted - (is_start ? 0 : bound)) : 0;
  if (is_queued && !plan.is_ignored && !HasEnded(plan.status)) {
    // Its place in the queue stays until there is room: who comes first does not depend on whose pass does.
    if (const auto change = room_.next_change(owner)) {
      const kube::Duration until = std::max<kube::Duration>(
          kube::WallTime(std::chrono::seconds(*change)) - view.now.value, std::chrono::seconds(1));
      plan.look_again = std::min(plan.look_again.value_or(until), until);
    }
  } else if (is_start && claims == 0) {
    room_.Forget(owner);
  } else {
    room_.Claim(owner, shape, claims);
  }
  if (plan.workers && caches_.groups) {
    // Decided where workers are started, and kept while there are any: their template is not touched.
    const bool has_workers = view.workers && view.workers->replicas > 0;
    const bool is_first = plan.workers->replicas > 0 && !has_workers;
    if (is_first) plan.workers->gang = room_.MustHold(owner) ? Gang::kGated : Gang::kUngated;
    else plan.workers->gang = view.workers ? view.workers->gang : Gang::kNone;
  }
  return plan;
}

bool ElasticReconciler::AskForStart(View& view, const Sizes& sizes, const kube::Pod& worker, const ShapePtr& shape) {
  const ElasticHorovodJob& job = *view.job;
  const std::string owner = job.metadata.Key().ToString();
  const bool wants_start =
      !job.spec.run_policy.suspend && sizes.wanted > 0 && StartDelay(view) <= kube::Duration::zero();
  if (!wants_start) {
    room_.StopAsking(owner);
    view.room = room_.RoomFor(owner, shape, sizes.wanted);
    return false;
  }
  {
    // Before it asks: what comes free from now on wakes it.
    std::lock_guard lock(mutex_);
    hungry_.insert(job.metadata.Key());
  }
  const std::string_view class_name = worker.spec.priority_class_name;
  const std::optional<int> priority = caches_.priority_classes ? PriorityOf(*caches_.priority_classes, class_name) : 0;
  if (!priority) {
    view.may_start = false;
    view.refusal = "PriorityClass \"" + std::string(class_name) + "\" does not exist";
    room_.StopAsking(owner);
    return false;
  }
  if (view.quota && view.quota->workers < sizes.NeededToRun()) {
    // Pods that cannot be made need no room, and stand before nobody.
    view.may_start = false;
    room_.StopAsking(owner);
    return false;
  }
  const std::vector<Place> places = room_.PlacesOf(owner);
  if (static_cast<int>(places.size()) >= sizes.NeededToRun() && FitAlike(*places.front().shape, *shape)) {
    // Placed while others were planned, or in a pass whose children were refused.
    view.room.copies = std::min(static_cast<int>(places.size()), sizes.wanted);
    room_.StopAsking(owner);
    return false;
  }
  if (!places.empty()) room_.Forget(owner);
  GangDemand demand;
  demand.key = owner;
  demand.priority = *priority;
  demand.needed = sizes.NeededToRun();
  demand.members.assign(static_cast<std::size_t>(sizes.wanted), shape);
  const kube::Time since = job.metadata.creation_timestamp.value_or(view.now);
  demand.waiting_since = std::chrono::duration_cast<std::chrono::seconds>(since.value.time_since_epoch()).count();
  const GangStanding standing = room_.Ask(demand);
  view.may_start = standing.is_placed;
  view.room = room_.RoomFor(owner, shape, sizes.wanted);
  if (standing.is_placed) view.room.copies = standing.placed;
  return !standing.is_placed;
}

void ElasticReconciler::GiveBackUnmade(const View& view) {
  {
    // Before the room comes free, or that would wake it.
    std::lock_guard lock(mutex_);
    hungry_.erase(view.job->metadata.Key());
  }
  quotas_.Forget(view.job->metadata.Key());
  const std::string owner = view.job->metadata.Key().ToString();
  const int owed = OwedWorkers(view);
  if (owed == 0) room_.Forget(owner);
  else room_.Claim(owner, ShapeOfWorker(*view.job), owed);
}

}  // namespace grus
