// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_runtime.h"

#include <algorithm>
#include <chrono>

#include "controllers/gang/gang_status.h"
#include "controllers/gang/gang_yield.h"
#include "controllers/policy/waited.h"

namespace grus {
namespace {

using std::chrono::seconds;

// None of its members is of an owner of before: what those ran does not count.
bool IsOfOtherOwners(const GangView& view) {
  const std::string before = ", " + view.group->status.occupied_by + ",";
  bool has_owner = false;
  for (const Member& member : view.members) {
    if (member.state == MemberState::kPast || member.owner.empty()) continue;
    if (before.find(", " + member.owner + ",") != std::string::npos) return false;
    has_owner = true;
  }
  return has_owner;
}

// Since when members have had nodes; nullopt: none has one.
std::optional<kube::Time> RunsSince(const GangView& view) {
  std::optional<kube::Time> since;
  for (const Member& member : view.members) {
    if (member.state == MemberState::kBound && member.bound_at) {
      since = std::min(since.value_or(*member.bound_at), *member.bound_at);
    }
  }
  const auto& noted = view.group->status.running_since;
  if (since && noted && !IsOfOtherOwners(view)) since = std::min(*since, *noted);
  return since;
}

seconds RunBefore(const GangView& view) {
  if (IsOfOtherOwners(view)) return seconds(0);
  return seconds(std::clamp<std::int64_t>(view.group->status.run_seconds, 0, api::kLongestRuntime));
}

seconds Between(const kube::Time& from, const kube::Time& to) {
  return std::max(seconds(0), std::chrono::duration_cast<seconds>(to.value - from.value));
}

bool HasLimit(const GangView& view) { return view.runtime_limit && HolderOf(view).comes_back; }

}  // namespace

void NoteRun(const GangView& view, api::PodGroupStatus& status) {
  if (!view.runtime_limit) return;
  const std::optional<kube::Time> since = RunsSince(view);
  if (IsOfOtherOwners(view)) {
    status.run_seconds = 0;
  } else if (!since && status.running_since) {
    status.run_seconds += Between(*status.running_since, view.now).count();
  }
  status.running_since = since;
}

std::optional<kube::Duration> TimeUntilDeadline(const GangView& view) {
  if (!HasLimit(view)) return std::nullopt;
  std::optional<kube::Time> since = RunsSince(view);
  // Its members have just gone.
  if (!since && !IsOfOtherOwners(view)) since = view.group->status.running_since;
  const kube::Duration present = since ? view.now.value - since->value : kube::Duration::zero();
  return seconds(view.runtime_limit->seconds) - RunBefore(view) - std::max(present, kube::Duration::zero());
}

bool IsOverdue(const GangView& view) {
  if (view.is_planned_by_owner) return false;
  const bool was_ended = GangReasonIn(view.group->status) == ToString(GangReason::kDeadlineExceeded);
  if (was_ended && !IsOfOtherOwners(view)) return true;
  const auto left = TimeUntilDeadline(view);
  return left && *left <= kube::Duration::zero();
}

std::string OverdueMessage(const GangView& view) {
  return "its members have run for the " + std::to_string(view.runtime_limit->seconds) + " s that GpuQueue " +
         view.runtime_limit->queue +
         " allows (spec.maximumRuntimeSeconds), and do not start again; to run it for longer, raise that limit, and "
         "make the PodGroup and its pods again";
}

std::optional<std::int64_t> LongestRun(const GangView& view) {
  std::optional<std::int64_t> longest = view.group->spec.expected_runtime_seconds;
  // While members run, what is left changes with each second.
  if (HasLimit(view) && !RunsSince(view)) {
    const std::int64_t left = std::max<std::int64_t>(0, view.runtime_limit->seconds - RunBefore(view).count());
    longest = std::min(longest.value_or(left), left);
  }
  return longest ? std::optional(std::min(*longest, api::kLongestRuntime)) : std::nullopt;
}

std::optional<std::int64_t> LatestEnd(const GangView& view) {
  std::optional<std::int64_t> end;
  const auto* ready = kube::FindCondition(view.group->status.conditions, "Ready");
  if (const auto& runtime = view.group->spec.expected_runtime_seconds; runtime && ready && ready->is_true()) {
    end = UnixSeconds(ready->last_transition_time) + std::min(*runtime, api::kLongestRuntime);
  }
  const std::optional<kube::Time> since = RunsSince(view);
  if (!since || !HasLimit(view)) return end;
  const std::int64_t by_queue = UnixSeconds(*since) + view.runtime_limit->seconds - RunBefore(view).count();
  return std::min(end.value_or(by_queue), by_queue);
}

}  // namespace grus
