// SPDX-License-Identifier: Apache-2.0
// The extended resources by which a pod asks for a part of a GPU, and which of them a node offers. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"
#include "clientlib/model/meta.h"

namespace grus {

enum class PartResource { kMilli, kMemory, kCompute, kGpuMem };
inline constexpr std::array kPartResources = {PartResource::kMilli, PartResource::kMemory, PartResource::kCompute,
                                              PartResource::kGpuMem};

// Ids, or what is asked for, of each resource: thousandths, GiB, percent, GiB.
class PartAmounts {
 public:
  std::int64_t& operator[](PartResource resource) { return of_[static_cast<std::size_t>(resource)]; }
  std::int64_t operator[](PartResource resource) const { return of_[static_cast<std::size_t>(resource)]; }
  bool is_zero() const { return *this == PartAmounts(); }
  friend bool operator==(const PartAmounts&, const PartAmounts&) = default;

 private:
  std::array<std::int64_t, kPartResources.size()> of_ = {};
};

std::string_view NameOf(PartResource resource);  // "ai.centauruscloud.io/gpu-milli"
// What a container may ask for beside `resource`, on the same GPU.
std::optional<PartResource> CounterpartOf(PartResource resource);
std::string AmountText(std::int64_t amount, PartResource resource);  // "300 ai.centauruscloud.io/gpu-milli"

// In which way a node offers its GPUs: in one only, as the kubelet counts each resource by itself.
enum class SharingMode { kNone, kMilli, kAlnair, kGpushare, kDra };

std::string_view NameOf(SharingMode mode);                    // The label's value; "" for kNone.
std::span<const PartResource> ResourcesOf(SharingMode mode);  // Of device plugins; kDra has none.
// How a GPU is chosen for a pod that has no plan: the fullest with room, or the emptiest. An annotation of the pod, and
// a label of the node for pods that say nothing. A pod may name one of Alnair's schedulers instead.
enum class PartPlacement { kPack, kSpread };
// Neither of the words says nothing.
std::optional<PartPlacement> PlacementOf(std::string_view word, std::string_view scheduler = {});
// By the label of the node; without it: kPack. Error (kInvalidArgument): it is neither of the words.
kube::Result<PartPlacement> PlacementOf(const kube::ObjectMeta& node);

// By the label of the node; without it: kNone. Error (kInvalidArgument): a value that is not known.
kube::Result<SharingMode> SharingModeOf(const kube::ObjectMeta& node);

}  // namespace grus
