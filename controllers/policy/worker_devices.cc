// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/worker_devices.h"

#include <algorithm>

#include "clientlib/model/quantity.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/pod_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using kube::Json;

constexpr char kWorkerContainer[] = "worker";
constexpr std::int64_t kMostDevices = 10'000, kMilliOfOne = 1000, kMostParts = kMostDevices * kMilliOfOne;

// The API server refuses what is no quantity, and fractions of a device: any count will do for them.
int CountOf(const Json& amount, std::int64_t most = kMostDevices) {
  if (const auto number = amount.AsInt()) return static_cast<int>(std::clamp<std::int64_t>(*number, 0, most));
  const std::string* text = amount.AsString();
  const auto quantity = text ? kube::ParseQuantity(*text) : kube::Result<kube::Quantity>(kube::Quantity());
  return quantity ? static_cast<int>(std::clamp<std::int64_t>(quantity->Value(), 0, most)) : 0;
}

}  // namespace

Resources GpuPartsOf(const Json& container) {
  Resources parts;
  for (const char* kind : {"limits", "requests"}) {
    const Json* amounts = container.At({"resources", kind});
    if (!amounts || !amounts->AsObject()) continue;
    for (const auto& [resource, amount] : *amounts->AsObject()) {
      if (IsGpuPart(resource) && parts.Extended(resource) == 0)
        parts.AddExtended(resource, CountOf(amount, kMostParts));
    }
  }
  return parts;
}

Resources GpuPartsOf(const Json& pod_template, const Json& container) {
  Resources parts = GpuPartsOf(container);
  const Json* said = pod_template.At({"metadata", "annotations", api::kMemoryMiBAnnotation});
  if (said == nullptr || !said->AsString() || parts.Extended(api::kGpuMilliResource) == 0) return parts;
  if (WholeGpusOf(parts) > 0) return parts;  // They have all their memory.
  kube::ObjectMeta pod;
  pod.annotations = {{api::kMemoryMiBAnnotation, *said->AsString()}};
  parts.AddExtended(kSaidMemory, SaidMemoryOf(pod));
  return parts;
}

WorkerDevices DevicesOf(const api::WorkersSpec& workers) {
  const Json* list = workers.pod_template.At({"spec", "containers"});
  const Json::Array* containers = list ? list->AsArray() : nullptr;
  for (std::size_t i = 0; containers && i < containers->size(); ++i) {
    const Json* name = (*containers)[i].Find("name");
    if (!name || !name->AsString() || *name->AsString() != kWorkerContainer) continue;
    for (const char* kind : {"limits", "requests"}) {
      const Json* amounts = (*containers)[i].At({"resources", kind});
      if (!amounts || !amounts->AsObject()) continue;
      for (const auto& [resource, amount] : *amounts->AsObject()) {
        const int count = IsAccelerator(resource) ? CountOf(amount) : 0;
        if (count > 0) return {std::string(resource), count, true, count * kMilliOfOne};
      }
    }
    const Resources part = GpuPartsOf(workers.pod_template, (*containers)[i]);
    if (!AsksForGpuParts(part)) continue;
    const int gpus = static_cast<int>(std::max<std::int64_t>(WholeGpusOf(part), 1));
    return {std::string(part.Accelerator()), gpus, true, MilliOfGpuParts(part), part};
  }
  return {kGpuResource, workers.gpus_per_worker, false, workers.gpus_per_worker * kMilliOfOne};
}

}  // namespace grus
