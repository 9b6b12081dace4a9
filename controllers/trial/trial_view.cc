// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_view.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "controllers/cluster/owners.h"
#include "controllers/policy/training_container.h"

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

const kube::ContainerStatus* StatusOf(const kube::Pod& pod, std::string_view container) {
  const auto& all = pod.status.container_statuses;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == container; });
  return found != all.end() ? &*found : nullptr;
}

// Annotations of a child of either kind.
void ReadNotes(const kube::ObjectMeta& metadata, const api::TrialJob& owner, TrialChild& child) {
  child.uid = metadata.uid;
  child.created = metadata.creation_timestamp;
  const kube::OwnerReference* controller = metadata.Controller();
  child.is_ours = controller != nullptr && controller->uid == owner.metadata.uid;
  child.is_ending = metadata.is_being_deleted();
  constexpr std::int64_t kMost = 1'000'000'000;  // Users can write them.
  child.slice_seconds = std::clamp<std::int64_t>(ToInt(metadata.Annotation(kSliceAnnotation)), 1, kMost);
  child.spent_before = std::clamp<std::int64_t>(ToInt(metadata.Annotation(kSpentAnnotation)), 0, kMost);
}

std::optional<PushedSpeed> PushedIn(const kube::ObjectMeta& metadata) {
  const std::string samples(metadata.Annotation(kPushedSamplesAnnotation).substr(0, 40));
  if (!samples.empty()) return PushedSpeed{api::SpeedKind::kSamplesPerSecond, std::strtod(samples.c_str(), nullptr)};
  const std::string step(metadata.Annotation(kPushedStepAnnotation).substr(0, 40));
  if (!step.empty()) return PushedSpeed{api::SpeedKind::kStepSeconds, 1e-3 * std::strtod(step.c_str(), nullptr)};
  return std::nullopt;
}

// Why a pod is not bound yet.
void ReadWaiting(const kube::Pod& pod, const api::PodGroup* group, TrialChild& child) {
  const auto* ready = group != nullptr ? kube::FindCondition(group->status.conditions, "Ready") : nullptr;
  if (ready != nullptr && group->status.observed_generation != 0 && group->status.phase == "Pending") {
    child.phase = "Waiting";
    child.message = ready->message;
  } else if (const auto* unschedulable = kube::FindUnschedulable(pod)) {
    child.phase = "Waiting";
    child.message = unschedulable->message;
  }
}

void ReadContainer(const kube::Pod& pod, const kube::ContainerStatus& status, const PodPart& part, TrialPods& pods) {
  if (status.state.waiting) {
    const std::string_view reason = status.state.waiting->reason.view();
    if (std::find(kImageReasons.begin(), kImageReasons.end(), reason) != kImageReasons.end()) {
      pods.image_problem = "container " + std::string(status.name.view()) + " of pod " + pod.metadata.name + ": " +
                           Words(status.state.waiting->reason, status.state.waiting->message);
    }
  }
  const bool is_launcher = !part.launches.empty();
  for (const kube::ContainerState* state : {&status.last_state, &status.state}) {
    if (!state->terminated) continue;
    const auto& ended = *state->terminated;
    // A deleted pod is also killed with 137 in the end.
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

std::string TrialView::ProductOf(const std::string& gpu_type) const {
  const auto found = nodes.find(gpu_type);
  if (gpu_type.empty() || found == nodes.end() || found->second.product.empty()) return gpu_type;
  const auto is_same = [&](const auto& named) {
    return named.second.product == found->second.product || named.first == found->second.product;
  };
  return std::count_if(nodes.begin(), nodes.end(), is_same) == 1 ? found->second.product : gpu_type;
}

TrialChild ReadTrialChild(const api::ElasticHorovodJob& job, const api::TrialJob& owner) {
  TrialChild child;
  ReadNotes(job.metadata, owner, child);
  child.pushed = PushedIn(job.metadata);
  child.is_suspended = job.spec.run_policy.suspend;
  child.phase = job.status.phase;
  if (const auto* ready = kube::FindCondition(job.status.conditions, "Ready")) child.message = ready->message;
  if (job.status.observed_generation == 0) child.message.clear();  // The CRD's default.
  const auto* stalled = kube::FindCondition(job.status.conditions, "Stalled");
  const bool is_stalled = stalled != nullptr && stalled->is_true();
  if (is_stalled && (stalled->reason == "TemplateRefused" || stalled->reason == "NameTaken")) {
    child.refusal = stalled->message;
  }
  return child;
}

TrialChild ReadPodChild(const kube::Pod& pod, const api::PodGroup* group, const api::TrialJob& owner, bool has_node) {
  TrialChild child;
  ReadNotes(pod.metadata, owner, child);
  child.kind = kube::KindOf<kube::Pod>().kind;
  child.is_suspended = !pod.metadata.Annotation(kSuspendedAnnotation).empty();
  const kube::ContainerStatus* training = StatusOf(pod, TrainingContainerOf(pod));
  if (HasEnded(pod)) {
    child.phase = pod.status.phase.str();
    child.message = Words(pod.status.reason, pod.status.message);
  } else if (training != nullptr && training->state.terminated) {
    child.phase = training->state.terminated->exit_code == 0 ? "Succeeded" : "Failed";
    child.lingers = true;
  } else if (!has_node) {
    child.phase = "Failed";  // It cannot make progress.
  } else if (pod.spec.node_name.empty()) {
    ReadWaiting(pod, group, child);
  } else {
    child.phase = "Running";
  }
  return child;
}

std::optional<kube::Time> BoundAt(const kube::Pod& pod) {
  const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
  if (scheduled != nullptr && scheduled->is_true()) return scheduled->last_transition_time;
  return pod.metadata.creation_timestamp;
}

std::optional<kube::Time> EndedAt(const kube::Pod& pod) {
  std::optional<kube::Time> last;
  if (!HasEnded(pod)) return last;
  for (const kube::ContainerStatus& status : pod.status.container_statuses) {
    if (!status.state.terminated || !status.state.terminated->finished_at) return std::nullopt;
    last = std::max(last, status.state.terminated->finished_at);
  }
  return last;
}

PodPart PartInJob(const kube::Pod& pod) {
  const std::string_view role = pod.metadata.Label(kRoleLabel);
  return {role == "worker", role == "launcher" ? "launcher" : ""};
}

PodPart PartAsTrial(const kube::Pod& pod) { return {true, TrainingContainerOf(pod)}; }

void ReadTrialPod(const kube::Pod& pod, const PodPart& part, bool has_node, TrialPods& pods) {
  ++pods.all;
  const bool is_bound = !pod.spec.node_name.view().empty();
  if (part.has_gpus && is_bound) {
    const std::optional<kube::Time> bound = BoundAt(pod), ended = EndedAt(pod);
    if (bound && (!pods.first_bound || *bound < *pods.first_bound)) pods.first_bound = *bound;
    if (!HasEnded(pod) && has_node) ++pods.holding;
    else if (!ended) pods.has_unknown_end = true;
    else if (!pods.last_end || *pods.last_end < *ended) pods.last_end = *ended;
    pods.nodes.insert(pod.spec.node_name.str());
  }
  if (part.has_gpus && !is_bound) ++pods.unbound;
  const bool is_newer = pods.launcher.empty() || !pod.metadata.is_being_deleted();
  if (!part.launches.empty() && is_newer) {
    const kube::ContainerStatus* training = StatusOf(pod, part.launches);
    pods.launcher = pod.metadata.name;
    pods.launcher_uid = pod.metadata.uid;
    pods.pushed = PushedIn(pod.metadata);
    pods.launcher_container = part.launches;
    pods.launcher_started.reset();
    if (training != nullptr && training->state.running) {
      const std::optional<kube::Time>& started = training->state.running->started_at;
      pods.launcher_started = started ? started : pod.status.start_time;
    } else if (pod.status.phase.view() != "Pending" && !pod.status.phase.view().empty()) {
      pods.launcher_started = pod.status.start_time;
    }
  }
  if (is_bound && !has_node) pods.has_lost_node = true;
  for (const kube::ContainerStatus& status : pod.status.container_statuses) ReadContainer(pod, status, part, pods);
  for (const kube::ContainerStatus& status : pod.status.init_container_statuses) ReadContainer(pod, status, part, pods);
}

}  // namespace grus
