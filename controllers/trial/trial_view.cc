// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_view.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "controllers/cluster/owners.h"

namespace grus {
namespace {

constexpr std::array kImageReasons = {std::string_view("ErrImagePull"), std::string_view("ImagePullBackOff"),
                                      std::string_view("InvalidImageName"), std::string_view("ErrImageNeverPull"),
                                      std::string_view("ImageInspectError")};
constexpr int kKilled = 137;  // 128 + SIGKILL, as the kernel ends a process that is out of memory.

std::int64_t ToInt(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string Words(const kube::CompactString& reason, const kube::CompactString& message) {
  std::string words(reason.view());
  if (!message.view().empty()) words.append(words.empty() ? "" : ": ").append(message.view());
  return words;
}

void ReadContainer(const kube::Pod& pod, const kube::ContainerStatus& status, TrialPods& pods) {
  if (status.state.waiting) {
    const std::string_view reason = status.state.waiting->reason.view();
    if (std::find(kImageReasons.begin(), kImageReasons.end(), reason) != kImageReasons.end()) {
      pods.image_problem = "container " + std::string(status.name.view()) + " of pod " + pod.metadata.name + ": " +
                           Words(status.state.waiting->reason, status.state.waiting->message);
    }
  }
  const bool is_launcher = pod.metadata.Label(kRoleLabel) == "launcher";
  for (const kube::ContainerState* state : {&status.last_state, &status.state}) {
    if (!state->terminated) continue;
    const auto& ended = *state->terminated;
    // Who is deleted is killed in the end, too.
    const bool is_kill = ended.exit_code == kKilled && !pod.metadata.is_being_deleted();
    if (ended.reason.view() == "OOMKilled" || (is_kill && ended.reason.view() != "Evicted")) {
      pods.out_of_memory = "pod " + pod.metadata.name;
    }
    if (is_launcher && ended.exit_code != 0) {
      pods.exit = "exit code " + std::to_string(ended.exit_code);
      if (!ended.reason.view().empty()) pods.exit.append(" (").append(ended.reason.view()).append(")");
    }
  }
}

}  // namespace

TrialChild ReadTrialChild(const api::ElasticHorovodJob& job, const api::TrialJob& owner) {
  TrialChild child;
  child.uid = job.metadata.uid;
  const kube::OwnerReference* controller = job.metadata.Controller();
  child.is_ours = controller != nullptr && controller->uid == owner.metadata.uid;
  child.is_ending = job.metadata.is_being_deleted();
  child.is_suspended = job.spec.run_policy.suspend;
  child.phase = job.status.phase;
  if (const auto* ready = kube::FindCondition(job.status.conditions, "Ready")) child.message = ready->message;
  if (job.status.observed_generation == 0) child.message.clear();  // The CRD's default.
  const auto* stalled = kube::FindCondition(job.status.conditions, "Stalled");
  if (stalled != nullptr && stalled->is_true() && (stalled->reason == "TemplateRefused" || stalled->reason == "NameTaken")) {
    child.refusal = stalled->message;
    child.refused_since = stalled->last_transition_time;
  }
  child.slice_seconds = std::max<std::int64_t>(1, ToInt(job.metadata.Annotation(kSliceAnnotation)));
  child.spent_before = std::max<std::int64_t>(0, ToInt(job.metadata.Annotation(kSpentAnnotation)));
  return child;
}

void ReadTrialPod(const kube::Pod& pod, bool has_node, TrialPods& pods) {
  ++pods.all;
  const bool is_bound = !pod.spec.node_name.view().empty();
  const bool has_ended = pod.status.phase.view() == "Succeeded" || pod.status.phase.view() == "Failed";
  if (pod.metadata.Label(kRoleLabel) == "worker") {
    const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
    if (is_bound) {
      const auto bound = scheduled != nullptr && scheduled->is_true() ? std::optional(scheduled->last_transition_time)
                                                                     : pod.metadata.creation_timestamp;
      if (bound && (!pods.first_bound || *bound < *pods.first_bound)) pods.first_bound = *bound;
      if (!has_ended && has_node) ++pods.holding;
    }
  } else if (pod.metadata.Label(kRoleLabel) == "launcher") {
    const auto started = std::find_if(pod.status.container_statuses.begin(), pod.status.container_statuses.end(),
                                      [](const kube::ContainerStatus& status) { return status.name.view() == "launcher"; });
    const bool is_newer = pods.launcher.empty() || !pod.metadata.is_being_deleted();
    if (is_newer) {
      pods.launcher = pod.metadata.name;
      pods.launcher_uid = pod.metadata.uid;
      pods.launcher_started.reset();
      if (started != pod.status.container_statuses.end() && started->state.running) {
        pods.launcher_started = started->state.running->started_at ? started->state.running->started_at : pod.status.start_time;
      } else if (pod.status.phase.view() != "Pending" && !pod.status.phase.view().empty()) {
        pods.launcher_started = pod.status.start_time;
      }
    }
  }
  if (is_bound && !has_node) pods.has_lost_node = true;
  for (const kube::ContainerStatus& status : pod.status.container_statuses) ReadContainer(pod, status, pods);
  for (const kube::ContainerStatus& status : pod.status.init_container_statuses) ReadContainer(pod, status, pods);
}

}  // namespace grus
