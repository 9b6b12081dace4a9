// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_needs.h"

#include <algorithm>
#include <chrono>

#include "controllers/gang/gang_status.h"

namespace grus {

bool IsReplacing(const GangView& view, const Tally& tally) {
  const api::PodGroupStatus& status = view.group->status;
  const bool came_together = status.started_min_member > 0 || status.phase == kGangRunning ||
                             GangReasonBefore(view) == ToString(GangReason::kBelowMinimum);
  return came_together && tally.scheduled() > 0;
}

int MinimumToRun(const GangView& view, const Tally& tally) {
  const int min = view.group->spec.min_member, started = view.group->status.started_min_member;
  return IsReplacing(view, tally) && started > 0 ? std::min(min, started) : min;
}

bool IsBackingOff(const GangView& view, const Tally& tally) {
  const auto& next = view.group->status.next_attempt_time;
  // One that has lost members since is brought back to its minimum at once, and the other way round.
  const bool was_below = view.group->status.started_min_member == 0;
  if (!next || was_below != (tally.scheduled() < MinimumToRun(view, tally))) return false;
  const kube::Duration left = next->value - view.now.value;
  // One further ahead than any we set was set before the clock was set back.
  return left > kube::Duration::zero() && left <= kLongestGangBackoff + std::chrono::minutes(1);
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
    const auto found = std::find_if(left.begin(), left.end(), [&](const Place& place) {
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
    if (!member.IsUnbound() || !member.shape || !member.volume_problem.empty()) continue;
    const std::string& planned = member.planned_node();
    if (planned.empty() || !take(member, [&](const Place& place) { return place.node == planned; })) {
      rest.push_back(&member);
    }
  }
  // Those whose gate is lifted already come first: they are the scheduler's.
  std::stable_partition(rest.begin(), rest.end(), [](const Member* m) { return m->state == MemberState::kLifted; });
  for (const Member* member : rest) take(*member, [](const Place&) { return true; });
  std::sort(assigned.begin(), assigned.end(),
            [](const Assignment& a, const Assignment& b) { return a.member < b.member; });
  return assigned;
}

std::optional<GangDemand> NeedsOf(const GangView& view) {
  const api::PodGroup& group = *view.group;
  const int min = group.spec.min_member;
  const Tally tally = Count(view);
  if (group.metadata.is_being_deleted() || view.is_planned_by_owner) return std::nullopt;
  if (min < 1 || tally.unbound() == 0) return std::nullopt;
  if (IsBackingOff(view, tally)) return std::nullopt;

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
  // One to which we gave something already comes before all that hold nothing.
  const bool is_only_shown = group.spec.when_unschedulable == api::WhenUnschedulable::kUngate && tally.bound == 0;
  const bool is_half_started = demand.needed > 0 && HasBegun(view) && !is_only_shown;
  const auto waiting_since = std::chrono::duration_cast<std::chrono::seconds>(since.value.time_since_epoch());
  demand.waiting_since = is_half_started ? 0 : waiting_since.count();
  demand.avoid = view.avoid;
  if (const auto& runtime = group.spec.expected_runtime_seconds)
    demand.runtime_seconds = std::min(*runtime, api::kLongestRuntime);
  return demand;
}

}  // namespace grus
