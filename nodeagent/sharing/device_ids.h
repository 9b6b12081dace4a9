// SPDX-License-Identifier: Apache-2.0
// The ids under which the kubelet knows the parts of a GPU: the GPU's UUID and a number, "GPU-4f2c..._17". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace grus {

inline constexpr std::size_t kLongestDeviceId = 63;  // That the kubelet takes.

struct PartId {
  std::string gpu = {};  // UUID
  std::int64_t number = 0;
  friend auto operator<=>(const PartId&, const PartId&) = default;  // Of one GPU: by number.
};

std::string ToText(const PartId& id);
// nullopt: no text that ToText() writes, or too long.
std::optional<PartId> ParsePartId(std::string_view text);
// All ids below `count` are short enough, and are read again as what they are.
bool CanHaveParts(std::string_view uuid, std::int64_t count);

// Sorted, without those that are none.
std::vector<PartId> ParsePartIds(const std::vector<std::string>& ids);
bool AreOnOneGpu(const std::vector<PartId>& ids);                 // REQUIRES: sorted.
std::vector<std::string> GpusOf(const std::vector<PartId>& ids);  // By UUID.
std::string GpuNames(const std::vector<PartId>& ids);             // "GPU-1, GPU-2"

}  // namespace grus
