// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_workload.h"

#include <algorithm>
#include <utility>

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

kube::Error Unusable(const std::string& why) {
  return kube::Error(kube::ErrorCode::kInvalidArgument, "workload.podTemplate " + why);
}

}  // namespace

Workload JobWorkload(api::ElasticHorovodJobSpec spec) {
  Workload workload;
  workload.gpus_per_worker = DevicesOf(spec.workers).count;
  workload.most_workers = spec.workers.max_replicas;
  workload.node_selector = NodeSelectorOf(spec.workers.pod_template);
  workload.made_from = std::move(spec);
  return workload;
}

kube::Result<Workload> PodWorkload(Json pod_template, const api::TrialSpace& space) {
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
  Workload workload;
  workload.is_on_one_node = true;
  workload.node_selector = NodeSelectorOf(pod_template);
  workload.trial_kind = "Pod";
  workload.made_from = std::move(pod_template);
  return workload;
}

}  // namespace grus
