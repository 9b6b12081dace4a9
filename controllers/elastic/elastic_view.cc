// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_view.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "crds/types/pod_group.h"

namespace grus {
namespace {

std::int64_t ToInt(std::string_view text, std::int64_t fallback) {
  std::int64_t value = fallback;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : fallback;
}

// The next line of `text`, which is cut off it.
std::string_view TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

constexpr std::string_view kRevisionWord = "revision ";
// Each list has one more than the last, so no job comes near; a larger one was written by hand.
constexpr std::int64_t kMostRevision = 1'000'000'000'000'000;

// Of the first line of a host list, 0 if it has none.
std::int64_t RevisionOf(std::string_view line) {
  const std::int64_t revision = ToInt(line.substr(kRevisionWord.size()), 0);
  return revision >= 0 && revision <= kMostRevision ? revision : 0;
}

// In its pod template.
bool HasGate(const kube::StatefulSet& set, std::string_view gate) {
  const kube::Json* gates = set.spec_json.At({"template", "spec", "schedulingGates"});
  if (gates == nullptr || gates->AsArray() == nullptr) return false;
  return std::any_of(gates->AsArray()->begin(), gates->AsArray()->end(), [&](const kube::Json& item) {
    const kube::Json* name = item.Find("name");
    return name && name->AsString() && *name->AsString() == gate;
  });
}

bool HasEnded(const kube::Pod& pod) {
  return pod.metadata.is_being_deleted() || pod.status.phase == "Failed" || pod.status.phase == "Succeeded";
}

}  // namespace

bool HostList::Has(const std::string& pod) const {
  return std::find(hosts.begin(), hosts.end(), pod) != hosts.end();
}

std::string ServiceName(const api::ElasticHorovodJob& job) { return job.metadata.name + "-workers"; }
std::string WorkersName(const api::ElasticHorovodJob& job) { return job.metadata.name + "-workers"; }
std::string GroupName(const api::ElasticHorovodJob& job) { return job.metadata.name; }
std::string LauncherName(const api::ElasticHorovodJob& job) { return job.metadata.name + "-launcher"; }
std::string HostsName(const api::ElasticHorovodJob& job) { return job.metadata.name + "-hosts"; }
std::string SecretName(const api::ElasticHorovodJob& job) {
  return job.metadata.name + "-ssh-" + std::string(job.metadata.uid);
}

std::string HostListText(const HostList& list, const std::string& service) {
  std::string text = std::string(kRevisionWord) + std::to_string(list.revision) + "\n";
  for (const std::string& host : list.hosts) {
    text.append(host).append(".").append(service).append(":").append(std::to_string(list.slots)).append("\n");
  }
  return text;
}

std::optional<HostList> ReadHostList(const kube::ConfigMap& config_map) {
  const auto text = config_map.data.find("hosts");
  if (text == config_map.data.end()) return std::nullopt;
  HostList list;
  std::string_view rest = text->second;
  const std::string_view first = TakeLine(rest);
  if (!first.starts_with(kRevisionWord)) return std::nullopt;
  list.revision = RevisionOf(first);
  while (!rest.empty()) {
    const std::string_view line = TakeLine(rest);
    const std::size_t dot = line.find('.'), colon = line.rfind(':');
    if (dot == std::string_view::npos || colon == std::string_view::npos) continue;
    list.hosts.emplace_back(line.substr(0, dot));
    list.slots = static_cast<int>(ToInt(line.substr(colon + 1), 1));
  }
  if (const auto at = kube::ParseTime(config_map.metadata.Annotation(kPublishedAnnotation))) list.published = *at;
  return list;
}

std::optional<int> OrdinalOf(std::string_view pod_name, std::string_view set_name) {
  if (!pod_name.starts_with(set_name) || pod_name.size() < set_name.size() + 2) return std::nullopt;
  if (pod_name[set_name.size()] != '-') return std::nullopt;
  const std::int64_t ordinal = ToInt(pod_name.substr(set_name.size() + 1), -1);
  if (ordinal < 0 || ordinal > 1'000'000) return std::nullopt;
  return static_cast<int>(ordinal);
}

Worker ReadWorker(const kube::Pod& pod, int ordinal, bool has_node) {
  Worker worker;
  worker.ordinal = ordinal;
  worker.name = pod.metadata.name;
  worker.uid = std::string(pod.metadata.uid);
  worker.resource_version = std::string(pod.metadata.resource_version);
  worker.is_bound = !pod.spec.node_name.empty();
  worker.has_lost_node = worker.is_bound && !has_node;
  worker.is_ending = HasEnded(pod);
  worker.is_gated = std::any_of(pod.spec.scheduling_gates.begin(), pod.spec.scheduling_gates.end(),
                                [](const kube::PodSchedulingGate& gate) { return gate.name == kParkGate; });
  if (const auto* ready = kube::FindCondition(pod.status.conditions, "Ready"); ready && ready->is_true()) {
    worker.is_ready = worker.is_bound && !worker.is_ending;
    worker.ready_since = ready->last_transition_time;
  }
  if (const auto* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled")) {
    if (scheduled->is_true()) worker.bound_since = scheduled->last_transition_time;
    else if (scheduled->reason == "Unschedulable" && !worker.is_bound) {
      worker.unschedulable_since = scheduled->last_transition_time;
      // PodScheduled was False while the pod was gated too, and its time tells of the first False.
      for (const char* annotation : {kLiftedAnnotation, api::kGangLiftedAnnotation}) {
        if (const auto lifted = kube::ParseTime(pod.metadata.Annotation(annotation))) {
          worker.unschedulable_since = std::max(*worker.unschedulable_since, *lifted);
        }
      }
    }
  }
  return worker;
}

LauncherPod ReadLauncherPod(const kube::Pod& pod, bool has_node) {
  LauncherPod launcher;
  launcher.name = pod.metadata.name;
  launcher.uid = std::string(pod.metadata.uid);
  launcher.is_ending = HasEnded(pod);
  launcher.has_lost_node = !pod.spec.node_name.empty() && !has_node;
  launcher.is_running = pod.status.phase == "Running" && !launcher.has_lost_node;
  std::string_view pushed = pod.metadata.Annotation(kHostsAnnotation);
  if (const std::string_view first = TakeLine(pushed); first.starts_with(kRevisionWord)) {
    launcher.hosts_revision = RevisionOf(first);
  }
  for (const kube::ContainerStatus& container : pod.status.container_statuses) {
    const auto& terminated = container.state.terminated;
    if (!terminated || terminated->exit_code == 0) continue;
    launcher.failure = "exit code " + std::to_string(terminated->exit_code);
    if (!terminated->reason.empty()) launcher.failure += " (" + std::string(terminated->reason) + ")";
    if (!terminated->message.empty()) launcher.failure += ": " + std::string(terminated->message);
  }
  if (launcher.failure.empty() && pod.status.phase == "Failed") {
    launcher.failure = pod.status.reason.empty() ? "failed" : std::string(pod.status.reason);
    if (!pod.status.message.empty()) launcher.failure += ": " + std::string(pod.status.message);
  }
  return launcher;
}

WorkersState ReadWorkersState(const kube::StatefulSet& set) {
  WorkersState state;
  state.replicas = set.spec.replicas;
  const std::int64_t granted = ToInt(set.metadata.Annotation(kGrantedAnnotation), state.replicas);
  state.granted = static_cast<int>(std::clamp<std::int64_t>(granted, 0, std::max(0, state.replicas)));
  state.promised = static_cast<int>(std::clamp<std::int64_t>(granted, 0, std::numeric_limits<std::int32_t>::max()));
  state.is_gated = HasGate(set, kParkGate);
  if (set.spec_json.At({"template", "metadata", "labels", api::kPodGroupLabel}) != nullptr) {
    state.gang = HasGate(set, api::kGangGate) ? Gang::kGated : Gang::kUngated;
  }
  state.is_observed = set.status.observed_generation >= set.metadata.generation;
  return state;
}

}  // namespace grus
