// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/pod_state.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "controllers/elastic/host_list.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/pod_security.h"
#include "controllers/policy/pod_trouble.h"
#include "controllers/policy/yield_words.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

// How the pod was born: its gate may be lifted by now.
Gang GangOf(const kube::Pod& pod) {
  if (pod.metadata.labels.Get(api::kPodGroupLabel).empty()) return Gang::kNone;
  const bool was_gated = HasGate(pod, api::kGangGate) || !pod.metadata.Annotation(kBornGatedAnnotation).empty() ||
                         !pod.metadata.Annotation(api::kGangLiftedAnnotation).empty();  // Of an older grus.
  return was_gated ? Gang::kGated : Gang::kUngated;
}

void ReadState(const kube::Pod& pod, bool has_node, PodState& state) {
  state.name = pod.metadata.name;
  state.uid = pod.metadata.uid;
  state.is_bound = !pod.spec.node_name.empty();
  state.has_ended = HasEnded(pod) && !pod.metadata.is_being_deleted();
  state.is_ending = pod.metadata.is_being_deleted() || state.has_ended;
  state.has_lost_node = state.is_bound && !has_node;
  if (!state.is_ending) state.trouble = TroubleOf(pod);
  state.end = ErrorEndOf(pod);
  state.silent_scheduler = SilentSchedulerOf(pod);
}

}  // namespace

std::optional<int> OrdinalOf(std::string_view pod_name, std::string_view workers_name) {
  if (!pod_name.starts_with(workers_name) || pod_name.size() < workers_name.size() + 2) return std::nullopt;
  if (pod_name[workers_name.size()] != '-') return std::nullopt;
  const std::int64_t ordinal = ParseInteger(pod_name.substr(workers_name.size() + 1)).value_or(-1);
  if (ordinal < 0 || ordinal > 1'000'000) return std::nullopt;
  return static_cast<int>(ordinal);
}

int RestartsOf(const api::ElasticHorovodJob& job) { return job.status.usage ? job.status.usage->restarts : 0; }

bool IsLeftOver(const kube::ObjectMeta& child, const api::ElasticHorovodJob& job) {
  return ParseInteger(child.Annotation(kRestartsAnnotation)).value_or(0) < RestartsOf(job);
}

Worker ReadWorker(const kube::Pod& pod, int ordinal, bool has_node) {
  Worker worker;
  ReadState(pod, has_node, worker);
  worker.ordinal = ordinal;
  worker.node = pod.spec.node_name.view();
  worker.resource_version = pod.metadata.resource_version;
  worker.gang = GangOf(pod);
  worker.has_filled_security = !pod.metadata.Annotation(kPodSecurityAnnotation).empty();
  worker.created = pod.metadata.creation_timestamp;
  worker.leaves_by = pod.metadata.deletion_timestamp;
  if (pod.spec.scheduling_gates.empty()) {  // Of the gang, or one that another controller may keep for long.
    worker.asked_since = pod.metadata.creation_timestamp;
    const auto lifted = kube::ParseTime(pod.metadata.Annotation(api::kGangLiftedAnnotation));
    if (lifted) worker.asked_since = std::max(worker.asked_since.value_or(*lifted), *lifted);
  }
  worker.is_gated = HasGate(pod, api::kGangGate);
  worker.foreign_gate = ForeignGateOf(pod);
  if (pod.status.pod_ip.view().find(':') == std::string_view::npos) {
    worker.address = std::string(pod.status.pod_ip);
  } else if (worker.trouble.empty()) {
    worker.trouble = "its address is " + std::string(pod.status.pod_ip) + ", and Horovod needs one of IPv4";
  }
  const auto* ready = kube::FindCondition(pod.status.conditions, "Ready");
  if (ready && ready->is_true()) {
    worker.is_ready = worker.is_bound && !worker.is_ending;
    worker.ready_since = ready->last_transition_time;
  }
  worker.is_cut_off =
      worker.is_bound && !worker.is_ending && !worker.is_ready && !pod.status.container_statuses.empty();
  for (const kube::ContainerStatus& container : pod.status.container_statuses) {
    worker.is_cut_off &= container.ready && container.state.running.has_value();
    worker.has_started |= container.state.running.has_value();
    if (!container.ready && container.state.running) worker.silent_since = container.state.running->started_at;
  }
  if (const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled")) {
    if (scheduled->is_true()) {
      worker.bound_since = scheduled->last_transition_time;
      if (!worker.is_ready) {
        worker.unready_since = scheduled->last_transition_time;
        if (ready) worker.unready_since = std::max(*worker.unready_since, ready->last_transition_time);
      }
    } else if (scheduled->reason == "Unschedulable" && !worker.is_bound) {
      // PodScheduled was False while the pod was gated, too, and keeps the time of the first False.
      const kube::Time since = scheduled->last_transition_time;
      worker.unschedulable_since = std::max(worker.asked_since.value_or(since), since);
    }
  }
  return worker;
}

LauncherPod ReadLauncherPod(const kube::Pod& pod, bool has_node) {
  LauncherPod launcher;
  ReadState(pod, has_node, launcher);
  launcher.is_running = pod.status.phase == "Running" && !launcher.has_lost_node;
  launcher.hosts_revision = RevisionOfHostList(pod.metadata.Annotation(kHostsAnnotation));
  launcher.told_deadline = std::string(pod.metadata.Annotation(kPreemptionDeadlineAnnotation));
  launcher.created = pod.metadata.creation_timestamp;
  for (const kube::ContainerStatus& container : pod.status.container_statuses) {
    if (container.name != "launcher") continue;
    if (container.state.running) launcher.running_since = container.state.running->started_at;
    if (container.state.terminated) launcher.ended = container.state.terminated->finished_at;
  }
  if (const std::string gate = ForeignGateOf(pod); !gate.empty()) {
    launcher.trouble = "cannot start before another controller removes its scheduling gate " + gate;
  } else if (const auto* unschedulable = kube::FindUnschedulable(pod); unschedulable && !launcher.is_bound) {
    launcher.trouble = "cannot be scheduled: " + std::string(unschedulable->message);
  }
  return launcher;
}

void SortByWorth(std::vector<const Worker*>& workers) {
  struct OnNode {
    int count = 0;
    int first = std::numeric_limits<int>::max();  // The lowest ordinal.
  };
  std::map<std::string_view, OnNode> nodes;
  for (const Worker* worker : workers) {
    if (worker->node.empty()) continue;
    OnNode& node = nodes[worker->node];
    ++node.count;
    node.first = std::min(node.first, worker->ordinal);
  }
  const auto key = [&](const Worker* worker) {
    const OnNode node = worker->node.empty() ? OnNode() : nodes[worker->node];
    return std::tuple(!worker->is_usable(), !worker->is_bound, -node.count, node.first, worker->ordinal);
  };
  std::ranges::stable_sort(workers, {}, key);
}

}  // namespace grus
