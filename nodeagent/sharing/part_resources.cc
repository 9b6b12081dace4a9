// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_resources.h"

#include "crds/types/sharing_names.h"
#include "nodeagent/node_pods.h"

namespace grus {

std::string_view NameOf(PartResource resource) {
  switch (resource) {
    case PartResource::kMilli: return api::kGpuMilliResource;
    case PartResource::kMemory: return api::kVgpuMemoryResource;
    case PartResource::kCompute: return api::kVgpuComputeResource;
    case PartResource::kGpuMem: return api::kGpuMemResource;
  }
  return "";
}

std::optional<PartResource> CounterpartOf(PartResource resource) {
  switch (resource) {
    case PartResource::kMilli:
    case PartResource::kGpuMem: return std::nullopt;
    case PartResource::kMemory: return PartResource::kCompute;
    case PartResource::kCompute: return PartResource::kMemory;
  }
  return std::nullopt;
}

std::string AmountText(std::int64_t amount, PartResource resource) {
  return std::to_string(amount).append(" ").append(NameOf(resource));
}

std::string_view NameOf(SharingMode mode) {
  switch (mode) {
    case SharingMode::kNone: return "";
    case SharingMode::kMilli: return "milli";
    case SharingMode::kAlnair: return "alnair";
    case SharingMode::kGpushare: return "gpushare";
    case SharingMode::kDra: return "dra";
  }
  return "";
}

std::span<const PartResource> ResourcesOf(SharingMode mode) {
  static constexpr std::array kMilli = {PartResource::kMilli};
  static constexpr std::array kAlnair = {PartResource::kMemory, PartResource::kCompute};
  static constexpr std::array kGpushare = {PartResource::kGpuMem};
  switch (mode) {
    case SharingMode::kNone: return {};
    case SharingMode::kMilli: return kMilli;
    case SharingMode::kAlnair: return kAlnair;
    case SharingMode::kGpushare: return kGpushare;
    case SharingMode::kDra: return {};  // Claims name the GPU.
  }
  return {};
}

std::optional<PartPlacement> PlacementOf(std::string_view word, std::string_view scheduler) {
  if (word == "pack") return PartPlacement::kPack;
  if (word == "spread") return PartPlacement::kSpread;
  if (scheduler == api::kPackingScheduler) return PartPlacement::kPack;
  if (scheduler == api::kSpreadingScheduler) return PartPlacement::kSpread;
  return std::nullopt;
}

kube::Result<PartPlacement> PlacementOf(const kube::ObjectMeta& node) {
  if (!node.labels.contains(api::kPartPlacementKey)) return PartPlacement::kPack;
  const std::string_view word = node.Label(api::kPartPlacementKey);
  if (const auto placement = PlacementOf(word)) return *placement;
  return kube::Error(kube::ErrorCode::kInvalidArgument, "node " + node.name + ": label " + api::kPartPlacementKey +
                                                            " is \"" + std::string(word) +
                                                            "\": expected pack or spread, or no such label");
}

kube::Result<SharingMode> SharingModeOf(const kube::ObjectMeta& node) {
  if (!node.labels.contains(api::kSharingModeLabel)) return SharingMode::kNone;
  const std::string_view text = node.Label(api::kSharingModeLabel);
  for (const SharingMode mode :
       {SharingMode::kMilli, SharingMode::kAlnair, SharingMode::kGpushare, SharingMode::kDra}) {
    if (text == NameOf(mode)) return mode;
  }
  return kube::Error(kube::ErrorCode::kInvalidArgument,
                     "node " + node.name + ": label " + api::kSharingModeLabel + " is \"" + std::string(text) +
                         "\": expected milli, alnair, gpushare or dra, or no such label");
}

}  // namespace grus
