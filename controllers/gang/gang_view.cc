// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_view.h"

#include <algorithm>
#include <charconv>

#include "clientlib/cache/store.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/pod_trouble.h"
#include "controllers/policy/waited.h"
#include "controllers/policy/yield_words.h"
#include "controllers/queues/wording.h"
#include "crds/types/sharing_names.h"

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
  // A deleted pod, such as one of a Job that is suspended, often ends as Failed, which is no failure.
  if (pod.metadata.is_being_deleted()) return MemberState::kEnding;
  if (pod.status.phase == "Failed") return MemberState::kFailed;
  if (!pod.spec.node_name.empty()) return MemberState::kBound;
  return pod.spec.scheduling_gates.empty() ? MemberState::kLifted : MemberState::kGated;
}

// When its last container ended; if it never had one (evicted, preempted), when it became not ready.
std::optional<kube::Time> EndOf(const kube::Pod& pod) {
  std::optional<kube::Time> end;
  for (const kube::ContainerStatus& container : pod.status.container_statuses) {
    if (container.state.terminated) end = std::max(end, container.state.terminated->finished_at);
  }
  if (end) return end;
  if (const auto* ready = kube::FindCondition(pod.status.conditions, "Ready")) return ready->last_transition_time;
  return pod.metadata.creation_timestamp;
}

std::optional<kube::Time> BindOf(const kube::Pod& pod) {
  const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
  if (scheduled && scheduled->is_true()) return scheduled->last_transition_time;
  return pod.status.start_time ? pod.status.start_time : pod.metadata.creation_timestamp;
}

bool HasEnded(const Member& member) {
  return member.state == MemberState::kSucceeded || member.state == MemberState::kFailed;
}

// Whether `ended` belongs to the same run as `present`.
bool IsOfRun(const Member& ended, const Member& present, const kube::Time& now) {
  // A pod without an owner may be from another run, unless `present` has ended, too.
  const bool is_of_its_owner = ended.owner_uid == present.owner_uid && (!ended.owner_uid.empty() || HasEnded(present));
  if (is_of_its_owner) return true;
  if (!ended.ended_at || !present.bound_at || IsAhead(now, *ended.ended_at)) return false;
  // Times have whole seconds: a pod that waited for the room of another owner's pod is often bound in the same one.
  const bool is_next_in_line = !HasEnded(present) && !ended.owner_uid.empty() && !present.owner_uid.empty();
  return is_next_in_line ? *ended.ended_at > *present.bound_at : *ended.ended_at >= *present.bound_at;
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
      case MemberState::kPast: break;
    }
  }
  return tally;
}

bool Member::WaitsForItsGpu() const {
  return state == MemberState::kGated && !MustStayGated() && shape && AsksForGpuParts(shape->request);
}

bool HasBegun(const GangView& view) { return std::ranges::any_of(view.members, &Member::IsLetGo); }

Member ReadMember(const kube::Pod& pod, ShapePtr shape, bool has_planning_owner) {
  Member member;
  member.name = pod.metadata.name;
  member.uid = std::string(pod.metadata.uid);
  member.resource_version = std::string(pod.metadata.resource_version);
  member.ordinal = NumberAtEnd(member.name);
  member.foreign_gate = ForeignGateOf(pod);
  member.state = StateOf(pod);
  member.is_running = pod.status.phase == "Running";
  if (const kube::OwnerReference* owner = pod.metadata.Controller()) {
    member.has_controller = true;
    member.is_of_stateful_set = owner->kind == "StatefulSet";
    member.owner = std::string(pod.metadata.ns) + "/" + std::string(owner->name);
    member.owner_uid = std::string(owner->uid);
  }
  member.is_tracked_by_job = std::ranges::count(pod.metadata.finalizers, std::string_view(kJobTracking)) > 0;
  member.is_given_up =
      member.IsAlive() && !member.is_tracked_by_job && !pod.metadata.Annotation(kGangGivenUpAnnotation).empty();
  if (member.is_given_up) member.state = MemberState::kEnding;
  member.node = std::string(pod.spec.node_name);
  member.nominated = std::string(pod.status.nominated_node_name);
  member.nominated_to = std::string(pod.metadata.Annotation(kGangNominatedToAnnotation));
  member.pinned = std::string(pod.metadata.Annotation(kGangPinnedAnnotation));
  member.planned_gpu = std::string(pod.metadata.Annotation(api::kPlannedGpuAnnotation));
  member.told_deadline = std::string(pod.metadata.Annotation(kPreemptionDeadlineAnnotation));
  member.has_own_hostname = member.pinned.empty() && pod.spec.node_selector.contains(kHostnameLabel);
  member.priority = pod.spec.priority.value_or(0);
  member.shape = std::move(shape);
  member.created_at = pod.metadata.creation_timestamp;
  if (HasEnded(member)) member.ended_at = EndOf(pod);
  if (!member.node.empty()) member.bound_at = BindOf(pod);
  if (const auto lifted = kube::ParseTime(pod.metadata.Annotation(api::kGangLiftedAnnotation))) {
    member.lifted_at = *lifted;
  } else if (has_planning_owner && member.state != MemberState::kGated) {
    member.lifted_at = member.created_at;
  }
  if (const auto* unschedulable = kube::FindUnschedulable(pod); unschedulable && member.state == MemberState::kLifted) {
    member.unschedulable_message = std::string(unschedulable->message);
  }
  member.silent_scheduler = SilentSchedulerOf(pod);
  return member;
}

void MarkEarlierRuns(std::vector<Member>& members, const kube::Time& now) {
  std::vector<const Member*> present;
  const Member* last = nullptr;
  for (const Member& member : members) {
    if (!HasEnded(member)) present.push_back(&member);
    else if (last == nullptr || kube::IsOlder(last->resource_version, member.resource_version)) last = &member;
  }
  if (present.empty() && last != nullptr) present.push_back(last);
  for (Member& member : members) {
    const auto is_of_run = [&](const Member* of_run) { return IsOfRun(member, *of_run, now); };
    if (HasEnded(member) && std::ranges::none_of(present, is_of_run)) member.state = MemberState::kPast;
  }
}

int CountGatedByOthers(const GangView& view) {
  return static_cast<int>(std::ranges::count_if(view.members, [](const Member& member) {
    return member.state == MemberState::kGated && !member.foreign_gate.empty();
  }));
}

int CountStuck(const GangView& view) {
  return static_cast<int>(std::ranges::count_if(view.members, &Member::MustStayGated));
}

bool IsForgotten(const GangView& view, const Member& member) {
  return member.state == MemberState::kGated && !view.scheduler.empty() && member.nominated_to != view.scheduler;
}

std::string SchedulersWord(const GangView& view) {
  const auto is_stuck = [](const Member& member) { return !member.unschedulable_message.empty(); };
  const auto stuck = std::ranges::find_if(view.members, is_stuck);
  const auto silent = std::ranges::find_if(view.members, [&](const Member& member) {
    return !member.silent_scheduler.empty() && member.lifted_at &&
           Waited(view.now, *member.lifted_at) >= kSchedulerSilence;
  });
  if (stuck == view.members.end() && silent == view.members.end()) return {};
  if (stuck == view.members.end()) return "; " + SilenceText(silent->silent_scheduler, silent->name);
  return "; the scheduler says about " + stuck->name + ": " + stuck->unschedulable_message;
}

std::string WhatIsMissing(const GangView& view, int missing) {
  std::string text = Count(missing, "more member") + " must be created";
  const auto ordered = std::ranges::find_if(view.members, [](const Member& member) {
    return member.is_of_stateful_set && member.state == MemberState::kGated;
  });
  if (ordered != view.members.end() && Count(view).alive() == 1) {
    text += ": unless StatefulSet " + ordered->owner + " has podManagementPolicy Parallel, it waits until " +
            ordered->name + " is ready";
  }
  return text;
}

}  // namespace grus
