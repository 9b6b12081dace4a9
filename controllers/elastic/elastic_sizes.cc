// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_sizes.h"

#include <algorithm>

#include "clientlib/model/quantity.h"
#include "controllers/policy/resources.h"

namespace grus {
namespace {

using kube::Json;

constexpr char kWorkerContainer[] = "worker";
constexpr std::int64_t kMostDevices = 64;  // As of gpusPerWorker.

// What is no quantity, or a part of a device, the API server refuses.
int CountOf(const Json& amount) {
  if (const auto number = amount.AsInt()) return static_cast<int>(std::clamp<std::int64_t>(*number, 0, kMostDevices));
  const std::string* text = amount.AsString();
  const auto quantity = text ? kube::ParseQuantity(*text) : kube::Result<kube::Quantity>(kube::Quantity());
  return quantity ? static_cast<int>(std::clamp<std::int64_t>(quantity->Value(), 0, kMostDevices)) : 0;
}

}  // namespace

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
        if (const int count = CountOf(amount); count > 0 && IsAccelerator(resource)) return {std::string(resource), count};
      }
    }
  }
  return {kGpuResource, workers.gpus_per_worker};
}

Sizes SizesOf(const api::WorkersSpec& workers) {
  Sizes sizes;
  const int target = workers.target_replicas.value_or(-1);
  // One worker at least, unless the user asked for none at all.
  sizes.min = workers.min_replicas.value_or(target == 0 || workers.max_replicas == 0 ? 0 : 1);
  sizes.max = workers.max_replicas.value_or(std::max(sizes.min, target));
  sizes.max = std::max(sizes.max, sizes.min);
  sizes.wanted = target < 0 ? sizes.max : std::clamp(target, sizes.min, sizes.max);
  sizes.slots = std::max(1, DevicesOf(workers).count);
  return sizes;
}

}  // namespace grus
