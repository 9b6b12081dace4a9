// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_needs.h"

#include <algorithm>
#include <chrono>

#include "controllers/gang/gang_runtime.h"
#include "controllers/gang/gang_status.h"
#include "controllers/policy/waited.h"

namespace grus {
namespace {

constexpr std::chrono::seconds kFirstBackoff{10}, kLongestBackoff{600}, kDefaultScheduleTimeout{60};

// When the scheduler got the member.
kube::Time LiftOf(const GangView& view, const Member& member) {
  return member.lifted_at.value_or(member.created_at.value_or(view.now));
}

// When the last of the members that a gang with losses lacks was there for the scheduler, or for a GPU that none has;
// nullopt: some are not.
std::optional<kube::Time> LastLift(const GangView& view, const Tally& tally) {
  std::optional<kube::Time> last;
  int waiting = 0;
  for (const Member& member : view.members) {
    const bool waits = member.WaitsForItsGpu();
    if (!waits && member.state != MemberState::kLifted) continue;
    ++waiting;
    last = std::max(last, waits ? member.created_at : std::optional(LiftOf(view, member)));
  }
  return waiting < MinimumToRun(view, tally) - tally.scheduled() ? std::nullopt : last;
}

std::optional<kube::Time> FirstLift(const GangView& view) {
  std::optional<kube::Time> first;
  for (const Member& member : view.members) {
    if (member.IsLetGo()) first = std::min(first.value_or(*member.lifted_at), *member.lifted_at);
  }
  return first;
}

}  // namespace

bool IsReplacing(const GangView& view, const Tally& tally) {
  const api::PodGroupStatus& status = view.group->status;
  const bool came_together = status.started_min_member > 0 || status.phase == kGangRunning ||
                             GangReasonIn(status) == ToString(GangReason::kBelowMinimum);
  return came_together && tally.scheduled() > 0;
}

int MinimumToRun(const GangView& view, const Tally& tally) {
  const int min = view.group->spec.min_member, started = view.group->status.started_min_member;
  return IsReplacing(view, tally) && started > 0 ? std::min(min, started) : min;
}

bool IsBackingOff(const GangView& view, const Tally& tally) {
  const auto& next = view.group->status.next_attempt_time;
  // A back-off holds only for what it was set for: that of extras does not delay a running gang that loses members.
  const bool was_below = view.group->status.started_min_member == 0;
  if (!next || was_below != (tally.scheduled() < MinimumToRun(view, tally))) return false;
  const kube::Duration left = next->value - view.now.value;
  // A time further ahead than any back-off was noted before the clock was set back.
  return left > kube::Duration::zero() && left <= kLongestBackoff + std::chrono::minutes(1);
}

std::chrono::seconds BackoffAfter(int attempts) {
  return std::min(kLongestBackoff, kFirstBackoff * (1 << std::clamp(attempts - 1, 0, 10)));
}

std::chrono::seconds ScheduleTimeout(const api::PodGroup& group) {
  const auto& seconds = group.spec.schedule_timeout_seconds;
  return seconds && *seconds > 0 ? std::chrono::seconds(*seconds) : kDefaultScheduleTimeout;
}

std::optional<kube::Time> TimeLimitStart(const GangView& view, const Tally& tally) {
  const api::PodGroupStatus& status = view.group->status;
  const bool was_under_way = status.phase == kGangScheduling || status.phase == kGangRunning;
  const std::optional<kube::Time> known = was_under_way ? status.schedule_start_time : std::nullopt;
  // A gang that ran keeps its members while lost ones are made again: deleting the rest would help nobody.
  const std::optional<kube::Time> start = IsReplacing(view, tally) ? LastLift(view, tally)
                                          : known                  ? known
                                                                   : FirstLift(view);
  if (!start || !IsAhead(view.now, *start)) return start;
  return known && !IsAhead(view.now, *known) ? *known : view.now;
}

std::unordered_set<const Member*> MembersOf(const std::vector<Assignment>& assigned) {
  std::unordered_set<const Member*> members;
  for (const Assignment& a : assigned) members.insert(a.member);
  return members;
}

std::vector<Assignment> Assign(const GangView& view) {
  std::vector<Place> left = view.places;
  std::vector<Assignment> assigned;
  const auto take = [&](const Member& member, auto&& fits) {
    const auto found = std::ranges::find_if(left, [&](const Place& place) {
      const bool is_for_it =
          view.is_planned_by_owner || place.shape == member.shape || FitAlike(*place.shape, *member.shape);
      return is_for_it && fits(place);
    });
    if (found == left.end()) return false;
    assigned.push_back({&member, std::move(*found)});
    left.erase(found);
    return true;
  };
  std::vector<const Member*> rest;
  for (const Member& member : view.members) {
    if (!member.IsUnbound() || !member.shape || member.MustStayGated() || !member.volume_problem.empty()) continue;
    const std::string& planned = member.planned_node();
    if (planned.empty() || !take(member, [&](const Place& place) { return place.node == planned; })) {
      rest.push_back(&member);
    }
  }
  // Members whose gate is lifted come first: the scheduler may bind them at any moment.
  std::stable_partition(rest.begin(), rest.end(), [](const Member* m) { return m->state == MemberState::kLifted; });
  for (const Member* member : rest) take(*member, [](const Place&) { return true; });
  std::ranges::sort(assigned, {}, &Assignment::member);
  return assigned;
}

std::optional<GangDemand> NeedsOf(const GangView& view) {
  const api::PodGroup& group = *view.group;
  const int min = group.spec.min_member;
  const Tally tally = Count(view);
  if (group.metadata.is_being_deleted() || view.is_planned_by_owner || min < 1) return std::nullopt;
  // A gang that yields must not take the GPUs again that it gives to others.
  if (tally.unbound() == 0 || view.yield || IsBackingOff(view, tally) || IsOverdue(view)) return std::nullopt;

  const std::vector<Assignment> assigned = Assign(view);
  const std::unordered_set<const Member*> has_place = MembersOf(assigned);
  GangDemand demand;
  for (const MemberState state : {MemberState::kLifted, MemberState::kGated}) {
    for (const Member& member : view.members) {
      const bool is_candidate =
          member.state == state && member.shape && member.foreign_gate.empty() && member.volume_problem.empty();
      if (!is_candidate || has_place.contains(&member)) continue;
      if (demand.members.empty()) demand.priority = member.priority;
      demand.members.push_back(member.shape);
    }
  }
  if (demand.members.empty()) return std::nullopt;
  if (!IsReplacing(view, tally)) {
    demand.needed = std::max(0, min - tally.scheduled() - static_cast<int>(assigned.size()));
  }
  if (demand.needed > static_cast<int>(demand.members.size())) return std::nullopt;  // Not all of them exist.
  demand.key = view.key;
  const kube::Time since = group.metadata.creation_timestamp.value_or(view.now);
  // A gang that has started in part comes before all that hold nothing.
  const bool is_only_shown = group.spec.when_unschedulable == api::WhenUnschedulable::kUngate && tally.bound == 0;
  const bool is_half_started = demand.needed > 0 && HasBegun(view) && !is_only_shown;
  demand.waiting_since = is_half_started ? 0 : UnixSeconds(since);
  demand.avoid = view.avoid;
  demand.runtime_seconds = LongestRun(view);
  return demand;
}

}  // namespace grus
