// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_view.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace grus {
namespace {

int NumberAtEnd(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::string_view digits = last == std::string_view::npos ? name : name.substr(last + 1);
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);  // Too long for an int: 0.
  return number;
}

MemberState StateOf(const kube::Pod& pod) {
  if (pod.status.phase == "Succeeded") return MemberState::kSucceeded;
  if (pod.status.phase == "Failed") return MemberState::kFailed;
  if (pod.metadata.is_being_deleted()) return MemberState::kEnding;
  if (!pod.spec.node_name.empty()) return MemberState::kBound;
  return pod.spec.scheduling_gates.empty() ? MemberState::kLifted : MemberState::kGated;
}

}  // namespace

Tally Count(const GangView& view) {
  Tally tally;
  for (const Member& member : view.members) {
    switch (member.state) {
      case MemberState::kGated: ++tally.gated; break;
      case MemberState::kLifted: ++tally.lifted; break;
      case MemberState::kBound:
        ++tally.bound;
        if (member.is_running) ++tally.running;
        break;
      case MemberState::kSucceeded: ++tally.succeeded; break;
      case MemberState::kFailed: ++tally.failed; break;
      case MemberState::kEnding: ++tally.ending; break;
    }
  }
  return tally;
}

Member ReadMember(const kube::Pod& pod, ShapePtr shape, bool has_planning_owner) {
  Member member;
  member.name = pod.metadata.name;
  member.uid = std::string(pod.metadata.uid);
  member.ordinal = NumberAtEnd(member.name);
  for (const kube::PodSchedulingGate& gate : pod.spec.scheduling_gates) {
    if (gate.name != api::kGangGate) member.has_foreign_gate = true;
  }
  member.state = StateOf(pod);
  member.is_running = pod.status.phase == "Running";
  if (const kube::OwnerReference* owner = pod.metadata.Controller()) {
    member.has_controller = true;
    member.owner = std::string(pod.metadata.ns) + "/" + std::string(owner->name);
  }
  member.node = std::string(pod.spec.node_name);
  member.nominated = std::string(pod.status.nominated_node_name);
  member.nominated_to = std::string(pod.metadata.Annotation(kGangNominatedToAnnotation));
  member.pinned = std::string(pod.metadata.Annotation(kGangPinnedAnnotation));
  member.has_own_hostname = member.pinned.empty() && pod.spec.node_selector.contains(kHostnameLabel);
  member.priority = pod.spec.priority.value_or(0);
  member.shape = std::move(shape);
  member.created_at = pod.metadata.creation_timestamp;
  if (const auto lifted = kube::ParseTime(pod.metadata.Annotation(api::kGangLiftedAnnotation))) {
    member.lifted_at = *lifted;
  } else if (has_planning_owner && member.state != MemberState::kGated) {
    member.lifted_at = member.created_at;
  }
  const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
  const bool is_unschedulable = scheduled && !scheduled->is_true() && scheduled->reason == "Unschedulable";
  if (is_unschedulable && member.state == MemberState::kLifted) {
    member.unschedulable_message = std::string(scheduled->message);
  }
  return member;
}

void SortMembers(std::vector<Member>& members) {
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return std::tie(a.ordinal, a.name) < std::tie(b.ordinal, b.name);
  });
}

}  // namespace grus
