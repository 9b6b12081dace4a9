// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_resources.h"

#include "nodeagent/node_pods.h"

namespace grus {

std::string_view NameOf(PartResource resource) {
  switch (resource) {
    case PartResource::kMilli: return kGpuMilliResource;
    case PartResource::kMemory: return kVgpuMemoryResource;
    case PartResource::kCompute: return kVgpuComputeResource;
  }
  return "";
}

std::optional<PartResource> CounterpartOf(PartResource resource) {
  switch (resource) {
    case PartResource::kMilli: return std::nullopt;
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
    case SharingMode::kDra: return "dra";
  }
  return "";
}

std::span<const PartResource> ResourcesOf(SharingMode mode) {
  static constexpr std::array kMilli = {PartResource::kMilli};
  static constexpr std::array kAlnair = {PartResource::kMemory, PartResource::kCompute};
  switch (mode) {
    case SharingMode::kNone: return {};
    case SharingMode::kMilli: return kMilli;
    case SharingMode::kAlnair: return kAlnair;
    case SharingMode::kDra: return {};  // Claims name the GPU.
  }
  return {};
}

kube::Result<SharingMode> SharingModeOf(const kube::ObjectMeta& node) {
  if (!node.labels.contains(kSharingModeLabel)) return SharingMode::kNone;
  const std::string_view text = node.Label(kSharingModeLabel);
  for (const SharingMode mode : {SharingMode::kMilli, SharingMode::kAlnair, SharingMode::kDra}) {
    if (text == NameOf(mode)) return mode;
  }
  return kube::Error(kube::ErrorCode::kInvalidArgument, "node " + node.name + ": label " + kSharingModeLabel +
                                                            " is \"" + std::string(text) +
                                                            "\": expected milli, alnair or dra, or no such label");
}

}  // namespace grus
