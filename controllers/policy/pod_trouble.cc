// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_trouble.h"

#include <algorithm>
#include <string_view>

#include "crds/types/pod_group.h"

namespace grus {
namespace {

constexpr std::size_t kLongest = 300;  // Of somebody else's text, in bytes.

// The last line with text: of a log, it tells why the container ended.
std::string LastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  const std::size_t end = text.rfind('\n');
  return std::string(end == std::string_view::npos ? text : text.substr(end + 1));
}

std::string Cut(std::string text) {
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // Not within a character.
  return text.substr(0, end) + "...";
}

std::string TextOf(const kube::ContainerStateTerminated& end) {
  std::string text = "exit code " + std::to_string(end.exit_code);
  if (!end.reason.empty() && end.reason != "Error") text += " (" + std::string(end.reason) + ")";
  constexpr int kFirstSignal = 128;  // What a process last printed is not why somebody killed it.
  const std::string line = end.exit_code > kFirstSignal ? std::string() : LastLine(end.message.view());
  return line.empty() ? text : text + ": " + Cut(line);
}

std::string ImageOf(const kube::Pod& pod, std::string_view container) {
  for (const auto* containers : {&pod.spec.containers, &pod.spec.init_containers}) {
    for (const kube::Container& c : *containers) {
      if (c.name == container) return std::string(c.image);
    }
  }
  return {};
}

// The kubelet reports one failed pull by two messages in turn, one of which quotes the other.
std::string PullTrouble(const kube::Pod& pod, const kube::ContainerStatus& container) {
  std::string_view message = container.state.waiting->message.view();
  for (const std::string_view word : {"ErrImagePull: ", "ErrImageNeverPull: "}) {
    const std::size_t at = message.find(word);
    if (at != std::string_view::npos) message.remove_prefix(at + word.size());
  }
  std::string text = "cannot pull image \"" + ImageOf(pod, container.name.view()) + "\"";
  if (!message.empty() && !message.starts_with("Back-off")) text += ": " + Cut(std::string(message));
  return text;
}

const kube::ContainerStateTerminated* ErrorEndOf(const kube::ContainerStatus& container) {
  for (const auto* state : {&container.state, &container.last_state}) {
    if (state->terminated && state->terminated->exit_code != 0) return &*state->terminated;
  }
  return nullptr;
}

std::string TroubleOf(const kube::Pod& pod, const kube::ContainerStatus& container) {
  const kube::ContainerStateTerminated* end = ErrorEndOf(container);
  if (container.state.waiting) {
    const std::string_view reason = container.state.waiting->reason.view();
    if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") return {};
    if (reason.starts_with("ErrImage") || reason == "ImagePullBackOff") return PullTrouble(pod, container);
    // The message of CrashLoopBackOff counts seconds, and between two back-offs the kubelet reports RunContainerError.
    if (reason == "CrashLoopBackOff" || (reason == "RunContainerError" && end)) {
      return "ends again and again" + (end ? ": " + TextOf(*end) : std::string());
    }
    std::string text = "does not start: " + std::string(reason);
    const std::string_view message = container.state.waiting->message.view();
    return message.empty() ? text : text + ": " + Cut(std::string(message));
  }
  if (end && !container.ready) return "ended: " + TextOf(*end);
  return {};
}

}  // namespace

std::string TroubleOf(const kube::Pod& pod) {
  for (const auto* statuses : {&pod.status.init_container_statuses, &pod.status.container_statuses}) {
    for (const kube::ContainerStatus& container : *statuses) {
      if (std::string text = TroubleOf(pod, container); !text.empty()) {
        return "container " + std::string(container.name) + " " + text;
      }
    }
  }
  return {};
}

std::string ErrorEndOf(const kube::Pod& pod) {
  for (const kube::ContainerStatus& container : pod.status.container_statuses) {
    if (const kube::ContainerStateTerminated* end = ErrorEndOf(container)) return TextOf(*end);
  }
  if (pod.status.phase != "Failed") return {};
  std::string text = pod.status.reason.empty() ? "failed" : std::string(pod.status.reason);
  if (!pod.status.message.empty()) text += ": " + Cut(std::string(pod.status.message));
  return text;
}

std::string ForeignGateOf(const kube::Pod& pod) {
  std::string foreign;
  for (const kube::PodSchedulingGate& gate : pod.spec.scheduling_gates) {
    if (gate.name != api::kGangGate) foreign = gate.name;
  }
  return foreign;
}

std::string SilentSchedulerOf(const kube::Pod& pod) {
  const bool waits = pod.spec.node_name.empty() && pod.spec.scheduling_gates.empty() &&
                     !pod.metadata.is_being_deleted() && !HasEnded(pod);
  // A pod whose gate was just lifted still has the condition of a gated one.
  const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
  const bool has_answer = scheduled && scheduled->reason != "SchedulingGated";
  return waits && !has_answer ? std::string(pod.spec.scheduler_name) : std::string();
}

std::string SilenceText(std::string_view scheduler, std::string_view pod) {
  return "scheduler \"" + std::string(scheduler) + "\" has said nothing of pod " + std::string(pod) + ": does it run?";
}

}  // namespace grus
