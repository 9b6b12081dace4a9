// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_planning.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "controllers/cluster/priorities.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_status.h"
#include "controllers/elastic/job_deadline.h"
#include "controllers/frame/retry_times.h"
#include "controllers/policy/gang_message.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;

// A waiting job asks again what its pods will be: no event tells that a LimitRange or a webhook has changed.
constexpr kube::Duration kOtherPods = std::chrono::minutes(1);

bool WantsMore(const View& view) {
  const ElasticHorovodJob& job = *view.job;
  return !HasEnded(job.status) && !job.spec.run_policy.suspend && view.granted() < SizesOf(job.spec).wanted;
}

// Nothing is left to place.
bool IsSettled(const View& view) {
  const int granted = view.granted();
  return HasEnded(view.job->status) ||
         (granted >= SizesOf(view.job->spec).wanted && view.bound() >= granted && view.has_bound_launcher());
}

// What messages call the waiting pods, and the field that sets the minimum.
PendingWords WordsOf(const api::ElasticHorovodJobSpec& spec) {
  const Sizes sizes = SizesOf(spec);
  PendingWords words{.member = "worker", .pod = "pod", .minimum = ""};
  const bool has_minimum = sizes.NeededToStart() > 1;
  const bool is_available = spec.run_policy.scheduling_policy.min_available.value_or(0) > sizes.min;
  if (has_minimum) words.minimum = is_available ? "minAvailable" : "minReplicas";
  return words;
}

}  // namespace

struct ElasticPlanning::Pods {
  JobPod worker, launcher;
  ShapePtr worker_shape, launcher_shape;
  std::string problem;  // Why these pods cannot be placed; empty: nothing known.
};

// When to ask again what the pods will be; nullopt: they will be as their templates say.
std::optional<kube::Duration> ElasticPlanning::TimeUntilOtherPods(const Pods& pods) {
  std::optional<kube::Duration> next;
  for (const JobPod* pod : {&pods.worker, &pods.launcher}) {
    if (pod->is_known && !pod->is_changed && !pod->refusal) continue;
    LookAgain(next, pod->is_known && !pod->refusal ? kOtherPods : pod->look_again.value_or(kOtherPods));
  }
  return next;
}

ElasticPlanning::ElasticPlanning(kube::Client& client, const ElasticCaches& caches, ClusterAccount& account,
                                 const KeyFeed& feed, const kube::Clock& clock)
    : caches_(caches),
      account_(account),
      feed_(feed),
      pods_(client, clock),
      quotas_(pods_, caches.quotas, caches.priority_classes),
      holders_(account, caches.priority_classes) {
  account_.KeepRoomOfLostLaunchers();
  account_.BeforePlanning([this] { holders_.PutAll(caches_.jobs); });
  account_.OnFreed([this] { FeedHungry(); });
  account_.OnVolumeClaim([this](const kube::ObjectKey& claim) { FeedHungryWithVolumes(claim); });
  quotas_.OnMore([this](const kube::ObjectKey& job) { feed_.Add(job); });
  caches_.priority_classes.AddHandler([this](const kube::Change& change, bool) {
    if (!change.before || !change.after) FeedHungry();  // A class has come or gone: the order of the queue may change.
  });
}

Plan ElasticPlanning::MakePlan(View& view, std::stop_token stop) {
  const ElasticHorovodJob& job = *view.job;
  view.makes_gangs = caches_.groups != nullptr;
  if (WantsMore(view)) pods_.Ask(job, std::move(stop));
  const std::string owner = job.metadata.Key().ToString();
  if (view.has_workers() && view.alive() > view.granted()) {
    // What was placed is granted although the status does not say so yet: the gang may have lifted gates before.
    const int placed = view.bound() + static_cast<int>(account_.PlacesOf(owner).size());
    view.workers.granted = std::clamp(placed, view.granted(), view.alive());
  }
  view.yield = account_.YieldOf(owner);
  Plan plan;
  if (IsSettled(view)) {
    ForgetRoom(job.metadata.Key());  // Also places that a pass kept before it saw the last binds.
    holders_.Put(view);
    view.runtime_limit = account_.RuntimeLimitOf(owner);
    plan = PlanElasticJob(view);
    quotas_.Note(view, plan);
  } else {
    plan = PlanWithRoom(view);
  }
  for (const auto& holder : {owner, LauncherOwner(owner)}) account_.SetEnd(holder, LatestEnd(view, plan.status));
  const bool has_all = plan.status.replicas.granted >= SizesOf(job.spec).wanted && !view.lacks_places;
  SetHungry(job.metadata.Key(), !has_all && !job.spec.run_policy.suspend && !HasEnded(plan.status));
  return plan;
}

ElasticPlanning::Pods ElasticPlanning::PodsOf(View& view) {
  Pods pods{pods_.Worker(*view.job), pods_.Launcher(*view.job), {}, {}, {}};
  view.foreign_gate = pods.worker.foreign_gate;
  for (const JobPod* pod : {&pods.launcher, &pods.worker}) {
    if (pod->refusal) view.pod_refusal = pod->refusal->message();
    view.fills_pod_security |= pod->needs_filling;
  }
  VolumeLimits volumes = account_.VolumesOf(*pods.worker.pod), of_launcher = account_.VolumesOf(*pods.launcher.pod);
  pods.problem = volumes.problem.empty() ? of_launcher.problem : volumes.problem;
  pods.worker_shape = account_.ShapeOf(*pods.worker.pod, std::move(volumes));
  pods.launcher_shape = account_.ShapeOf(*pods.launcher.pod, std::move(of_launcher));
  return pods;
}

Plan ElasticPlanning::PlanWithRoom(View& view) {
  const Sizes sizes = SizesOf(view.job->spec);
  const Pods pods = PodsOf(view);
  std::lock_guard lock(planning_mutex_);
  bool is_queued = false;
  if (WantsMore(view)) {
    view.quota = quotas_.LimitOf(view, sizes.wanted);
    view.pods_look_again = TimeUntilOtherPods(pods);
  }
  holders_.Put(view, pods.worker.pod->spec.priority_class_name, pods.worker_shape);
  view.runtime_limit = account_.RuntimeLimitOf(view.job->metadata.Key().ToString());
  if (!view.has_workers()) {
    view.has_unknown_pods = !pods.worker.is_known || !pods.launcher.is_known;
    view.pod_changes = pods.worker.is_changed ? TextOf(pods.worker_shape->request) : "";
    // To start would hold GPUs for pods that are never made, and to ask would keep room from others.
    for (const JobPod* pod : {&pods.launcher, &pods.worker}) {
      if (pod->is_refused && view.alive() == 0) view.refusal = RefusalText(*pod->refusal, *view.job);
    }
    if (!pods.problem.empty()) view.why_no_room = "no pod of it can be placed: " + pods.problem;
    is_queued = AskForStart(view, Admitted(view, sizes), pods);
  } else if (view.granted() < sizes.wanted) {
    LookForMore(view, sizes, pods);
  }
  if (view.workers.gang == Gang::kGated) ReplaceLostPlaces(view, pods);
  const bool has_lost_all = view.has_workers() && view.alive() == 0;
  if (has_lost_all) view.must_protect_places = account_.MustProtect(view.job->metadata.Key().ToString());
  Plan plan = PlanElasticJob(view);
  quotas_.Note(view, plan);
  KeepPlaces(view, pods, is_queued, plan);
  if (plan.missing > 0)
    plan.nodes = NodesForMissing(view, *plan.workers, account_.PlacesOf(view.job->metadata.Key().ToString()));
  return plan;
}

void ElasticPlanning::LookForMore(View& view, const Sizes& sizes, const Pods& pods) {
  const std::string owner = view.job->metadata.Key().ToString();
  const int owed = view.owed();
  // The job may run already, and this process may not have planned its launcher yet.
  if (!view.has_bound_launcher()) account_.KeepPlaces(LauncherOwner(owner), pods.launcher_shape, 1);
  view.room = account_.RoomFor(owner, pods.worker_shape, sizes.wanted - view.granted() + owed);
  view.room.copies = std::max(0, view.room.copies - owed);
  if (view.room.allowed < std::numeric_limits<int>::max()) view.room.allowed = std::max(0, view.room.allowed - owed);
  view.reserved_for = account_.ReservedFrom(owner, *pods.worker_shape);
}

void ElasticPlanning::ReplaceLostPlaces(View& view, const Pods& pods) {
  const std::string owner = view.job->metadata.Key().ToString();
  const int owed = view.owed();
  if (owed == 0) return;
  const auto has = [&] { return static_cast<int>(account_.PlacesOf(owner).size()); };
  const int before = has();
  account_.KeepPlaces(owner, pods.worker_shape, owed);
  view.lacks_places = has() < owed;
  if (before < owed && !view.lacks_places) account_.NotifyPlaced(owner);
}

void ElasticPlanning::KeepPlaces(const View& view, const Pods& pods, bool is_queued, const Plan& plan) {
  const kube::ObjectKey key = view.job->metadata.Key();
  const std::string owner = key.ToString();
  const bool is_start = !view.has_workers();
  // Workers that others keep from starting need no room yet; those of the last run do not count towards a start.
  const int granted = plan.workers ? std::max(0, plan.workers->granted - view.gated_by_others(plan.drop)) : 0;
  const int places = std::max(0, granted - (is_start ? 0 : view.bound()));
  // The job stays in the queue until there is room, so that the order of passes does not decide the order of starts.
  if (is_queued && places == 0 && !HasEnded(plan.status)) return;
  if (is_start && places == 0) return ForgetRoom(key);
  // A job that gives all back looks again after its cooldown. If what it frees woke it, a failing write would be tried
  // again and again without a pause.
  if (is_queued || !plan.workers || plan.workers->granted == 0) SetHungry(key, false);
  if (is_queued) account_.StopAsking(owner);  // Its workers are made without places, for an autoscaler to see.
  const bool needs_launcher = granted > 0 && (is_start || !view.has_bound_launcher());
  account_.KeepPlaces(LauncherOwner(owner), pods.launcher_shape, needs_launcher ? 1 : 0);
  account_.KeepPlaces(owner, pods.worker_shape, places);
}

std::optional<int> ElasticPlanning::PriorityOfStart(View& view, const Sizes& sizes, const Pods& pods) const {
  // An API server that cannot say what the pods will be cannot make them; without their volumes none starts.
  if (view.has_unknown_pods || !pods.problem.empty() || !view.refusal.empty()) return std::nullopt;
  const std::string_view class_name = pods.worker.pod->spec.priority_class_name;
  const std::optional<int> priority = PriorityOf(caches_.priority_classes, class_name);
  if (!priority) view.refusal = "PriorityClass \"" + std::string(class_name) + "\" does not exist";
  // Pods that cannot be made need no room, and must not keep others waiting in the queue.
  const bool is_admitted = !view.quota || view.quota->workers >= sizes.NeededToStart();
  return is_admitted ? priority : std::nullopt;
}

bool ElasticPlanning::AskForStart(View& view, const Sizes& sizes, const Pods& pods) {
  const ElasticHorovodJob& job = *view.job;
  const std::string owner = job.metadata.Key().ToString();
  const bool wants_start = !job.spec.run_policy.suspend && sizes.wanted > 0 && !view.yield && !view.has_left_overs() &&
                           StartDelay(view) <= kube::Duration::zero();
  if (!wants_start) {
    account_.StopAsking(owner);
    view.room = account_.RoomFor(owner, pods.worker_shape, sizes.wanted);
    return false;
  }
  const std::vector<Place> places = account_.PlacesOf(owner);
  const bool has_places =
      static_cast<int>(places.size()) >= sizes.NeededToStart() && FitAlike(*places.front().shape, *pods.worker_shape);
  if (!has_places && !places.empty()) {
    // Its own room must not wake it: a failing pass would be followed by the next.
    SetHungry(job.metadata.Key(), false);
    ForgetRoom(job.metadata.Key());
  }
  SetHungry(job.metadata.Key(), true);  // Before asking, so that room freed from now on wakes the job.
  const std::optional<int> priority = PriorityOfStart(view, sizes, pods);
  if (!priority || WaitsForOthers(view, sizes)) {
    view.may_start = false;
    account_.StopAsking(owner);
    return false;
  }
  if (has_places) {
    // The places come from a pass over another job, or from one whose children were refused.
    view.room.copies = std::min(static_cast<int>(places.size()), sizes.wanted);
    account_.StopAsking(owner);
    account_.KeepPlaces(LauncherOwner(owner), pods.launcher_shape, 1);
    account_.KeepPlaces(owner, pods.worker_shape, view.room.copies);
    view.must_protect_places = account_.MustProtect(owner);
    return false;
  }
  if (places.empty()) account_.Forget(LauncherOwner(owner));  // Kept for a lost one: the next needs workers first.
  GangDemand demand;
  demand.key = owner;
  demand.priority = *priority;
  // Where the speed is known by size, start with what is worth it.
  const int wanted =
      std::max(sizes.NeededToStart(), std::min(sizes.wanted, account_.TargetOf(owner).value_or(sizes.wanted)));
  demand.members.assign(static_cast<std::size_t>(wanted), pods.worker_shape);
  // Workers alone train nothing: put the launcher right behind those that a start needs.
  demand.members.insert(demand.members.begin() + sizes.NeededToStart(), pods.launcher_shape);
  demand.companion = {sizes.NeededToStart(), LauncherOwner(owner)};
  demand.needed = sizes.NeededToStart() + 1;
  demand.waiting_since = UnixSeconds(job.metadata.creation_timestamp.value_or(view.now));
  demand.runtime_seconds = LongestRun(view);
  const GangStanding standing = account_.Ask(demand);
  view.may_start = standing.is_placed;
  view.is_refused_by_queue = !standing.queue_refusal.empty();
  view.can_never_fit = standing.is_hopeless();
  view.room = account_.RoomFor(owner, pods.worker_shape, sizes.wanted);
  if (standing.is_placed) {
    view.room.copies = standing.placed - 1;
    view.must_protect_places = account_.MustProtect(owner);
    if (view.alive() > 0) account_.NotifyPlaced(owner);  // Its gang lifts the gates.
    return false;
  }
  view.queue_looks_again = account_.TimeUntilChange(owner);
  view.why_no_room = WhyNoRoom(demand, standing, WordsOf(job.spec));
  const Room for_launcher = account_.RoomFor(LauncherOwner(owner), pods.launcher_shape, 1);
  if (for_launcher.nodes == 0 && standing.closed.empty()) view.launcher_lacks = LauncherLacks::kAnyNode;
  else if (standing.fitting == sizes.NeededToStart()) view.launcher_lacks = LauncherLacks::kRoom;
  return true;
}

void ElasticPlanning::ReleaseUnmade(const View& view) {
  const kube::ObjectKey key = view.job->metadata.Key();
  const std::string owner = key.ToString();
  SetHungry(key, false);  // Before the room comes free, or it would wake the job.
  quotas_.Forget(key);
  if (const int owed = view.owed(); owed > 0) {
    const JobPod worker = pods_.Worker(*view.job);
    account_.KeepPlaces(owner, account_.ShapeOf(*worker.pod, account_.VolumesOf(*worker.pod)), owed);
  } else {
    account_.Forget(owner);
  }
  // Workers granted earlier still need their launcher.
  if (view.granted() == 0) account_.Forget(LauncherOwner(owner));
}

void ElasticPlanning::LearnPods(const View& view) {
  if (view.pods.empty()) return;
  const auto pod = caches_.pods.Get<kube::Pod>({view.job->metadata.ns, view.pods.front().name});
  if (pod && !pod->metadata.is_being_deleted()) pods_.Learn(*view.job, *pod);
}

void ElasticPlanning::ForgetRoom(const kube::ObjectKey& job) {
  account_.Forget(job.ToString());
  account_.Forget(LauncherOwner(job.ToString()));
}

void ElasticPlanning::Forget(const kube::ObjectKey& job) {
  SetHungry(job, false);  // Before the room comes free, or it would wake the job.
  quotas_.Forget(job);
  pods_.Forget(job);
  ForgetRoom(job);
  account_.RemoveHolder(job.ToString());
  account_.SetEnd(LauncherOwner(job.ToString()), std::nullopt);
}

void ElasticPlanning::SetHungry(const kube::ObjectKey& job, bool is_hungry) {
  std::lock_guard lock(mutex_);
  if (is_hungry) hungry_.insert(job);
  else hungry_.erase(job);
}

bool ElasticPlanning::IsHungry(const kube::ObjectKey& job) const {
  std::lock_guard lock(mutex_);
  return hungry_.contains(job);
}

void ElasticPlanning::FeedHungry() const {
  std::lock_guard lock(mutex_);
  for (const kube::ObjectKey& job : hungry_) feed_.Add(job);
}

// A changed volume claim may let waiting jobs use other nodes.
void ElasticPlanning::FeedHungryWithVolumes(const kube::ObjectKey& claim) {
  std::lock_guard lock(mutex_);
  for (const kube::ObjectKey& job : hungry_) {
    if (job.ns == claim.ns && pods_.HasVolumes(job)) feed_.AddAfter(job, kCacheLag);
  }
}

}  // namespace grus
