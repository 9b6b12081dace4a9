// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/gpushare_assumption.h"

#include <charconv>
#include <string_view>

#include "crds/types/gpushare_names.h"

namespace grus {
namespace {

constexpr std::int64_t kMostGpus = 64;

// nullopt: not a whole number from 0 on.
std::optional<std::int64_t> NumberIn(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<GpushareAssumption> AssumptionOf(const kube::ObjectMeta& pod) {
  const std::optional<std::int64_t> gpu = NumberIn(pod.Annotation(api::kGpushareIndex));
  if (!gpu || *gpu >= kMostGpus) return std::nullopt;
  return GpushareAssumption{static_cast<int>(*gpu), NumberIn(pod.Annotation(api::kGpushareAssumeTime)).value_or(0)};
}

}  // namespace grus
