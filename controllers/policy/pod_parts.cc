// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_parts.h"

#include <algorithm>

#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/part_memory.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr std::int64_t kMostGpus = 10'000;  // Users may ask for any number.

std::int64_t MilliOf(const kube::Container& container) {
  const kube::Quantity* milli = kube::FindResource(container.resources.requests, api::kGpuMilliResource);
  return milli != nullptr ? milli->Value() : 0;
}

// The kubelet hands what an init container had on to the next one, any of it: of whole GPUs, less is no whole ones.
bool HandsOnTooMuch(const kube::PodSpec& pod) {
  std::int64_t had = 0;
  for (const auto* containers : {&pod.init_containers, &pod.containers}) {
    for (const kube::Container& container : *containers) {
      const std::int64_t milli = MilliOf(container);
      if (milli <= 0) continue;
      if (had > kWholeGpuMilli && milli < had) return true;
      const bool is_handed_on = containers == &pod.init_containers && container.restart_policy != "Always";
      had = is_handed_on ? milli : 0;
    }
  }
  return false;
}

bool IsMixed(const kube::PodSpec& pod) {
  const auto is_broken = [](const kube::Container& container) { return MilliOf(container) % kWholeGpuMilli != 0; };
  return std::ranges::any_of(pod.containers, is_broken) || std::ranges::any_of(pod.init_containers, is_broken) ||
         HandsOnTooMuch(pod);
}

// Containers that have a part each at a time: an init container that ends has what the others get after it, and holds
// it beside the sidecars before.
std::int64_t PartsAtATime(const kube::PodSpec& pod) {
  const auto asks = [](const kube::Container& container) {
    return MilliOf(container) > 0 && MilliOf(container) <= kWholeGpuMilli;
  };
  std::int64_t sidecars = 0, most = 0;
  for (const kube::Container& container : pod.init_containers) {
    if (!asks(container)) continue;
    most = std::max(most, sidecars + 1);
    if (container.restart_policy == "Always") ++sidecars;
  }
  return std::max<std::int64_t>(most, sidecars + std::ranges::count_if(pod.containers, asks));
}

}  // namespace

std::int64_t SaidMemoryOf(const kube::ObjectMeta& pod) { return std::min(api::MemoryMiBSaidBy(pod), kWholeGpuMemory); }

void AddSaidOfParts(const kube::Pod& pod, Resources& request) {
  if (request.Extended(api::kGpuMilliResource) <= 0) return;
  if (WholeGpusOf(request) > 0 && IsMixed(pod.spec)) request.AddExtended(kMixedParts, 1);
  const std::int64_t said = SaidMemoryOf(pod.metadata), parts = said > 0 ? PartsAtATime(pod.spec) : 0;
  if (parts == 0) return;
  // Where there are whole GPUs, for each of them as much as a container says that has one.
  const std::int64_t whole = WholeGpusOf(request);
  request.AddExtended(kSaidMemory, said * (whole > 0 ? std::min(whole, kMostGpus) : parts));
}

}  // namespace grus
