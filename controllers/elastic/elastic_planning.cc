// SPDX-License-Identifier: Apache-2.0
// How the elastic reconciler plans: between the ledger, which it shares with all, and the pure plan.
#include <algorithm>
#include <chrono>

#include "controllers/cluster/priorities.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_reconciler.h"
#include "controllers/elastic/elastic_status.h"
#include "controllers/policy/gang_message.h"

namespace grus {

using api::ElasticHorovodJob;

namespace {

// A job that waits asks again what its pods will be: no event tells that a LimitRange or a webhook is another one.
constexpr kube::Duration kOtherPods = std::chrono::minutes(1);

bool HasEnded(const api::ElasticHorovodJobStatus& status) {
  return status.phase == kPhaseSucceeded || status.phase == kPhaseFailed;
}

int BoundWorkers(const View& view) {
  return static_cast<int>(std::count_if(view.pods.begin(), view.pods.end(), [](const Worker& w) {
    return w.is_bound && !w.is_ending && !w.has_lost_node;
  }));
}

// By minAvailable than by minReplicas.
bool IsAskedForMore(const api::ElasticHorovodJobSpec& spec) {
  return spec.run_policy.scheduling_policy.min_available.value_or(0) > SizesOf(spec).min;
}

PendingWords WordsOf(const api::ElasticHorovodJobSpec& spec) {
  if (SizesOf(spec).NeededToStart() <= 1) return {.member = "worker", .pod = "pod", .minimum = ""};
  return {.member = "worker", .pod = "pod", .minimum = IsAskedForMore(spec) ? "minAvailable" : "minReplicas"};
}

}  // namespace

bool ElasticReconciler::WantsMore(const View& view) {
  const ElasticHorovodJob& job = *view.job;
  const int granted = view.workers ? view.workers->granted : 0;
  return !HasEnded(job.status) && !job.spec.run_policy.suspend && granted < SizesOf(job.spec).wanted;
}

int ElasticReconciler::OwedWorkers(const View& view) {
  return view.workers ? std::max(0, view.workers->granted - BoundWorkers(view)) : 0;
}

ShapePtr ElasticReconciler::ShapeOf(const JobPod& pod) {
  return account_.ShapeOf(*pod.pod, account_.VolumesOf(*pod.pod));
}

void ElasticReconciler::ForgetRoom(const std::string& owner) {
  account_.Forget(owner);
  account_.Forget(LauncherOwner(owner));
}

Plan ElasticReconciler::MakePlan(View& view) {
  const ElasticHorovodJob& job = *view.job;
  const Sizes sizes = SizesOf(job.spec);
  const int granted = view.workers ? view.workers->granted : 0;
  const int bound = BoundWorkers(view);
  const std::string owner = job.metadata.Key().ToString();
  if (HasEnded(job.status) || (granted >= sizes.wanted && bound >= granted && HasBoundLauncher(view))) {
    // Also of what a pass planned that had not seen the last binds.
    ForgetRoom(owner);
    Plan plan = PlanElasticJob(view);
    if (plan.workers && view.workers) plan.workers->gang = view.workers->gang;
    quotas_.Note(view, plan);
    return plan;
  }
  const JobPod worker = pods_.Worker(job), launcher = pods_.Launcher(job);
  for (const JobPod* pod : {&launcher, &worker}) {
    if (pod->refusal) view.pod_refusal = pod->refusal->message();
  }
  VolumeLimits volumes = account_.VolumesOf(*worker.pod), launcher_volumes = account_.VolumesOf(*launcher.pod);
  const std::string problem = volumes.problem.empty() ? launcher_volumes.problem : volumes.problem;
  const ShapePtr shape = account_.ShapeOf(*worker.pod, std::move(volumes));
  const ShapePtr launcher_shape = account_.ShapeOf(*launcher.pod, std::move(launcher_volumes));
  std::lock_guard lock(planning_mutex_);
  const int owed = OwedWorkers(view);
  const bool is_start = granted == 0 && (!view.workers || view.workers->replicas == 0);
  bool is_queued = false;
  if (WantsMore(view)) view.quota = quotas_.LimitOf(view, sizes.wanted);
  if (is_start) {
    view.has_unknown_pods = !worker.is_known || !launcher.is_known;
    view.pod_changes = worker.is_changed ? TextOf(shape->request) : "";
    if (!problem.empty()) view.why_no_room = "no pod of it can be placed: " + problem;
    is_queued = AskForStart(view, Admitted(view, sizes), *worker.pod, shape, launcher_shape);
  } else if (granted < sizes.wanted) {
    // Of one that runs already, in case this process has not planned it yet.
    if (!HasBoundLauncher(view)) account_.KeepPlaces(LauncherOwner(owner), launcher_shape, 1);
    view.room = account_.RoomFor(owner, shape, sizes.wanted - granted + owed);
    view.room.copies = std::max(0, view.room.copies - owed);
    view.reserved_for = account_.ReservedFrom(owner, *shape);
    view.do_others_have_places = account_.HaveOthersPlaces(owner);
  }
  if (view.workers && view.workers->gang == Gang::kGated && owed > 0) {
    // A place may have been lost to others.
    const auto has = [&] { return static_cast<int>(account_.PlacesOf(owner).size()); };
    const int before = has();
    account_.KeepPlaces(owner, shape, owed);
    view.lacks_places = has() < owed;
    if (before < owed && !view.lacks_places) account_.TellPlaced(owner);
  }
  Plan plan = PlanElasticJob(view);
  quotas_.Note(view, plan);
  for (const JobPod* pod : {&worker, &launcher}) {
    if (!WantsMore(view) || (pod->is_known && !pod->is_changed)) continue;
    const kube::Duration soon = pod->is_known ? kOtherPods : pod->look_again.value_or(kOtherPods);
    plan.look_again = std::min(plan.look_again.value_or(soon), soon);
  }
  // Workers of the last run that are still there are none of those that start.
  const int places = plan.workers ? std::max(0, plan.workers->granted - (is_start ? 0 : bound)) : 0;
  if (is_queued && places == 0 && !HasEnded(plan.status)) {
    // Its place in the queue stays until there is room: who comes first does not depend on whose pass does.
    if (const auto change = account_.next_change(owner)) {
      const kube::Duration until = std::max<kube::Duration>(
          kube::WallTime(std::chrono::seconds(*change)) - view.now.value, std::chrono::seconds(1));
      plan.look_again = std::min(plan.look_again.value_or(until), until);
    }
  } else if (is_start && places == 0) {
    ForgetRoom(owner);
  } else {
    if (is_queued) account_.StopAsking(owner);  // Its workers are made without places, for others to see.
    const bool needs_launcher = plan.workers && plan.workers->replicas > 0 && (is_start || !HasBoundLauncher(view));
    account_.KeepPlaces(LauncherOwner(owner), launcher_shape, needs_launcher ? 1 : 0);
    account_.KeepPlaces(owner, shape, places);
  }
  if (plan.workers && caches_.groups) {
    // Decided where workers are started, and kept while there are any: their template is not touched.
    const bool has_workers = view.workers && view.workers->replicas > 0;
    const bool is_first = plan.workers->replicas > 0 && !has_workers;
    if (is_first) plan.workers->gang = !is_queued && account_.MustHold(owner) ? Gang::kGated : Gang::kUngated;
    else plan.workers->gang = view.workers ? view.workers->gang : Gang::kNone;
  }
  return plan;
}

bool ElasticReconciler::AskForStart(View& view, const Sizes& sizes, const kube::Pod& worker, const ShapePtr& shape,
                                    const ShapePtr& launcher) {
  const ElasticHorovodJob& job = *view.job;
  const std::string owner = job.metadata.Key().ToString();
  const bool wants_start =
      !job.spec.run_policy.suspend && sizes.wanted > 0 && StartDelay(view) <= kube::Duration::zero();
  if (!wants_start) {
    account_.StopAsking(owner);
    view.room = account_.RoomFor(owner, shape, sizes.wanted);
    return false;
  }
  {
    // Before it asks: what comes free from now on wakes it.
    std::lock_guard lock(mutex_);
    hungry_.insert(job.metadata.Key());
  }
  if (view.has_unknown_pods || !view.why_no_room.empty()) {
    // Nor could they be made while the API server cannot say what they will be; and without its volumes none starts.
    view.may_start = false;
    account_.StopAsking(owner);
    return false;
  }
  const std::string_view class_name = worker.spec.priority_class_name;
  const std::optional<int> priority = caches_.priority_classes ? PriorityOf(*caches_.priority_classes, class_name) : 0;
  if (!priority) {
    view.may_start = false;
    view.refusal = "PriorityClass \"" + std::string(class_name) + "\" does not exist";
    account_.StopAsking(owner);
    return false;
  }
  if (view.quota && view.quota->workers < sizes.NeededToStart()) {
    // Pods that cannot be made need no room, and stand before nobody.
    view.may_start = false;
    account_.StopAsking(owner);
    return false;
  }
  const std::vector<Place> places = account_.PlacesOf(owner);
  if (static_cast<int>(places.size()) >= sizes.NeededToStart() && FitAlike(*places.front().shape, *shape)) {
    // Placed while others were planned, or in a pass whose children were refused.
    view.room.copies = std::min(static_cast<int>(places.size()), sizes.wanted);
    account_.StopAsking(owner);
    return false;
  }
  if (!places.empty()) ForgetRoom(owner);
  else account_.Forget(LauncherOwner(owner));  // What was kept for one that is lost: none comes before workers do.
  GangDemand demand;
  demand.key = owner;
  demand.priority = *priority;
  demand.members.assign(static_cast<std::size_t>(sizes.wanted), shape);
  // Workers alone train nothing: after as many of them as it takes comes the launcher.
  demand.members.insert(demand.members.begin() + sizes.NeededToStart(), launcher);
  demand.companion = {sizes.NeededToStart(), LauncherOwner(owner)};
  demand.needed = sizes.NeededToStart() + 1;
  const kube::Time since = job.metadata.creation_timestamp.value_or(view.now);
  demand.waiting_since = std::chrono::duration_cast<std::chrono::seconds>(since.value.time_since_epoch()).count();
  const GangStanding standing = account_.Ask(demand);
  view.may_start = standing.is_placed;
  view.room = account_.RoomFor(owner, shape, sizes.wanted);
  if (standing.is_placed) {
    view.room.copies = standing.placed - 1;
  } else {
    view.why_no_room = WhyNoRoom(demand, standing, WordsOf(job.spec));
    if (account_.RoomFor(LauncherOwner(owner), launcher, 1).nodes == 0) view.launcher_lacks = LauncherLacks::kAnyNode;
    else if (standing.fitting == sizes.NeededToStart()) view.launcher_lacks = LauncherLacks::kRoom;
  }
  return !standing.is_placed;
}

void ElasticReconciler::NoteTry(const View& view, const Plan& plan) {
  const bool has_failed = IsFailedTry(view.job->status.last_scale, plan.status.last_scale);
  if (has_failed && !view.pods.empty()) {
    // Whatever made it another pod than was expected, it will do so again.
    const auto pod = caches_.pods.Get<kube::Pod>({view.job->metadata.ns, view.pods.front().name});
    if (pod && !pod->metadata.is_being_deleted()) pods_.Learn(*view.job, *pod);
  }
  if (!has_failed && (view.failed_tries == 0 || !HasWhatItTried(view))) return;
  std::lock_guard lock(mutex_);
  VerifiedLocked(*view.job).failed_tries = has_failed ? view.failed_tries + 1 : 0;
}

void ElasticReconciler::GiveBackUnmade(const View& view) {
  {
    // Before the room comes free, or that would wake it.
    std::lock_guard lock(mutex_);
    hungry_.erase(view.job->metadata.Key());
  }
  quotas_.Forget(view.job->metadata.Key());
  const std::string owner = view.job->metadata.Key().ToString();
  if (const int owed = OwedWorkers(view); owed > 0) {
    account_.KeepPlaces(owner, ShapeOf(pods_.Worker(*view.job)), owed);
  } else {
    account_.Forget(owner);
  }
  // Workers that run, or are about to, still wait for it.
  if (!view.workers || view.workers->granted == 0) account_.Forget(LauncherOwner(owner));
}

}  // namespace grus
