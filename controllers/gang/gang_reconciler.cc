// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_reconciler.h"

#include <algorithm>
#include <tuple>

#include "controllers/cluster/owners.h"
#include "controllers/frame/retry_times.h"
#include "controllers/gang/gang_news.h"
#include "controllers/gang/gang_runtime.h"
#include "controllers/gang/gang_status.h"
#include "controllers/gang/gang_yield.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {
namespace {

using kube::Action;
using kube::Error;
using kube::ErrorCode;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

constexpr kube::Duration kRunningWait = std::chrono::milliseconds(500);  // Members start to run one after another.
// For pods that end together to be gone, before a gang that fits into a part of their room takes it: 150 ms were too
// short. The next start comes this much later (adr/0013).
constexpr kube::Duration kFreedWait = std::chrono::milliseconds(400);
constexpr kube::Duration kStandingWait = std::chrono::seconds(1);  // A wave of changes concerns all waiting gangs.
constexpr kube::Duration kOrphanGrace = std::chrono::seconds(5);   // Many make a PodGroup a moment after its pods.
constexpr int kMostLooks = 5;                                      // At a large gang while its members are being bound.

}  // namespace

GangReconciler::GangReconciler(kube::Client& client, const kube::Kind& kind, kube::Informer& groups,
                               kube::Informer& pods, ClusterAccount& account, GangPeers peers,
                               kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log)
    : kind_(kind),
      groups_(groups),
      pods_(pods),
      account_(account),
      peers_(peers),
      events_(events),
      clock_(clock),
      log_(log),
      pods_by_group_(pods.AddIndex([&kind](const kube::Object& pod) -> std::vector<std::string> {
        const std::optional<ObjectKey> group = GroupOfPod(kind, static_cast<const kube::Pod&>(pod));
        if (!group) return {};
        return {group->ToString()};
      })),
      pods_by_volume_claim_(pods.AddIndex([&kind](const kube::Object& pod) {
        return VolumeClaimsAwaitedBy(kind, static_cast<const kube::Pod&>(pod));
      })),
      feed_(writes_, kRunningWait),
      statuses_(client, kind, groups, peers.scheduler_plugins, writes_, events, clock, log),
      members_(client, account, writes_, clock, log) {}

void GangReconciler::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  feed_.AddObjectsOf(groups_);
  pods_.AddHandler([this](const kube::Change& change, bool is_initial) {
    const auto* before = static_cast<const kube::Pod*>(change.before.get());
    const auto* after = static_cast<const kube::Pod*>(change.after.get());
    const std::optional<ObjectKey> key = GroupOfPod(kind_, static_cast<const kube::Pod&>(change.Any()));
    const std::optional<ObjectKey> key_before = before ? GroupOfPod(kind_, *before) : key;
    if (key_before && key_before != key) feed_.Add(*key_before);
    if (key) feed_.AddChanged(*key, KindOf<kube::Pod>(), change, NewsOfMember(before, after), is_initial);
  });
  account_.BeforePlanning([this] { EnqueueBegun(); });
  account_.OnVolumeClaim([this](const ObjectKey& claim) {
    for (const auto& pod : pods_.ByIndex<kube::Pod>(pods_by_volume_claim_, claim.ToString())) {
      feed_.Add({pod->metadata.ns, std::string(GroupNameOf(kind_, pod->metadata))});
    }
  });
  account_.OnStanding([this](const std::string& gang, bool is_urgent) {
    const std::optional<ObjectKey> key = GroupOfGang(kind_, gang);
    if (!key || !groups_.store().Get(*key)) return;
    if (is_urgent) feed_.Add(*key);
    else feed_.AddAfter(*key, kStandingWait);
  });
  account_.OnYield([this](const std::string& owner) {
    const std::optional<ObjectKey> key = GroupOfGang(kind_, owner);
    if (key && groups_.store().Get(*key)) feed_.Add(*key);
  });
  account_.OnFreed([this] {
    const std::optional<ObjectKey> key = GroupOfGang(kind_, account_.AnyWaiting());
    if (key && groups_.store().Get(*key)) feed_.AddAfter(*key, kFreedWait);
  });
  if (peers_.scheduler != nullptr) peers_.scheduler->OnChange([this] { FeedNominated(); });
  if (peers_.scheduler_plugins != nullptr) {
    peers_.scheduler_plugins->OnChange([this] {
      for (const auto& group : groups_.List<api::PodGroup>()) feed_.Add(group->metadata.Key(), News::kNow, true);
    });
  }
}

void GangReconciler::EnqueueBegun() {
  for (const auto& group : groups_.List<api::PodGroup>()) {
    const GangView view = Observe(group, GangKey(kind_, group->metadata.Key()));  // Adopts its places.
    PutHolder(view);
    // Plan first for members whose gate was lifted without a nomination: nobody knows where they will go.
    const std::optional<GangDemand> demand = NeedsOf(view);
    if (demand && demand->waiting_since == 0) account_.Enqueue(*demand);
  }
}

void GangReconciler::FeedNominated() const {
  int nominated = 0;
  for (const auto& pod : pods_.List<kube::Pod>()) {
    const std::string_view group = GroupNameOf(kind_, pod->metadata);
    const bool is_nominated = !pod->spec.scheduling_gates.empty() && !pod->status.nominated_node_name.empty();
    if (!is_nominated || group.empty()) continue;
    ++nominated;
    feed_.Add({pod->metadata.ns, std::string(group)});
  }
  const std::string holder = peers_.scheduler->holder();
  if (nominated > 0 && !holder.empty()) {
    log_.Info("another scheduler leads: members are nominated anew", {{"scheduler", holder}, {"members", nominated}});
  }
}

ShapePtr GangReconciler::ShapeOf(const kube::Pod& pod, VolumeLimits volumes) {
  if (pod.metadata.Annotation(kGangPinnedAnnotation).empty()) return account_.ShapeOf(pod, std::move(volumes));
  kube::Pod free = pod;
  free.spec = WithoutPin(pod);
  return account_.ShapeOf(free, std::move(volumes));
}

GangView GangReconciler::Observe(const Group& group, const std::string& gang) {
  GangView view;
  view.group = statuses_.WithLastStatus(group);
  view.key = gang;
  view.now = kube::Time{clock_.WallNow()};
  const kube::OwnerReference* owner = group->metadata.Controller();
  view.is_planned_by_owner = owner && owner->kind == KindOf<api::ElasticHorovodJob>().kind;
  if (peers_.scheduler != nullptr && members_.keeps_annotations()) view.scheduler = peers_.scheduler->holder();
  // A member bound between reading members and places would seem to have lost its place, and the gang to need one more.
  std::vector<Place> before;
  for (int looks = 0; looks == 0 || (view.is_torn && looks < kMostLooks); ++looks) {
    before = account_.PlacesOf(gang);
    view.members = ReadMembers(*group, view.is_planned_by_owner);
    view.places = account_.PlacesOf(gang);
    view.is_torn = view.places != before;
  }
  const Memory memory = memory_.With(group->metadata, [&](Memory& kept) {
    kept.is_planned_by_owner = view.is_planned_by_owner;
    return kept;
  });
  view.avoid = memory.avoid;
  if (!memory.is_adopted && !view.is_planned_by_owner) AdoptPlaces(view);
  return view;
}

void GangReconciler::AdoptPlaces(GangView& view) {
  if (view.places.empty()) {
    for (const Member& member : view.members) {
      const std::string& node = member.planned_node();
      if (member.IsUnbound() && !node.empty()) account_.AddPlace(view.key, {node, member.shape, member.planned_gpu});
    }
    view.places = account_.PlacesOf(view.key);
  }
  memory_.With(view.group->metadata, [](Memory& kept) { kept.is_adopted = true; });
}

std::vector<Member> GangReconciler::ReadMembers(const api::PodGroup& group, bool has_planning_owner) {
  std::vector<Member> members;
  const auto pods = pods_.ByIndex<kube::Pod>(pods_by_group_, group.metadata.Key().ToString());
  account_.CatchUpWith(pods);
  for (const auto& pod : pods) {
    const bool is_unbound = pod->spec.node_name.empty() && !HasEnded(*pod) && !pod->metadata.is_being_deleted();
    VolumeLimits volumes = is_unbound ? account_.VolumesOf(*pod) : VolumeLimits();
    // An owner that plans for its pods gives them to the scheduler despite such problems.
    const std::string problem = has_planning_owner ? std::string() : volumes.problem;
    members.push_back(ReadMember(*pod, is_unbound ? ShapeOf(*pod, std::move(volumes)) : nullptr, has_planning_owner));
    members.back().volume_problem = problem;
  }
  MarkEarlierRuns(members, kube::Time{clock_.WallNow()});
  std::ranges::sort(members, {}, [](const Member& member) { return std::tie(member.ordinal, member.name); });
  return members;
}

// A job that plans for its group is the holder: both have the same key in the account.
void GangReconciler::PutHolder(const GangView& view) {
  if (!view.is_planned_by_owner) account_.PutHolder(view.key, HolderOf(view));
}

void GangReconciler::AskAccount(GangView& view) {
  PutHolder(view);
  if (!view.is_planned_by_owner) {
    view.yield = account_.YieldOf(view.key);
    view.runtime_limit = account_.RuntimeLimitOf(view.key);
  }
  view.demand = NeedsOf(view);
  if (view.demand) {
    view.standing = account_.Ask(*view.demand);
    if (!view.standing.is_placed && !view.demand->avoid.empty()) {
      // Better a node that was refused once than none.
      view.demand->avoid.clear();
      memory_.With(view.group->metadata, [](Memory& kept) { kept.avoid.clear(); });
      view.standing = account_.Ask(*view.demand);
    }
    view.places = account_.PlacesOf(view.key);
  } else if (!view.is_planned_by_owner) {
    account_.StopAsking(view.key);
  }
  const bool must_protect = account_.MustProtect(view.key), pins = account_.Pins();
  // The workers of a job were planned before their pods: those without a gate go where the scheduler likes.
  const bool is_packed = !view.is_planned_by_owner && account_.SharesNodes(view.key);
  view.must_nominate = (must_protect || is_packed) && !pins;
  view.must_pin = must_protect && pins;
  const int priority = view.members.empty() ? 0 : view.members.front().priority;
  const kube::TimePoint protected_since = memory_.Get(view.group->metadata).protected_since.value_or(clock_.Now());
  view.safety = must_protect ? account_.Check(view.key, view.places, priority, protected_since) : Safety::kSafe;
  if (view.is_planned_by_owner) return;  // Both have the same key: its job knows when it ends.
  if (const std::optional<std::int64_t> end = LatestEnd(view); end || !LongestRun(view)) account_.SetEnd(view.key, end);
}

Action GangReconciler::TellOrphans(const ObjectKey& key) {
  const std::string why = key.name.empty()
                              ? "the pod has the scheduling gate " + std::string(api::kGangGate) +
                                    " and no label that names its PodGroup: add the label " +
                                    std::string(api::kPodGroupLabel) + ", or remove the gate"
                              : "the pod waits for PodGroup " + key.ToString() + " of " + std::string(kind_.group) +
                                    ", which does not exist in its namespace; create it or correct the label";
  std::optional<kube::Duration> look_again;
  for (const auto& pod : pods_.ByIndex<kube::Pod>(pods_by_group_, key.ToString())) {
    if (!HasGate(*pod, api::kGangGate) || pod->metadata.is_being_deleted()) continue;
    const auto& created = pod->metadata.creation_timestamp;
    const kube::Duration left = created ? created->value + kOrphanGrace - clock_.WallNow() : kube::Duration::zero();
    if (left > kube::Duration::zero()) {
      look_again = std::min<kube::Duration>(look_again.value_or(kOrphanGrace), left);
      continue;
    }
    events_.Record(kube::EventType::kWarning, KindOf<kube::Pod>(), pod->metadata, "NoPodGroup", "PlaceGang", why);
  }
  return look_again ? Action::After(*look_again) : Action::AwaitChange();
}

void GangReconciler::Forget(const ObjectKey& key) {
  writes_.Forget(key);
  statuses_.Forget(key);
  const std::optional<Memory> kept = memory_.Forget(key);
  // A job goes on without its PodGroup and keeps its places.
  if (!kept || kept->is_planned_by_owner) return;
  account_.Forget(GangKey(kind_, key));
  account_.RemoveHolder(GangKey(kind_, key));
}

Result<Action> GangReconciler::Reconcile(const ObjectKey& key, std::stop_token stop) {
  const Group group = groups_.Get<api::PodGroup>(key);
  if (!group) {
    Forget(key);
    return TellOrphans(key);
  }
  if (!writes_.HasCaughtUp(group->metadata, {&groups_, &pods_})) return Action::After(kCacheLag);
  GangView view = Observe(group, GangKey(kind_, key));
  if (view.is_torn) return Action::After(kCacheLag);
  AskAccount(view);
  const GangPlan plan = PlanGang(view);
  if (plan.is_ignored) {
    if (!view.is_planned_by_owner) account_.Forget(view.key);
    return Action::AwaitChange();
  }
  KeepPlaces(view, plan);
  std::atomic<bool> may_have_lifted = false;
  Result<Deferred> done = Execute(view, plan, may_have_lifted, stop);
  if (!done) return Refused(view, plan, may_have_lifted, std::move(done).error(), stop);
  // Record events only with the status: otherwise a pass that defers it would record them twice.
  if (!*done) Tell(plan.events, events_, log_, kind_, group->metadata, "gang");
  return Action::After(TimeToLookAgain(view, plan, *done));
}

void GangReconciler::KeepPlaces(const GangView& view, const GangPlan& plan) {
  memory_.With(view.group->metadata, [&](Memory& kept) {
    if (!plan.is_verifying) kept.protected_since.reset();
    else if (!kept.protected_since) kept.protected_since = clock_.Now();
  });
  if (view.is_planned_by_owner) {
    // The owner gives up workers that find no node, but not gated ones whose node was taken.
    if (plan.must_replan) account_.DropPlacesThatNoLongerFit(view.key);
  } else if (plan.must_replan) {
    account_.Forget(view.key);
  } else {
    account_.SetPlaces(view.key, plan.keep_places);
  }
}

Result<Deferred> GangReconciler::Execute(const GangView& view, const GangPlan& plan, std::atomic<bool>& may_have_lifted,
                                         std::stop_token stop) {
  // On start, write the status after lifting; on roll-back, before deleting: a process that stops in between leaves the
  // rest to the next.
  if (plan.end.empty()) {
    if (Status started = members_.Start(view, plan, may_have_lifted, stop); !started) return std::move(started).error();
  }
  Result<Deferred> written = statuses_.Write(view, plan.status, stop);
  if (!written) return written;
  if (!plan.refused.empty()) {
    memory_.With(view.group->metadata,
                 [&](Memory& kept) { kept.avoid.insert(plan.refused.begin(), plan.refused.end()); });
  }
  if (Status ended = members_.End(view, plan, stop); !ended) return std::move(ended).error();
  return written;
}

kube::Duration GangReconciler::TimeToLookAgain(const GangView& view, const GangPlan& plan, Deferred deferred) const {
  // At once: the next pass finds the cache behind these writes, so the event of the last nomination wakes the key.
  if (!plan.nominate.empty()) return std::chrono::milliseconds(1);
  const auto change = view.demand ? account_.TimeUntilChange(view.key) : std::nullopt;
  kube::Duration again = std::min({plan.look_again.value_or(kSafetyResync), deferred.value_or(kSafetyResync),
                                   change.value_or(kSafetyResync), kSafetyResync});
  if (const auto others = statuses_.TimeUntilOthersLoseStatus()) {
    again = std::min(again, *others + std::chrono::milliseconds(1));
  }
  return again;
}

Result<Action> GangReconciler::Refused(const GangView& view, const GangPlan& plan, bool may_have_lifted, Error error,
                                       std::stop_token stop) {
  if (!IsRefusal(error)) return error;
  // That its queue ended it stands in its reason alone: another one would let it start again.
  if (GangReasonIn(plan.status) == ToString(GangReason::kDeadlineExceeded)) return error;
  // Members whose gate is lifted, also in this pass, may be bound at any time, so their places stay.
  if (!view.is_planned_by_owner && !HasBegun(view) && !may_have_lifted) account_.Forget(view.key);
  const GangReason reason =
      error.code() == ErrorCode::kForbidden ? GangReason::kNotPermitted : GangReason::kPodsRefused;
  api::PodGroupStatus status = plan.status;  // The time limit of the gang keeps running.
  SetGangReason(status, view, status.phase, reason, error.message());
  if (GangReasonIn(view.group->status) != ToString(reason)) {
    log_.Warn("gang cannot be placed", {{"gang", view.key}, {"error", error.message()}});
    events_.Record(kube::EventType::kWarning, kind_, view.group->metadata, ToString(reason), "PlaceGang",
                   error.message());
  }
  auto written = statuses_.Write(view, status, stop);
  if (!written) return std::move(written).error();
  return Action::After(std::min(written->value_or(kRefusedRetry), kRefusedRetry));
}

}  // namespace grus
