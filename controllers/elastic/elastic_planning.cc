// SPDX-License-Identifier: Apache-2.0
// How the elastic reconciler plans: between the ledger, which it shares with all, and the pure plan.
#include <algorithm>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_reconciler.h"
#include "controllers/elastic/elastic_status.h"

namespace grus {

using api::ElasticHorovodJob;

std::shared_ptr<const PodShape> ElasticReconciler::ShapeOf(const ElasticHorovodJob& job) {
  {
    std::lock_guard lock(mutex_);
    const auto it = verified_.find(job.metadata.Key());
    if (it != verified_.end() && it->second.uid == job.metadata.uid &&
        it->second.generation == job.metadata.generation && it->second.shape) {
      return it->second.shape;
    }
  }
  auto shape = std::make_shared<const PodShape>(WorkerShape(job));
  std::lock_guard lock(mutex_);
  VerifiedLocked(job).shape = shape;
  return shape;
}

Plan ElasticReconciler::MakePlan(View& view) {
  const ElasticHorovodJob& job = *view.job;
  const Sizes sizes = SizesOf(job.spec.workers);
  const int granted = view.workers ? view.workers->granted : 0;
  const int bound = static_cast<int>(std::count_if(view.pods.begin(), view.pods.end(), [](const Worker& w) {
    return w.is_bound && !w.is_ending && !w.has_lost_node;
  }));
  const std::string owner = job.metadata.Key().ToString();
  const bool has_ended = job.status.phase == kPhaseSucceeded || job.status.phase == kPhaseFailed;
  if (has_ended || (granted >= sizes.wanted && bound >= granted)) {
    Plan plan = PlanElasticJob(view);
    if (plan.workers && plan.workers->granted == granted && bound >= granted) return plan;
    room_.Forget(owner);
    return plan;
  }
  const auto shape = ShapeOf(job);
  std::lock_guard lock(planning_mutex_);
  const int owed = std::max(0, granted - bound);
  const bool is_start = granted == 0 && (!view.workers || view.workers->replicas == 0);
  if (is_start) {
    AskForStart(view, sizes, *shape);
  } else if (granted < sizes.wanted) {
    view.room = room_.RoomFor(owner, *shape, sizes.wanted - granted + owed);
    view.room.copies = std::max(0, view.room.copies - owed);
  }
  Plan plan = PlanElasticJob(view);
  const int claims = plan.workers ? std::max(0, plan.workers->granted - bound) : 0;
  if (is_start && claims == 0) room_.Forget(owner);
  else room_.Claim(owner, *shape, claims);
  if (plan.workers && caches_.groups) {
    // Decided where workers are started, and kept while there are any: their template is not touched.
    const bool has_workers = view.workers && view.workers->replicas > 0;
    const bool is_first = plan.workers->replicas > 0 && !has_workers;
    if (is_first) plan.workers->gang = room_.MustNominate(owner) ? Gang::kGated : Gang::kUngated;
    else plan.workers->gang = view.workers ? view.workers->gang : Gang::kNone;
  }
  return plan;
}

void ElasticReconciler::AskForStart(View& view, const Sizes& sizes, const PodShape& shape) {
  const ElasticHorovodJob& job = *view.job;
  const std::string owner = job.metadata.Key().ToString();
  view.room = room_.RoomFor(owner, shape, sizes.wanted);
  const bool wants_start = !job.spec.run_policy.suspend && sizes.wanted > 0 && StartDelay(view) <= kube::Duration::zero();
  if (!wants_start) return room_.StopAsking(owner);
  const std::vector<Place> places = room_.PlacesOf(owner);
  if (static_cast<int>(places.size()) >= sizes.NeededToRun() && FitAlike(*places.front().shape, shape)) {
    // Placed while others were planned, or in a pass whose children were refused.
    view.room.copies = std::min(static_cast<int>(places.size()), sizes.wanted);
    return;
  }
  if (!places.empty()) room_.Forget(owner);
  GangDemand demand;
  demand.key = owner;
  demand.needed = sizes.NeededToRun();
  demand.members.assign(static_cast<std::size_t>(sizes.wanted), std::make_shared<const PodShape>(shape));
  const kube::Time since = job.metadata.creation_timestamp.value_or(view.now);
  demand.waiting_since = std::chrono::duration_cast<std::chrono::seconds>(since.value.time_since_epoch()).count();
  const GangStanding standing = room_.Ask(demand);
  view.may_start = standing.is_placed;
  if (standing.is_placed) view.room.copies = standing.placed;
}

}  // namespace grus
