// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_timer.h"

#include <algorithm>

#include "controllers/gang/gang_plan.h"
#include "controllers/policy/waited.h"

namespace grus {
namespace {

constexpr std::chrono::seconds kFirstBackoff{10};

// Since when a member is the scheduler's.
kube::Time LiftOf(const GangView& view, const Member& member) {
  return member.lifted_at.value_or(member.created_at.value_or(view.now));
}

// Of a gang that has lost members: since when all that it lacks are the scheduler's. nullopt: they are not.
std::optional<kube::Time> LastLift(const GangView& view, const Tally& tally) {
  if (tally.lifted < MinimumToRun(view, tally) - tally.scheduled()) return std::nullopt;
  std::optional<kube::Time> last;
  for (const Member& member : view.members) {
    if (member.state != MemberState::kLifted) continue;
    const kube::Time lift = LiftOf(view, member);
    last = std::max(last.value_or(lift), lift);
  }
  return last;
}

std::optional<kube::Time> FirstLift(const GangView& view) {
  std::optional<kube::Time> first;
  for (const Member& member : view.members) {
    if (!member.IsLetGo()) continue;
    first = std::min(first.value_or(*member.lifted_at), *member.lifted_at);
  }
  return first;
}

}  // namespace

std::optional<kube::Time> StartOf(const GangView& view, const Tally& tally) {
  const api::PodGroupStatus& status = view.group->status;
  const bool was_under_way = status.phase == kGangScheduling || status.phase == kGangRunning;
  const std::optional<kube::Time> said = was_under_way ? status.schedule_start_time : std::nullopt;
  // One that ran goes on with what it has while its pods are made again: to take the rest away helps nobody.
  const std::optional<kube::Time> start = IsReplacing(view, tally) ? LastLift(view, tally)
                                          : said                   ? said
                                                                   : FirstLift(view);
  if (!start || !IsAhead(view.now, *start)) return start;
  return said && !IsAhead(view.now, *said) ? *said : view.now;
}

std::chrono::seconds BackoffAfter(int attempts) {
  return std::min(kLongestGangBackoff, kFirstBackoff * (1 << std::clamp(attempts - 1, 0, 10)));
}

}  // namespace grus
