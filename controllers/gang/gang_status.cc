// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_status.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "controllers/frame/kstatus.h"

namespace grus {
namespace {

struct ReasonFacts {
  std::string_view name;
  Standing standing;
  std::optional<kube::EventType> event = {};  // See EventOf().
};
// In the order of GangReason.
constexpr ReasonFacts kReasons[] = {
    {"WaitingForMembers", Standing::kReconciling},
    {"WaitingForRoom", Standing::kReconciling, kube::EventType::kNormal},
    {"WaitingForQueue", Standing::kReconciling, kube::EventType::kNormal},
    {"CannotFit", Standing::kStalled, kube::EventType::kWarning},
    {"BackingOff", Standing::kReconciling},
    {"Preparing", Standing::kReconciling},
    {"Starting", Standing::kReconciling},
    {"Running", Standing::kReady},
    {"BelowMinimum", Standing::kReconciling, kube::EventType::kWarning},
    {"Succeeded", Standing::kReady},
    {"Failed", Standing::kStalled, kube::EventType::kWarning},
    {"InvalidMinimum", Standing::kStalled, kube::EventType::kWarning},
    {"GatedByOthers", Standing::kReconciling, kube::EventType::kWarning},
    {"NotPermitted", Standing::kStalled},
    {"PodsRefused", Standing::kStalled},
    {"Preempting", Standing::kReady, kube::EventType::kWarning},
    {"Preempted", Standing::kReconciling, kube::EventType::kWarning},
    {"DeadlineExceeded", Standing::kStalled, kube::EventType::kWarning},
};
const ReasonFacts& FactsOf(GangReason reason) { return kReasons[static_cast<std::size_t>(reason)]; }

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

std::string_view ToString(GangReason reason) { return FactsOf(reason).name; }

std::optional<kube::EventType> EventOf(GangReason reason) { return FactsOf(reason).event; }

api::PodGroupStatus BaseGangStatus(const GangView& view) {
  api::PodGroupStatus status = view.group->status;
  if (status.observed_generation == 0) status.conditions.clear();  // The CRD's default, not ours.
  status.observed_generation = view.group->metadata.generation;
  const Tally tally = Count(view);
  // A finished gang stays finished until it has new members, whichever pods are deleted and however clocks are set.
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
  const auto& [name, usual, event] = FactsOf(reason);
  const bool is_starting = reason == GangReason::kPreempting && phase != kGangRunning;
  const Standing standing = is_starting ? Standing::kReconciling : usual;
  Kstatus(status.conditions, view.group->metadata.generation, view.now).Say(standing, name, message);
}

std::string GangReasonIn(const api::PodGroupStatus& status) {
  if (status.observed_generation == 0) return {};
  const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
  return ready ? ready->reason : std::string();
}

bool IsMinorGangChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after) {
  // The time of the next try is a decision: pods are deleted because of it (GangPlan::end).
  if (after.next_attempt_time && after.next_attempt_time != before.next_attempt_time) return false;
  const std::string was = GangReasonIn(before), is = GangReasonIn(after);
  if (was == is) return before.phase == after.phase && before.observed_generation == after.observed_generation;
  const auto is_start = [](const std::string& text) {
    return text.empty() || text == ToString(GangReason::kWaitingForMembers) ||
           text == ToString(GangReason::kPreparing) || text == ToString(GangReason::kStarting);
  };
  // Whoever deletes a whole job deletes its pods first: a moment later the PodGroup may be gone, too.
  const bool loses_members = was == ToString(GangReason::kRunning) && is == ToString(GangReason::kBelowMinimum);
  return loses_members || (is_start(was) && is_start(is));
}

bool IsSentenceChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after) {
  const std::string is = GangReasonIn(after);
  return GangReasonIn(before) == is &&
         (is == ToString(GangReason::kWaitingForRoom) || is == ToString(GangReason::kWaitingForQueue) ||
          is == ToString(GangReason::kCannotFit));
}

std::string LegacyPhase(const api::PodGroupStatus& status, int min_member) {
  if (status.phase == kGangScheduling && status.scheduled >= min_member) return "Scheduled";
  const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
  const bool has_members = ready && ready->reason != ToString(GangReason::kWaitingForMembers);
  return status.phase == kGangPending && has_members ? kGangPreScheduling : status.phase;
}

}  // namespace grus
