// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_checks.h"

#include <algorithm>
#include <string>

#include "crds/types/part_memory.h"
#include "crds/types/sharing_names.h"
#include "nodeagent/sharing/gpu_chooser.h"
#include "nodeagent/sharing/whole_gpus.h"

namespace grus {
namespace {

kube::Error Refused(const std::string& why) { return kube::Error(kube::ErrorCode::kInvalidArgument, why); }

}  // namespace

kube::Result<std::vector<PartId>> CheckIds(PartResource resource, const std::vector<std::string>& ids,
                                           const std::vector<SharedGpu>& gpus) {
  const auto amount = static_cast<std::int64_t>(ids.size());
  if (ids.empty()) return Refused(AmountText(0, resource) + ": ask for at least 1");
  std::int64_t most = 0;
  for (const SharedGpu& gpu : gpus) most = std::max(most, gpu.count(resource));
  const bool are_whole = IsForWholeGpus(resource, amount);
  if (amount > most && !are_whole) return TooMuchFor(resource, amount, most);
  if (are_whole && amount % kMilliOfGpu != 0) return NoWholeGpus(amount);
  for (const std::string& text : ids) {
    const std::optional<PartId> id = ParsePartId(text);
    const auto gpu = id ? std::ranges::find(gpus, id->gpu, &SharedGpu::uuid) : gpus.end();
    if (gpu == gpus.end() || id->number >= gpu->count(resource)) {
      return Refused(AmountText(amount, resource) + ": this node has no device " + text.substr(0, kLongestDeviceId) +
                     " (any more); create the pod again");
    }
    if (!gpu->is_healthy) {
      return Refused(AmountText(amount, resource) + ": " + gpu->uuid +
                     " is sick (the node's Events say how); create the pod again, so that it gets another GPU");
    }
  }
  std::vector<PartId> parsed = ParsePartIds(ids);
  if (std::ranges::adjacent_find(parsed) != parsed.end()) {
    return Refused(AmountText(amount, resource) + ": a device is named twice");
  }
  if (are_whole && !AreWholeGpus(resource, parsed)) {
    return Refused(AmountText(amount, resource) + ": the devices are not those of " +
                   std::to_string(amount / kMilliOfGpu) + " whole GPUs, but of parts of " + GpuNames(parsed) +
                   "; create the pod again");
  }
  if (!are_whole && !AreOnOneGpu(parsed)) {
    return Refused(AmountText(amount, resource) + ": the devices lie on several GPUs (" + GpuNames(parsed) +
                   "), and what a container gets lies on one; create the pod again, or ask for less");
  }
  return parsed;
}

kube::Status CheckHeld(const HeldParts& held) {
  const std::string owner = OwnerText(held.pod, held.container);
  if (held.gpus().size() > 1 && !held.has_whole_gpus()) {
    std::string list;
    for (const std::string& gpu : held.gpus()) list.append(list.empty() ? "" : ", ").append(gpu);
    return Refused(owner + ": its parts lie on several GPUs (" + list +
                   "); delete the pod, and create it again, so that it gets them on one");
  }
  const PartAmounts amounts = held.amounts();
  if (amounts[PartResource::kCompute] > 0 && amounts[PartResource::kMemory] == 0) {
    return Refused(owner + ": it asks for " + AmountText(amounts[PartResource::kCompute], PartResource::kCompute) +
                   " without memory; add limits of " + std::string(NameOf(PartResource::kMemory)) +
                   " (GiB) to the container, and create the pod again");
  }
  return {};
}

kube::Status CheckMemory(const HeldParts& starting, std::span<const HeldParts> started, const SharedGpu& gpu) {
  if (starting.amounts()[PartResource::kMilli] == 0) return {};
  std::int64_t free = gpu.memory_mib;
  for (const HeldParts& other : started) {
    free -= MemoryMiBOf(other.amounts_on(gpu.uuid), gpu, other.memory_mib);
  }
  const std::int64_t wanted = MemoryMiBOf(starting.amounts_on(gpu.uuid), gpu, starting.memory_mib);
  if (wanted <= free) return {};
  return Refused(OwnerText(starting.pod, starting.container) + ": it asks for " + std::to_string(wanted) + " MiB of " +
                 gpu.uuid + ", which has " + std::to_string(std::max<std::int64_t>(free, 0)) +
                 " left; it starts once others there have ended, or create the pod again with less (" +
                 api::kMemoryMiBAnnotation + ")");
}

}  // namespace grus
