// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/training_container.h"

#include <algorithm>
#include <utility>

#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/worker_devices.h"

namespace grus {

bool AsksForGpus(const kube::Json& container) {
  return container.At({"resources", "limits", kGpuResource}) || container.At({"resources", "requests", kGpuResource}) ||
         AsksForGpuParts(GpuPartsOf(container));
}

const kube::Json* TrainingContainerOf(const kube::Json& pod_template) {
  const kube::Json* list = pod_template.At({"spec", "containers"});
  const kube::Json::Array* containers = list != nullptr ? list->AsArray() : nullptr;
  if (containers == nullptr || containers->empty()) return nullptr;
  const auto found = std::ranges::find_if(*containers, AsksForGpus);
  return found != containers->end() ? &*found : &containers->front();
}

kube::Json* TrainingContainerOf(kube::Json& pod_template) {
  return const_cast<kube::Json*>(TrainingContainerOf(std::as_const(pod_template)));
}

std::string TrainingContainerOf(const kube::Pod& pod) {
  if (pod.spec.containers.empty()) return {};
  const auto asks_for_gpus = [](const kube::ResourceRequirements& resources) {
    const auto is_one = [](const auto& amount) { return amount.first == kGpuResource || IsGpuPart(amount.first); };
    return std::ranges::any_of(resources.requests, is_one) || std::ranges::any_of(resources.limits, is_one);
  };
  const auto found = std::ranges::find_if(pod.spec.containers, asks_for_gpus, &kube::Container::resources);
  return (found != pod.spec.containers.end() ? *found : pod.spec.containers.front()).name.str();
}

}  // namespace grus
