// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_workload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "controllers/policy/training_container.h"
#include "controllers/policy/worker_devices.h"

namespace grus {
namespace {

using kube::Json;

std::map<std::string, std::string> NodeSelectorOf(const Json& pod_template) {
  std::map<std::string, std::string> labels;
  const Json* selector = pod_template.At({"spec", "nodeSelector"});
  if (selector == nullptr || selector->AsObject() == nullptr) return labels;
  for (const auto& [key, value] : *selector->AsObject()) {
    if (value.AsString() != nullptr) labels[key] = *value.AsString();
  }
  return labels;
}

bool HasWords(const Json& container, std::string_view list) {
  const Json* words = container.Find(list);
  return words != nullptr && words->AsArray() != nullptr && !words->AsArray()->empty();
}

// What the command says of nodes.
struct NodesInCommand {
  bool runs_torchrun = false;
  std::string fixed = {};  // What makes each pod a training of its own, or sets their number; empty: nothing does.
};

constexpr std::string_view kNumbers[] = {"--nnodes", "--node-rank", "--node_rank"};
constexpr std::string_view kPlaces[] = {"--master-addr", "--master_addr", "--rdzv-endpoint", "--rdzv_endpoint"};

NodesInCommand NodesInCommandOf(const Json& container) {
  std::string text;
  for (const char* list : {"command", "args"}) {
    const Json* words = container.Find(list);
    if (words == nullptr || words->AsArray() == nullptr) continue;
    for (const Json& word : *words->AsArray()) {
      if (word.AsString() != nullptr) text += *word.AsString() + ' ';
    }
  }
  NodesInCommand found;
  constexpr std::string_view kBetween = " \t\n;&|()\"'=";
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    words.push_back(std::string_view(text).substr(at, end - at));
    at = text.find_first_not_of(kBetween, end);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view program = words[i].substr(words[i].rfind('/') + 1);
    if (program == "torchrun" || words[i] == "torch.distributed.run") found.runs_torchrun = true;
    if (words[i] == "--standalone") found.fixed = words[i];
    if (i + 1 == words.size()) continue;
    const std::string_view value = words[i + 1];
    const bool is_number = std::ranges::find(kNumbers, words[i]) != std::end(kNumbers);
    const bool is_place = std::ranges::find(kPlaces, words[i]) != std::end(kPlaces);
    const bool is_local = value.starts_with("localhost") || value.starts_with("127.");
    // "$(NNODES)" is split at its brackets.
    if ((is_number && value.front() != '$') || (is_place && is_local)) {
      found.fixed = std::string(words[i]) + "=" + std::string(value);
    }
  }
  return found;
}

kube::Error Unusable(const std::string& why) {
  return kube::Error(kube::ErrorCode::kInvalidArgument, "workload.podTemplate " + why);
}

}  // namespace

Workload JobWorkload(api::ElasticHorovodJobSpec spec) {
  Workload workload;
  const WorkerDevices devices = DevicesOf(spec.workers);
  workload.gpus_per_worker = devices.count;
  workload.part = devices.part;
  workload.most_workers = spec.workers.max_replicas;
  workload.node_selector = NodeSelectorOf(spec.workers.pod_template);
  workload.made_from = std::move(spec);
  return workload;
}

kube::Result<Workload> PodWorkload(Json pod_template, const api::TrialSpace& space) {
  if (const std::string* left_out = pod_template.AsString()) return Unusable("has " + *left_out);
  const Json* container = TrainingContainerOf(pod_template);
  if (container == nullptr) return Unusable("has no container that could train");
  const Json::Array& all = *pod_template.At({"spec", "containers"})->AsArray();
  if (!std::all_of(all.begin(), all.end(), [](const Json& one) { return one.is_object(); })) {
    return Unusable("has a container that is not an object");
  }
  if (std::count_if(all.begin(), all.end(), AsksForGpus) > 1) {
    return Unusable("has several containers that ask for GPUs, but only one can train");
  }
  const bool has_option = !space.batch_size_option.empty() && !space.batch_sizes.empty();
  if (has_option && !HasWords(*container, "command") && !HasWords(*container, "args")) {
    return Unusable("has neither command nor args that space.batchSizeOption could follow");
  }
  const bool asks_for_nodes = !space.placements.empty() || !space.node_counts.empty();
  const NodesInCommand nodes = NodesInCommandOf(*container);
  if (asks_for_nodes && !nodes.fixed.empty()) {
    return Unusable("says " + nodes.fixed +
                    " in its command, but space.placements and space.nodeCounts decide how many nodes train together; "
                    "leave it out, or write --nnodes=$(NNODES)");
  }
  Workload workload;
  workload.is_pod = true;
  workload.part = GpuPartsOf(pod_template, *container);
  workload.is_on_one_node = !asks_for_nodes && (!nodes.runs_torchrun || !nodes.fixed.empty());
  workload.node_selector = NodeSelectorOf(pod_template);
  workload.made_from = std::move(pod_template);
  return workload;
}

}  // namespace grus
