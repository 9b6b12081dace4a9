// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_policies.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

namespace grus {
namespace {

using Typical = std::span<const TypicalPod>;

// FGD as published (pkg/simulator/plugin/fgd_score.go): the drop of fragmentation, squeezed into a whole number from 0
// to 100. So most nodes of a large cluster have the same score.
std::optional<GpuPlacement> PlaceFgd(const FreeGpus& node, const GpuRequest& pod, Typical typical) {
  const double before = Fragmentation(node, typical);
  std::optional<GpuPlacement> best;
  for (std::vector<int>& devices : DeviceChoices(node, pod)) {
    const double drop = before - Fragmentation(After(node, pod, devices), typical);
    const double score = std::floor(100 / (1 + std::exp(-drop / 1000)));
    if (!best || score > best->score) best = GpuPlacement{std::move(devices), score};
  }
  return best;
}

// BestFit as published (pkg/simulator/plugin/best_fit_score.go): the node with the least CPU and GPUs left, in
// hundredths of the largest node; on it, the device with the least free.
std::optional<GpuPlacement> PlaceBestFit(const FreeGpus& node, const GpuRequest& pod, Typical) {
  constexpr double kMostMilliCpu = 128'000, kMostMilliGpu = 8'000;
  std::vector<std::vector<int>> choices = DeviceChoices(node, pod);
  if (choices.empty()) return std::nullopt;
  const auto fullest = std::ranges::min_element(choices, {}, [&](const std::vector<int>& devices) {
    return devices.empty() ? 0 : node.device_milli[static_cast<std::size_t>(devices.front())];
  });
  const FreeGpus after = After(node, pod, *fullest);
  const int gpu_milli = std::accumulate(after.device_milli.begin(), after.device_milli.end(), 0);
  const double left = 0.5 * static_cast<double>(after.milli_cpu) / kMostMilliCpu + 0.5 * gpu_milli / kMostMilliGpu;
  return GpuPlacement{std::move(*fullest), std::floor(100 * (1 - left))};
}

constexpr OpenbPolicy kPolicies[] = {
    {"grus", PlacePod, Ties::kRandom},
    {"fgd", PlaceFgd, Ties::kName},
    {"bestfit", PlaceBestFit, Ties::kName},
};

}  // namespace

std::span<const OpenbPolicy> OpenbPolicies() { return kPolicies; }

}  // namespace grus
