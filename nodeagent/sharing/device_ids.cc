// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/device_ids.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace grus {

std::string ToText(const PartId& id) { return id.gpu + "_" + std::to_string(id.number); }

std::optional<PartId> ParsePartId(std::string_view text) {
  const std::size_t at = text.rfind('_');
  if (text.size() > kLongestDeviceId || at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view digits = text.substr(at + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  PartId id{.gpu = std::string(text.substr(0, at))};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id.number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return id;
}

bool CanHaveParts(std::string_view uuid, std::int64_t count) {
  return !uuid.empty() && ToText({std::string(uuid), count}).size() <= kLongestDeviceId;
}

std::vector<PartId> ParsePartIds(const std::vector<std::string>& ids) {
  std::vector<PartId> parsed;
  for (const std::string& text : ids) {
    if (std::optional<PartId> id = ParsePartId(text)) parsed.push_back(*std::move(id));
  }
  std::ranges::sort(parsed);
  return parsed;
}

bool AreOnOneGpu(const std::vector<PartId>& ids) { return ids.empty() || ids.front().gpu == ids.back().gpu; }

std::vector<std::string> GpusOf(const std::vector<PartId>& ids) {
  std::set<std::string> gpus;
  for (const PartId& id : ids) gpus.insert(id.gpu);
  return {gpus.begin(), gpus.end()};
}

std::string GpuNames(const std::vector<PartId>& ids) {
  std::string list;
  for (const std::string& gpu : GpusOf(ids)) list.append(list.empty() ? "" : ", ").append(gpu);
  return list;
}

}  // namespace grus
