// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_plan.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "controllers/gang/gang_status.h"
#include "controllers/gang/gang_timer.h"
#include "controllers/policy/gang_message.h"
#include "controllers/policy/waited.h"
#include "controllers/policy/wording.h"

namespace grus {
namespace {

constexpr kube::Duration kReplanWait = std::chrono::milliseconds(100);

// We lifted its gate, and somebody makes it again, gated, if we delete it.
bool CanBeRolledBack(const Member& member) {
  return member.lifted_at && member.has_controller &&
         (member.state == MemberState::kLifted || member.state == MemberState::kBound);
}

std::vector<const Member*> RollBackList(const GangView& view) {
  std::vector<const Member*> list;
  for (const Member& member : view.members) {
    if (CanBeRolledBack(member)) list.push_back(&member);
  }
  // Those without a node first, or the scheduler gives them what the others leave.
  std::stable_partition(list.begin(), list.end(),
                        [](const Member* member) { return member->state != MemberState::kBound; });
  return list;
}

class Planner {
 public:
  explicit Planner(const GangView& view)
      : view_(view), tally_(Count(view)), min_(view.group->spec.min_member), reason_before_(GangReasonBefore(view)) {}

  GangPlan Make() {
    plan_.status = BaseGangStatus(view_);
    if (view_.group->metadata.is_being_deleted()) {
      plan_.is_ignored = true;
      return std::move(plan_);
    }
    // All that came together is gone.
    if (tally_.scheduled() == 0 && plan_.status.started_min_member > 0) ForgetStart();
    if (min_ < 1) {
      Say(kGangPending, GangReason::kInvalidMinimum,
          "spec.minMember is " + std::to_string(min_) + "; set it to 1 or more");
    } else if (!PlanEnd() && !PlanRollBack()) {
      PlanStart();
      PlanRepair();
      SayProgress();
    }
    return std::move(plan_);
  }

 private:
  void Say(const std::string& phase, GangReason reason, const std::string& message) {
    SetGangReason(plan_.status, view_, phase, reason, message);
    if (reason_before_ == ToString(reason)) return;
    if (reason == GangReason::kBelowMinimum && tally_.ending > 0) return;  // Somebody ends it; that is no surprise.
    switch (reason) {
      case GangReason::kWaitingForRoom: return Tell(kube::EventType::kNormal, reason, "PlaceGang", message);
      case GangReason::kCannotFit:
      case GangReason::kInvalidMinimum:
      case GangReason::kGatedByOthers:
      case GangReason::kFailed:
      case GangReason::kBelowMinimum: return Tell(kube::EventType::kWarning, reason, "PlaceGang", message);
      default: return;  // The usual start needs no event.
    }
  }
  void Tell(kube::EventType type, GangReason reason, const char* action, const std::string& note) {
    plan_.events.push_back({type, std::string(ToString(reason)), action, note});
  }
  void LookAgain(kube::Duration delay) { plan_.look_again = std::min(plan_.look_again.value_or(delay), delay); }

  // The next start is none of its tries.
  void ForgetStart() {
    plan_.status.started_min_member = 0;
    plan_.status.attempts = 0;
    plan_.status.next_attempt_time.reset();
  }

  // All members have ended.
  bool PlanEnd() {
    if (tally_.alive() > 0 || tally_.ending > 0) return false;
    if (plan_.status.succeeded >= min_) {
      Say(kGangFinished, GangReason::kSucceeded, Count(plan_.status.succeeded, "member") + " succeeded");
    } else if (tally_.failed > 0) {
      // Of the others there may be nothing left: a Job that gives up deletes what still runs.
      Say(kGangFailed, GangReason::kFailed,
          Count(tally_.failed, "member") + " failed, " + std::to_string(tally_.succeeded) + " of the " +
              Count(min_, "member") + " that start together succeeded");
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
    const std::optional<kube::Time> start = StartOf(view_, tally_);
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

  void BackOff() {
    const std::chrono::seconds wait = BackoffAfter(++plan_.status.attempts);
    plan_.status.next_attempt_time = kube::Time{view_.now.value + wait};
    LookAgain(wait);
  }

  void SayBackingOff() {
    const api::PodGroupStatus& status = plan_.status;
    if (reason_before_ == ToString(GangReason::kBackingOff)) {
      const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
      return Say(kGangPending, GangReason::kBackingOff, ready->message);
    }
    std::string message = "gave its nodes back: " + std::to_string(tally_.scheduled()) + " of the " +
                          Count(min_, "member") + " that start together had one after " +
                          std::to_string(ScheduleTimeout(*view_.group).count()) + " s";
    for (const Member& member : view_.members) {
      if (member.unschedulable_message.empty()) continue;
      message += "; of " + member.name + " the scheduler says: " + member.unschedulable_message;
      break;
    }
    message += "; try " + std::to_string(status.attempts + 1) + " begins at " + kube::ToText(*status.next_attempt_time);
    Say(kGangPending, GangReason::kBackingOff, message);
  }

  const std::string& Message() const { return kube::FindCondition(plan_.status.conditions, "Ready")->message; }

  void PlanStart() {
    std::vector<Assignment> assigned = Assign(view_);
    if (IsBackingOff(view_, tally_)) {
      // What is the scheduler's already goes on.
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
      if (view_.group->spec.when_unschedulable == api::WhenUnschedulable::kUngate) LiftForDemand();
      return;
    }
    if (is_replacing) {
      LiftReplacements();
      LiftAssigned(assigned);
    } else {
      PlanLift(assigned);
    }
    // Beyond the minimum its owner says how many may run, and asks the scheduler where it does not know.
    if (view_.is_planned_by_owner && tally_.scheduled() >= min_ && !must_hold_ && !is_unsafe_) LiftAll();
    ClearNominations(assigned);
  }

  void PlanLift(const std::vector<Assignment>& assigned) {
    if (view_.must_nominate) {
      for (const Assignment& a : assigned) {
        const bool is_held = a.member->nominated == a.place.node && !IsForgotten(*a.member);
        if (!is_held) plan_.nominate.push_back({a.member, a.place.node});
      }
      must_hold_ = !plan_.nominate.empty();
    }
    if (must_hold_) return;
    const bool has_gated = std::any_of(assigned.begin(), assigned.end(),
                                       [](const Assignment& a) { return a.member->state == MemberState::kGated; });
    if (has_gated && view_.safety != Safety::kSafe) {
      is_unsafe_ = true;
      plan_.must_replan = view_.safety == Safety::kTaken;
      plan_.is_verifying = !plan_.must_replan;
      LookAgain(kReplanWait);
      return;
    }
    LiftAssigned(assigned);
    if (!view_.must_pin) return;
    for (const Assignment& a : assigned) {
      if (lifted_.contains(a.member) && !a.member->has_own_hostname) plan_.pins[a.member] = a.place.node;
    }
  }

  // A scheduler that started after the pod was nominated does not hold the node while the pod is gated.
  bool IsForgotten(const Member& member) const {
    return member.state == MemberState::kGated && !view_.scheduler.empty() && member.nominated_to != view_.scheduler;
  }

  void LiftAssigned(const std::vector<Assignment>& assigned) {
    for (const Assignment& a : assigned) Lift(*a.member);
  }

  void LiftAll() {
    for (const Member& member : view_.members) Lift(member);
  }

  void Lift(const Member& member) {
    if (member.state != MemberState::kGated || member.IsHeldBack()) return;
    if (lifted_.insert(&member).second) plan_.lift.push_back(&member);
  }

  // A replacement in a running gang starts at once: its node is likely the one that was left.
  void LiftReplacements() {
    int missing = MinimumToRun(view_, tally_) - tally_.scheduled() - tally_.lifted;
    for (const Member& member : view_.members) {
      if (missing <= 0) break;
      if (member.state != MemberState::kGated || member.IsHeldBack()) continue;
      Lift(member);
      --missing;
    }
  }

  // So that a cluster autoscaler sees what is missing.
  void LiftForDemand() {
    if (tally_.alive() + tally_.succeeded < min_) return;
    LiftReplacements();
  }

  void ClearNominations(const std::vector<Assignment>& assigned) {
    const std::unordered_set<const Member*> has_place = MembersOf(assigned);
    for (const Member& member : view_.members) {
      const bool is_held = member.state == MemberState::kGated && !member.nominated.empty();
      if (is_held && !has_place.contains(&member)) plan_.nominate.push_back({&member, ""});
    }
  }

  // Beyond the minimum: an extra that found no node waits gated again, where it is in nobody's way, and for longer each
  // time until one finds its node.
  void PlanRepair() {
    if (tally_.scheduled() < MinimumToRun(view_, tally_) || view_.is_planned_by_owner) return;
    const api::PodGroupStatus& before = view_.group->status;
    if (before.phase == kGangRunning ? tally_.scheduled() > before.scheduled : IsRunning()) plan_.status.attempts = 0;
    for (const Member& member : view_.members) {
      if (member.state != MemberState::kLifted || !CanBeRolledBack(member)) continue;
      const kube::Duration left = ScheduleTimeout(*view_.group) - Waited(view_.now, *member.lifted_at);
      if (left <= kube::Duration::zero()) plan_.end.push_back(&member);
      else LookAgain(left);
    }
    if (plan_.end.empty()) return;
    plan_.keep_places.clear();
    for (const Assignment& a : Assign(view_)) {
      if (a.member->state != MemberState::kLifted) continue;
      const bool is_refused = std::find(plan_.end.begin(), plan_.end.end(), a.member) != plan_.end.end();
      if (is_refused) plan_.refused.insert(a.place.node);
      else plan_.keep_places.push_back(a.place);
    }
    BackOff();
  }

  bool IsRunning() const { return tally_.running + tally_.succeeded >= min_; }

  void SayProgress() {
    if (tally_.scheduled() >= min_) return SayTogether();
    const int existing = tally_.alive() + tally_.succeeded;
    const std::string of_min = " of the " + Count(min_, "member") + " that start together";
    if (IsReplacing(view_, tally_)) {
      std::string message = std::to_string(tally_.scheduled()) + of_min + " have a node";
      if (existing < min_) {
        message += "; " + WhatIsMissing(view_, min_ - existing);
      } else if (ends_at_) {
        message += "; if it is not whole by " + kube::ToText(*ends_at_) + ", all give their nodes back";
      }
      return Say(kGangScheduling, GangReason::kBelowMinimum, message);
    }
    const bool is_under_way = tally_.lifted + tally_.bound > 0 || !plan_.lift.empty();
    if (is_under_way && is_enough_ && !must_hold_ && !is_unsafe_) return SayStarting();
    if (existing < min_) {
      // Pods that never had a gate started by themselves.
      return Say(HasBegun(view_) ? kGangScheduling : kGangPending, GangReason::kWaitingForMembers,
                 std::to_string(existing) + of_min + " exist; " + WhatIsMissing(view_, min_ - existing));
    }
    if (const int foreign = ForeignGates(); existing - foreign < min_) {
      const auto first = std::find_if(view_.members.begin(), view_.members.end(),
                                      [](const Member& member) { return !member.foreign_gate.empty(); });
      return Say(kGangPending, GangReason::kGatedByOthers,
                 Count(foreign, "member") + (foreign == 1 ? " has a scheduling gate" : " have scheduling gates") +
                     " of another controller: " + first->foreign_gate);
    }
    if (const int held_back = HeldBack(); existing - held_back < min_) {
      const auto first = std::find_if(view_.members.begin(), view_.members.end(),
                                      [](const Member& member) { return !member.volume_problem.empty(); });
      return Say(is_under_way ? kGangScheduling : kGangPending, GangReason::kWaitingForRoom,
                 std::to_string(existing - held_back) + of_min + " can be placed; " + first->name +
                     (first->volume_problem.starts_with("PersistentVolume") ? " waits for its volume: "
                                                                            : " waits for its devices: ") +
                     first->volume_problem);
    }
    if (must_hold_) {
      return Say(kGangPending, GangReason::kPreparing,
                 "holding nodes for " + Count(min_ - tally_.scheduled(), "member"));
    }
    if (is_unsafe_) {
      return Say(kGangPending, GangReason::kPreparing,
                 plan_.must_replan ? "looking for other nodes: one that was planned is taken"
                                   : "waiting for the scheduler to decide about pods of others, for 20 s at most");
    }
    // One that was placed and has too few places all the same had members bound since, which the view does not show.
    const bool waits = view_.demand && !view_.standing.is_placed;
    if (is_under_way && !waits) return SayStarting();
    const PendingWords words{.minimum = min_ > 1 ? "minMember" : ""};
    const std::string why = waits                       ? WhyPending(*view_.demand, view_.standing, words)
                            : view_.is_planned_by_owner ? "waiting for room, for which its ElasticHorovodJob looks"
                                                        : std::string("waiting for room");
    Say(is_under_way ? kGangScheduling : kGangPending,
        view_.standing.can_never_fit ? GangReason::kCannotFit : GangReason::kWaitingForRoom, why);
  }

  int ForeignGates() const {
    return static_cast<int>(std::count_if(view_.members.begin(), view_.members.end(), [](const Member& member) {
      return member.state == MemberState::kGated && !member.foreign_gate.empty();
    }));
  }

  int HeldBack() const {
    return static_cast<int>(std::count_if(view_.members.begin(), view_.members.end(),
                                          [](const Member& member) { return member.IsHeldBack(); }));
  }

  void SayStarting() {
    std::string message =
        std::to_string(tally_.scheduled()) + " of the " + Count(min_, "member") + " that start together have a node";
    const auto stuck = std::find_if(view_.members.begin(), view_.members.end(),
                                    [](const Member& member) { return !member.unschedulable_message.empty(); });
    if (stuck != view_.members.end()) {
      message += "; of " + stuck->name + " the scheduler says: " + stuck->unschedulable_message;
    }
    Say(kGangScheduling, GangReason::kStarting, message);
  }

  void SayTogether() {
    std::string message = IsRunning()
                              ? Count(tally_.running, "member") + (tally_.running == 1 ? " runs" : " run")
                              : Count(tally_.scheduled(), "member") + " of " + std::to_string(min_) + " have a node";
    if (tally_.succeeded > 0) message += ", " + std::to_string(tally_.succeeded) + " succeeded";
    // Those that others or their volumes hold back wait for them, not for room.
    if (const int waiting = tally_.unbound() - HeldBack(); waiting > 0) {
      message += "; " + std::to_string(waiting) + " more wait" + (waiting == 1 ? "s" : "") + " for room";
      if (const auto& next = plan_.status.next_attempt_time)
        message += ", and the next try begins at " + kube::ToText(*next);
    }
    plan_.status.schedule_start_time.reset();
    plan_.status.started_min_member = min_;
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
  bool must_hold_ = false;  // Nominations come first.
  bool is_unsafe_ = false;
};

}  // namespace

GangPlan PlanGang(const GangView& view) { return Planner(view).Make(); }

}  // namespace grus
