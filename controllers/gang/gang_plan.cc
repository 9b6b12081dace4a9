// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_plan.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "controllers/gang/gang_runtime.h"
#include "controllers/gang/gang_status.h"
#include "controllers/gang/gang_yield.h"
#include "controllers/policy/gang_message.h"
#include "controllers/policy/waited.h"
#include "controllers/policy/yield_words.h"
#include "controllers/queues/wording.h"

namespace grus {
namespace {

// No event tells that the scheduler has decided about pods of others, or has had time enough. A pass that only looks
// sends no request, so looking ten times a second costs little and delays the start by no more than that.
constexpr kube::Duration kReplanWait = std::chrono::milliseconds(100);

class Planner {
 public:
  explicit Planner(const GangView& view)
      : view_(view),
        tally_(Count(view)),
        min_(view.group->spec.min_member),
        reason_before_(GangReasonIn(view.group->status)) {}

  GangPlan Make() {
    plan_.status = BaseGangStatus(view_);
    NoteRun(view_, plan_.status);
    if (view_.group->metadata.is_being_deleted()) {
      plan_.is_ignored = true;
      return std::move(plan_);
    }
    // All members that started together are gone.
    if (tally_.scheduled() == 0 && plan_.status.started_min_member > 0) ForgetStart();
    if (min_ < 1) {
      Say(kGangPending, GangReason::kInvalidMinimum,
          "spec.minMember is " + std::to_string(min_) + "; set it to 1 or more");
    } else if (!PlanDeadline() && !PlanEnd() && !PlanPreemption() && !PlanRollBack() && !PlanNotice()) {
      PlanStart();
      PlanRepair();
      SayProgress();
      plan_.notes = DeadlineNotes(view_, {});
    }
    AddGivenUp(view_, plan_.end);
    return std::move(plan_);
  }

 private:
  void Say(const std::string& phase, GangReason reason, const std::string& message) {
    const std::string problem = view_.is_planned_by_owner ? std::string() : ClassProblem(*view_.group);
    const bool is_told = problem.empty() || message.ends_with(problem);
    SetGangReason(plan_.status, view_, phase, reason, is_told ? message : message + "; " + problem);
    if (reason_before_ == ToString(reason)) return;
    if (reason == GangReason::kBelowMinimum && tally_.ending > 0) return;  // Somebody deletes members on purpose.
    if (const auto type = EventOf(reason)) Tell(*type, reason, "PlaceGang", message);
  }
  void Tell(kube::EventType type, GangReason reason, const char* action, const std::string& note) {
    plan_.events.push_back({type, std::string(ToString(reason)), action, note});
  }
  // "3 of the 8 members that start together"
  std::string OfMinimum(int count) const {
    return std::to_string(count) + " of the " + Count(min_, "member") + " that start together";
  }
  void LookAgain(kube::Duration delay) { plan_.look_again = std::min(plan_.look_again.value_or(delay), delay); }

  // The next start is a new one, not another try.
  void ForgetStart() {
    plan_.status.started_min_member = 0;
    plan_.status.attempts = 0;
    plan_.status.next_attempt_time.reset();
  }

  void NoteTogether() {
    plan_.status.schedule_start_time.reset();
    plan_.status.started_min_member = min_;
  }

  // Its queue lets it run no longer: all that come back gated end, and stay gated.
  bool PlanDeadline() {
    const auto left = TimeUntilDeadline(view_);
    if (!IsOverdue(view_)) {
      if (left && tally_.bound > 0) LookAgain(*left);
      return false;
    }
    plan_.end = RollBackList(view_);
    ClearNominations({});
    ForgetStart();
    plan_.status.schedule_start_time.reset();
    const bool was_told = reason_before_ == ToString(GangReason::kDeadlineExceeded);
    Say(kGangFailed, GangReason::kDeadlineExceeded, was_told ? Message() : OverdueMessage(view_));
    return true;
  }

  bool PlanEnd() {  // False: the gang has not ended.
    if (tally_.alive() > 0 || tally_.ending > 0) return false;
    if (plan_.status.succeeded >= min_) {
      Say(kGangFinished, GangReason::kSucceeded, Count(plan_.status.succeeded, "member") + " succeeded");
    } else if (tally_.failed > 0) {
      // The other members may be gone: a Job that gives up deletes what still runs.
      Say(kGangFailed, GangReason::kFailed,
          Count(tally_.failed, "member") + " failed, " + OfMinimum(tally_.succeeded) + " succeeded");
    } else {
      return false;
    }
    ForgetStart();
    plan_.status.schedule_start_time.reset();
    return true;
  }

  bool PlanRollBack() {
    api::PodGroupStatus& status = plan_.status;
    const bool is_below = tally_.scheduled() < MinimumToRun(view_, tally_);
    if (is_below && IsBackingOff(view_, tally_)) {
      LookAgain(status.next_attempt_time->value - view_.now.value);
      plan_.end = RollBackList(view_);
      SayBackingOff();
      return true;
    }
    if (!is_below) return false;
    const std::optional<kube::Time> start = TimeLimitStart(view_, tally_);
    status.schedule_start_time = start;
    if (view_.group->status.phase == kGangRunning) status.attempts = 0;  // Those were tries of its extras.
    if (!start || view_.is_planned_by_owner) return false;
    const std::vector<const Member*> list = RollBackList(view_);
    if (list.empty()) return false;
    const kube::Duration left = ScheduleTimeout(*view_.group) - Waited(view_.now, *start);
    if (left > kube::Duration::zero()) {
      LookAgain(left);
      ends_at_ = kube::Time{start->value + ScheduleTimeout(*view_.group)};
      return false;
    }
    plan_.end = list;
    for (const Assignment& a : Assign(view_)) {
      if (a.member->state == MemberState::kLifted) plan_.refused.insert(a.place.node);
    }
    status.schedule_start_time.reset();
    status.started_min_member = 0;
    BackOff();
    SayBackingOff();
    Tell(kube::EventType::kWarning, GangReason::kBackingOff, "RollBackGang", Message());
    return true;
  }

  // The time of the notice is over: the gang gives its nodes back, and is in the queue again, without a back-off. A
  // delete that fails is repeated while the notice stands.
  bool PlanPreemption() {
    if (!view_.yield || TimeLeft(*view_.yield, view_.now) > kube::Duration::zero()) return false;
    plan_.end = RollBackList(view_);
    if (plan_.end.empty()) return false;
    ForgetStart();
    plan_.status.schedule_start_time.reset();
    Say(kGangPending, GangReason::kPreempted, PreemptedMessage(view_, plan_.end));
    return true;
  }

  // While the notice runs, members run on and no other starts. Once they have ended, the gang waits until those who get
  // the GPUs have them.
  bool PlanNotice() {
    if (!view_.yield) return false;
    const std::vector<const Member*> ending = RollBackList(view_);
    if (ending.empty() && tally_.lifted + tally_.bound > 0) return false;  // Nobody would make its pods again.
    std::vector<Assignment> assigned = Assign(view_);
    std::erase_if(assigned, [](const Assignment& a) { return a.member->state == MemberState::kGated; });
    for (const Assignment& a : assigned) plan_.keep_places.push_back(a.place);
    ClearNominations(assigned);
    if (ending.empty()) {
      const bool was_told = reason_before_ == ToString(GangReason::kPreempted);
      Say(kGangPending, GangReason::kPreempted, was_told ? Message() : PreemptedMessage(view_, ending));
      return true;
    }
    if (tally_.scheduled() >= min_) NoteTogether();
    const bool has_run = view_.group->status.phase == kGangRunning;
    Say(IsRunning() || has_run ? kGangRunning : kGangScheduling, GangReason::kPreempting,
        PreemptingMessage(view_, ending));
    plan_.notes = DeadlineNotes(view_, ending);
    LookAgain(TimeLeft(*view_.yield, view_.now));
    return true;
  }

  void BackOff() {
    const std::chrono::seconds wait = BackoffAfter(++plan_.status.attempts);
    plan_.status.next_attempt_time = kube::Time{view_.now.value + wait};
    LookAgain(wait);
  }

  void SayBackingOff() {
    const api::PodGroupStatus& status = plan_.status;
    if (reason_before_ == ToString(GangReason::kBackingOff)) {
      return Say(kGangPending, GangReason::kBackingOff, Message());
    }
    Say(kGangPending, GangReason::kBackingOff,
        "gave its nodes back: " + OfMinimum(tally_.scheduled()) + " had one after " +
            std::to_string(ScheduleTimeout(*view_.group).count()) + " s" + SchedulersWord(view_) + "; try " +
            std::to_string(status.attempts + 1) + " begins at " + kube::ToText(*status.next_attempt_time));
  }

  const std::string& Message() const { return kube::FindCondition(plan_.status.conditions, "Ready")->message; }

  void PlanStart() {
    std::vector<Assignment> assigned = Assign(view_);
    if (IsBackingOff(view_, tally_)) {
      // Members whose gate is lifted keep their places.
      std::erase_if(assigned, [](const Assignment& a) { return a.member->state == MemberState::kGated; });
      LookAgain(plan_.status.next_attempt_time->value - view_.now.value);
    } else {
      plan_.status.next_attempt_time.reset();
    }
    for (const Assignment& a : assigned) plan_.keep_places.push_back(a.place);
    const bool is_replacing = IsReplacing(view_, tally_);
    is_enough_ = is_replacing || tally_.scheduled() + static_cast<int>(assigned.size()) >= min_;
    if (!is_enough_) {
      ClearNominations(assigned);
      const bool do_all_exist = tally_.alive() + tally_.succeeded >= min_;
      const bool shows_demand = view_.group->spec.when_unschedulable == api::WhenUnschedulable::kUngate;
      if (shows_demand && do_all_exist && view_.standing.queue_refusal.empty())
        LiftMissing();  // A cluster autoscaler then sees what is missing.
      return;
    }
    const bool is_by_gpu = std::ranges::any_of(assigned, [](const auto& a) { return !a.place.ToldGpu().empty(); });
    if (!is_replacing || is_by_gpu) PlanLift(assigned);
    // A replacement in a running gang starts at once: the node of the lost member is likely free.
    if (is_replacing && !is_preparing_ && !is_unsafe_) LiftMissing();
    if (is_replacing && !is_by_gpu) std::ranges::for_each(assigned, [this](const auto& a) { Lift(*a.member); });
    // Beyond the minimum the owner decides how many may run; the scheduler finds out what fits.
    if (view_.is_planned_by_owner && tally_.scheduled() >= min_ && !is_preparing_ && !is_unsafe_) {
      for (const Member& member : view_.members) Lift(member);
    }
    ClearNominations(assigned);
  }

  void PlanLift(const std::vector<Assignment>& assigned) {
    if (view_.must_nominate) {
      for (const Assignment& a : assigned) {
        const bool is_nominated = a.member->nominated == a.place.node && !IsForgotten(view_, *a.member);
        if (!is_nominated) plan_.nominate.push_back({a.member, a.place.node});
      }
      is_preparing_ = !plan_.nominate.empty();
    }
    if (is_preparing_) return;
    const auto is_gated = [](const Assignment& a) { return a.member->state == MemberState::kGated; };
    if (std::ranges::any_of(assigned, is_gated) && view_.safety != Safety::kSafe) {
      is_unsafe_ = true;
      plan_.must_replan = view_.safety == Safety::kTaken;
      plan_.is_verifying = !plan_.must_replan;
      LookAgain(kReplanWait);
      return;
    }
    for (const Assignment& a : assigned) {
      const bool is_pinned = view_.must_pin && !a.member->has_own_hostname;
      Lift(*a.member, is_pinned ? a.place.node : "", a.place.ToldGpu());
    }
  }

  void Lift(const Member& member, const std::string& pinned_to = {}, const std::string& gpu = {}) {
    if (member.state != MemberState::kGated || member.MustStayGated()) return;
    if (lifted_.insert(&member).second) plan_.lift.push_back({&member, pinned_to, gpu});
  }

  // As many as the minimum lacks, with or without places.
  void LiftMissing() {
    const int missing = MinimumToRun(view_, tally_) - tally_.scheduled() - tally_.lifted;
    const bool replaces = IsReplacing(view_, tally_);
    for (const Member& member : view_.members) {
      if (static_cast<int>(plan_.lift.size()) >= missing) break;
      if (!replaces || !member.WaitsForItsGpu()) Lift(member);
    }
  }

  void ClearNominations(const std::vector<Assignment>& assigned) {
    const std::unordered_set<const Member*> has_place = MembersOf(assigned);
    for (const Member& member : view_.members) {
      const bool is_nominated = member.state == MemberState::kGated && !member.nominated.empty();
      if (is_nominated && !has_place.contains(&member)) plan_.nominate.push_back({&member, ""});
    }
  }

  // An extra (a member beyond the minimum) that found no node is deleted and waits gated again, for longer each time
  // until one finds its node.
  void PlanRepair() {
    if (tally_.scheduled() < MinimumToRun(view_, tally_) || view_.is_planned_by_owner) return;
    const api::PodGroupStatus& before = view_.group->status;
    if (before.phase == kGangRunning ? tally_.scheduled() > before.scheduled : IsRunning()) plan_.status.attempts = 0;
    for (const Member& member : view_.members) {
      if (member.state != MemberState::kLifted || !ComesBackGated(member)) continue;
      const kube::Duration left = ScheduleTimeout(*view_.group) - Waited(view_.now, *member.lifted_at);
      if (left <= kube::Duration::zero()) plan_.end.push_back(&member);
      else LookAgain(left);
    }
    if (plan_.end.empty()) return;
    plan_.keep_places.clear();
    for (const Assignment& a : Assign(view_)) {
      if (a.member->state != MemberState::kLifted) continue;
      const bool is_refused = std::ranges::find(plan_.end, a.member) != plan_.end.end();
      if (is_refused) plan_.refused.insert(a.place.node);
      else plan_.keep_places.push_back(a.place);
    }
    BackOff();
  }

  bool IsRunning() const { return tally_.running + tally_.succeeded >= min_; }

  void SayProgress() {
    if (tally_.scheduled() >= min_) return SayTogether();
    const int existing = tally_.alive() + tally_.succeeded;
    if (IsReplacing(view_, tally_)) {
      std::string message = OfMinimum(tally_.scheduled()) + " have a node";
      if (existing < min_) {
        message += "; " + WhatIsMissing(view_, min_ - existing);
      } else if (ends_at_) {
        message += "; if it is not whole by " + kube::ToText(*ends_at_) + ", all give their nodes back";
      }
      return Say(kGangScheduling, GangReason::kBelowMinimum, message);
    }
    const bool is_under_way = tally_.lifted + tally_.bound > 0 || !plan_.lift.empty();
    if (is_under_way && is_enough_ && !is_preparing_ && !is_unsafe_) return SayStarting();
    if (existing < min_) {
      // Pods that never had a gate started by themselves.
      return Say(HasBegun(view_) ? kGangScheduling : kGangPending, GangReason::kWaitingForMembers,
                 OfMinimum(existing) + " exist; " + WhatIsMissing(view_, min_ - existing));
    }
    if (const int foreign = CountGatedByOthers(view_); existing - foreign < min_) {
      const auto first = std::ranges::find_if(view_.members, [](const Member& m) { return !m.foreign_gate.empty(); });
      return Say(kGangPending, GangReason::kGatedByOthers,
                 Count(foreign, "member") + (foreign == 1 ? " has a scheduling gate" : " have scheduling gates") +
                     " of another controller: " + first->foreign_gate);
    }
    if (const int stuck = CountStuck(view_); existing - stuck < min_) {
      const auto first = std::ranges::find_if(view_.members, [](const Member& m) { return !m.volume_problem.empty(); });
      return Say(is_under_way ? kGangScheduling : kGangPending, GangReason::kWaitingForRoom,
                 OfMinimum(existing - stuck) + " can be placed; " + first->name +
                     (first->volume_problem.starts_with("PersistentVolume") ? " waits for its volume: "
                                                                            : " waits for its devices: ") +
                     first->volume_problem);
    }
    if (is_preparing_) {
      return Say(kGangPending, GangReason::kPreparing,
                 "nominating " + Count(min_ - tally_.scheduled(), "member") + " for nodes");
    }
    if (is_unsafe_) {
      return Say(kGangPending, GangReason::kPreparing,
                 plan_.must_replan ? "looking for other nodes: one that was planned is taken"
                                   : "waiting for the scheduler to decide about pods of others, for 20 s at most");
    }
    // A placed gang with too few places has had members bound since, which this view does not show yet.
    const bool waits = view_.demand && !view_.standing.is_placed;
    if (is_under_way && !waits) return SayStarting();
    const PendingWords words{.minimum = min_ > 1 ? "minMember" : ""};
    const std::string why = waits                       ? WhyPending(*view_.demand, view_.standing, words)
                            : view_.is_planned_by_owner ? "waiting for the room that its ElasticHorovodJob looks for"
                                                        : std::string("waiting for room");
    const GangReason reason = view_.standing.is_hopeless()            ? GangReason::kCannotFit
                              : !view_.standing.queue_refusal.empty() ? GangReason::kWaitingForQueue
                                                                      : GangReason::kWaitingForRoom;
    Say(is_under_way ? kGangScheduling : kGangPending, reason, why);
  }

  void SayStarting() {
    Say(kGangScheduling, GangReason::kStarting, OfMinimum(tally_.scheduled()) + " have a node" + SchedulersWord(view_));
  }

  void SayTogether() {
    std::string message = IsRunning()
                              ? Count(tally_.running, "member") + (tally_.running == 1 ? " runs" : " run")
                              : Count(tally_.scheduled(), "member") + " of " + std::to_string(min_) + " have a node";
    if (tally_.succeeded > 0) message += ", " + std::to_string(tally_.succeeded) + " succeeded";
    // Members that wait for foreign gates, volumes or devices do not wait for room.
    if (const int waiting = tally_.unbound() - CountStuck(view_); waiting > 0) {
      message += "; " + std::to_string(waiting) + " more wait" + (waiting == 1 ? "s" : "") + " for room";
      if (const auto& next = plan_.status.next_attempt_time)
        message += ", and the next try begins at " + kube::ToText(*next);
    }
    NoteTogether();
    const bool has_run = view_.group->status.phase == kGangRunning;
    if (!IsRunning() && !has_run) return Say(kGangScheduling, GangReason::kStarting, message);
    Say(kGangRunning, GangReason::kRunning, message);
  }

  const GangView& view_;
  const Tally tally_;
  const int min_;
  const std::string reason_before_;
  GangPlan plan_;
  std::unordered_set<const Member*> lifted_;  // Those in plan_.lift.
  std::optional<kube::Time> ends_at_;         // When it is rolled back if it is still below its minimum.
  bool is_enough_ = false;
  bool is_preparing_ = false;  // Nominations come first.
  bool is_unsafe_ = false;
};

}  // namespace

GangPlan PlanGang(const GangView& view) { return Planner(view).Make(); }

}  // namespace grus
