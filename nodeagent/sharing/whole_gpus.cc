// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/whole_gpus.h"

#include <algorithm>
#include <cstddef>

#include "nodeagent/sharing/shared_gpus.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr PartResource kMilli = PartResource::kMilli;

std::int64_t CountOf(const std::vector<const GpuRoom*>& gpus, const std::vector<std::string>& uuids) {
  return std::ranges::count_if(gpus, [&](const GpuRoom* gpu) { return std::ranges::count(uuids, gpu->uuid) > 0; });
}

Error NotSoManyFree(const ChooserView& view, std::int64_t wanted, const std::vector<const GpuRoom*>& free) {
  std::string list;
  for (const GpuRoom& gpu : view.gpus) {
    list.append(list.empty() ? ": " : ", ").append(gpu.uuid + " has ").append(std::to_string(gpu.free[kMilli]));
  }
  return Error(ErrorCode::kInvalidArgument, AmountText(view.amount, kMilli) + ": " + std::to_string(wanted) +
                                                " whole GPUs, and of those that work nobody has a part of " +
                                                std::to_string(free.size()) + list +
                                                "; create the pod again once others have ended, or ask for less");
}

// Of the ended init containers of the pod: the kubelet gives their ids to the next one first, whatever is preferred.
Error NeededIsNotFree(const ChooserView& view, const std::string& uuid) {
  return Error(ErrorCode::kInvalidArgument,
               AmountText(view.amount, kMilli) + ": an init container of the pod had a part of " + uuid +
                   ", which the kubelet hands on, and others have parts of it, or it is sick; create the pod again, or "
                   "let its init containers ask for none");
}

// Whether a container that is not one of the pod that asks is to have it, as far as is known.
bool IsPlannedForOthers(const ChooserView& view, const kube::ObjectKey* pod, const std::string& uuid) {
  return std::ranges::any_of(view.asks ? *view.asks : std::vector<PartAsk>(), [&](const PartAsk& ask) {
    const bool is_own = pod != nullptr && ask.pod == *pod;
    return !is_own && !ask.has_started && !HoldsAny(view, ask) && std::ranges::count(ask.planned_gpus, uuid) > 0;
  });
}

// The GPUs that are planned for the first that may be asking and whose plan can be followed.
const std::vector<std::string>* PlanOf(const std::vector<const PartAsk*>& candidates,
                                       const std::vector<const GpuRoom*>& free, std::int64_t wanted) {
  for (const PartAsk* candidate : candidates) {
    if (CountOf(free, candidate->planned_gpus) >= wanted) return &candidate->planned_gpus;
  }
  return nullptr;
}

}  // namespace

kube::Result<GpuChoice> ChooseWholeGpus(const ChooserView& view) {
  if (view.amount % kMilliOfGpu != 0) return NoWholeGpus(view.amount);
  const std::int64_t wanted = view.amount / kMilliOfGpu;
  std::vector<const GpuRoom*> free;
  for (const GpuRoom& gpu : view.gpus) {
    if (IsFree(gpu)) free.push_back(&gpu);
  }
  for (const std::string& uuid : view.needed) {
    if (CountOf(free, {uuid}) == 0) return NeededIsNotFree(view, uuid);
  }
  if (static_cast<std::int64_t>(free.size()) < wanted) return NotSoManyFree(view, wanted, free);

  const std::vector<const PartAsk*> candidates = Candidates(view);
  const kube::ObjectKey* const pod = PodOf(candidates);
  const std::vector<std::string>* const plan = PlanOf(candidates, free, wanted);
  std::ranges::stable_sort(free, {}, [&](const GpuRoom* gpu) {
    if (view.needed.contains(gpu->uuid)) return 0;
    if (plan != nullptr && std::ranges::count(*plan, gpu->uuid) > 0) return 1;
    return IsPlannedForOthers(view, pod, gpu->uuid) ? 3 : 2;
  });
  free.resize(static_cast<std::size_t>(wanted));
  std::ranges::sort(free);  // They lie in one vector, by index.
  GpuChoice choice;
  for (const GpuRoom* gpu : free) choice.gpus.push_back(gpu->uuid);
  return choice;
}

std::int64_t WholeGpusOf(const PartAsk& ask) {
  const std::int64_t milli = ask.amounts[kMilli];
  return IsForWholeGpus(kMilli, milli) && milli % kMilliOfGpu == 0 ? milli / kMilliOfGpu : 0;
}

std::int64_t WholeGpusAwaited(const ChooserView& view, const kube::ObjectKey& pod) {
  std::int64_t awaited = 0;
  for (const PartAsk& ask : view.asks ? *view.asks : std::vector<PartAsk>()) {
    if (ask.pod != pod || ask.is_init || ask.has_started || HoldsAny(view, ask)) continue;
    awaited += std::min(WholeGpusOf(ask), static_cast<std::int64_t>(view.gpus.size()) + 1);
  }
  return awaited;
}

bool IsFree(const GpuRoom& gpu) { return gpu.total[kMilli] > 0 && gpu.free[kMilli] == gpu.total[kMilli]; }

std::int64_t FreeGpus(const ChooserView& view) { return std::ranges::count_if(view.gpus, IsFree); }

kube::Error NoWholeGpus(std::int64_t milli) {
  return Error(ErrorCode::kInvalidArgument,
               AmountText(milli, kMilli) + ": ask for 1 to 1000, or for a multiple of 1000: whole GPUs");
}

}  // namespace grus
