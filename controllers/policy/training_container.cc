// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/training_container.h"

#include <algorithm>
#include <utility>

#include "controllers/policy/resources.h"

namespace grus {

bool AsksForGpus(const kube::Json& container) {
  for (const char* list : {"limits", "requests"}) {
    if (container.At({"resources", list, kGpuResource}) != nullptr) return true;
  }
  return false;
}

const kube::Json* TrainingContainerOf(const kube::Json& pod_template) {
  const kube::Json* list = pod_template.At({"spec", "containers"});
  const kube::Json::Array* containers = list != nullptr ? list->AsArray() : nullptr;
  if (containers == nullptr || containers->empty()) return nullptr;
  const auto found = std::find_if(containers->begin(), containers->end(), AsksForGpus);
  return found != containers->end() ? &*found : &containers->front();
}

kube::Json* TrainingContainerOf(kube::Json& pod_template) {
  return const_cast<kube::Json*>(TrainingContainerOf(std::as_const(pod_template)));
}

std::string TrainingContainerOf(const kube::Pod& pod) {
  if (pod.spec.containers.empty()) return {};
  const auto found =
      std::find_if(pod.spec.containers.begin(), pod.spec.containers.end(), [](const kube::Container& container) {
        return kube::FindResource(container.resources.requests, kGpuResource) != nullptr ||
               kube::FindResource(container.resources.limits, kGpuResource) != nullptr;
      });
  return (found != pod.spec.containers.end() ? *found : pod.spec.containers.front()).name.str();
}

}  // namespace grus
