// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_status.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "controllers/frame/kstatus.h"

namespace grus {
namespace {

bool IsReady(GangReason reason) { return reason == GangReason::kRunning || reason == GangReason::kSucceeded; }

// Nothing but a change from outside helps.
bool IsStalled(GangReason reason) {
  switch (reason) {
    case GangReason::kCannotFit:
    case GangReason::kFailed:
    case GangReason::kInvalidMinimum:
    case GangReason::kNotPermitted:
    case GangReason::kPodsRefused: return true;
    default: return false;
  }
}

// "team-a/driver, team-a/workers": who makes the members of this run, in order of their names.
std::string OwnersOf(const GangView& view) {
  constexpr std::size_t kMost = 5;
  std::set<std::string_view> owners;
  for (const Member& member : view.members) {
    if (member.state != MemberState::kPast && !member.owner.empty()) owners.insert(member.owner);
  }
  std::string text;
  std::size_t named = 0;
  for (const std::string_view owner : owners) {
    if (named++ == kMost) return text + " and " + std::to_string(owners.size() - kMost) + " more";
    if (!text.empty()) text += ", ";
    text += owner;
  }
  return text;
}

}  // namespace

std::string_view ToString(GangReason reason) {
  switch (reason) {
    case GangReason::kWaitingForMembers: return "WaitingForMembers";
    case GangReason::kWaitingForRoom: return "WaitingForRoom";
    case GangReason::kCannotFit: return "CannotFit";
    case GangReason::kBackingOff: return "BackingOff";
    case GangReason::kPreparing: return "Preparing";
    case GangReason::kStarting: return "Starting";
    case GangReason::kRunning: return "Running";
    case GangReason::kBelowMinimum: return "BelowMinimum";
    case GangReason::kSucceeded: return "Succeeded";
    case GangReason::kFailed: return "Failed";
    case GangReason::kInvalidMinimum: return "InvalidMinimum";
    case GangReason::kGatedByOthers: return "GatedByOthers";
    case GangReason::kNotPermitted: return "NotPermitted";
    case GangReason::kPodsRefused: return "PodsRefused";
  }
  return "";
}

std::chrono::seconds ScheduleTimeout(const api::PodGroup& group) {
  const auto& seconds = group.spec.schedule_timeout_seconds;
  return seconds && *seconds > 0 ? std::chrono::seconds(*seconds) : kDefaultScheduleTimeout;
}

api::PodGroupStatus BaseGangStatus(const GangView& view) {
  api::PodGroupStatus status = view.group->status;
  if (status.observed_generation == 0) status.conditions.clear();  // The CRD's default, not ours.
  status.observed_generation = view.group->metadata.generation;
  const Tally tally = Count(view);
  // What has finished stays so, whichever of its pods are deleted or clocks are set, until it has others.
  const bool is_over = status.phase == kGangFinished && tally.alive() + tally.ending == 0 && tally.succeeded > 0;
  if (is_over) return status;
  status.scheduled = tally.scheduled();
  status.running = tally.running;
  status.succeeded = tally.succeeded;
  status.failed = tally.failed;
  if (std::string owners = OwnersOf(view); !owners.empty()) status.occupied_by = std::move(owners);
  return status;
}

void SetGangReason(api::PodGroupStatus& status, const GangView& view, const std::string& phase, GangReason reason,
                   const std::string& message) {
  status.phase = phase;
  const Standing standing = IsReady(reason)     ? Standing::kReady
                            : IsStalled(reason) ? Standing::kStalled
                                                : Standing::kReconciling;
  Kstatus(status.conditions, view.group->metadata.generation, view.now).Say(standing, ToString(reason), message);
}

std::string GangReasonBefore(const GangView& view) {
  const api::PodGroupStatus& status = view.group->status;
  if (status.observed_generation == 0) return {};
  const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
  return ready ? ready->reason : std::string();
}

bool IsMinorGangChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after) {
  const auto reason = [](const api::PodGroupStatus& status) {
    const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
    return status.observed_generation != 0 && ready ? ready->reason : std::string();
  };
  // What is deleted next waits for that time: a decision (see GangPlan::end).
  if (after.next_attempt_time && after.next_attempt_time != before.next_attempt_time) return false;
  const std::string was = reason(before), is = reason(after);
  if (was == is) return before.phase == after.phase && before.observed_generation == after.observed_generation;
  const auto is_start = [](const std::string& text) {
    return text.empty() || text == ToString(GangReason::kWaitingForMembers) ||
           text == ToString(GangReason::kPreparing) || text == ToString(GangReason::kStarting);
  };
  // Who ends all of it takes the members first: a moment later there may be nobody to tell.
  const bool loses_members = was == ToString(GangReason::kRunning) && is == ToString(GangReason::kBelowMinimum);
  return loses_members || (is_start(was) && is_start(is));
}

bool IsSentenceChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after) {
  const kube::Condition* was = kube::FindCondition(before.conditions, "Ready");
  const kube::Condition* is = kube::FindCondition(after.conditions, "Ready");
  return was && is && was->reason == is->reason &&
         (is->reason == ToString(GangReason::kWaitingForRoom) || is->reason == ToString(GangReason::kCannotFit));
}

std::string LegacyPhase(const api::PodGroupStatus& status, int min_member) {
  if (status.phase == kGangScheduling && status.scheduled >= min_member) return "Scheduled";
  const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
  const bool has_members = ready && ready->reason != ToString(GangReason::kWaitingForMembers);
  return status.phase == kGangPending && has_members ? kGangPreScheduling : status.phase;
}

}  // namespace grus
