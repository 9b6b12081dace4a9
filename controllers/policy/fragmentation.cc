// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/fragmentation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace grus {
namespace {

// Measured by replay of nine public workloads (bench/sim, scripts/bench-openb): what a node scores less for each core,
// and each whole GPU, that it has free.
constexpr double kPenaltyPerMilliCpu = 60.0 / 128'000;
constexpr double kPenaltyPerMilliGpu = 60.0 / 8'000;

int FreeMilli(const FreeGpus& node) { return std::accumulate(node.device_milli.begin(), node.device_milli.end(), 0); }

double Penalty(const FreeGpus& node) {
  return kPenaltyPerMilliCpu * static_cast<double>(node.milli_cpu) + kPenaltyPerMilliGpu * FreeMilli(node);
}

// Of `free` thousandths, those that are of no use to the pod.
int Unusable(const FreeGpus& node, int free, const GpuRequest& pod) {
  if (pod.devices == 0 || !Fits(node, pod)) return free;
  int unusable = 0;
  for (const int milli : node.device_milli) unusable += milli < pod.device_milli ? milli : 0;
  return unusable;
}

}  // namespace

std::vector<TypicalPod> TypicalPods(std::span<const GpuRequest> pods, double coverage) {
  std::map<GpuRequest, int> counts;
  for (const GpuRequest& pod : pods) ++counts[pod];
  std::vector<std::pair<GpuRequest, int>> frequent(counts.begin(), counts.end());
  std::stable_sort(frequent.begin(), frequent.end(), [](const auto& a, const auto& b) { return a.second > b.second; });

  const double wanted = coverage * static_cast<double>(pods.size());
  std::vector<TypicalPod> typical;
  int covered = 0;
  for (const auto& [request, count] : frequent) {
    if (covered >= wanted) break;
    covered += count;
    typical.push_back({request, static_cast<double>(count)});
  }
  for (TypicalPod& pod : typical) pod.share /= covered;
  return typical;
}

bool Fits(const FreeGpus& node, const GpuRequest& pod) {
  if (node.milli_cpu < pod.milli_cpu) return false;
  if (pod.devices == 0) return true;
  if ((pod.models >> node.model & 1) == 0) return false;
  return std::count_if(node.device_milli.begin(), node.device_milli.end(),
                       [&](int milli) { return milli >= pod.device_milli; }) >= pod.devices;
}

double Fragmentation(const FreeGpus& node, std::span<const TypicalPod> typical) {
  const int free = FreeMilli(node);
  if (free == 0) return 0;
  double unusable = 0;
  for (const TypicalPod& pod : typical) unusable += pod.share * Unusable(node, free, pod.request);
  return unusable;
}

std::vector<std::vector<int>> DeviceChoices(const FreeGpus& node, const GpuRequest& pod) {
  if (!Fits(node, pod)) return {};
  if (pod.devices == 0) return {{}};
  std::vector<int> with_room;
  for (int device = 0; device < static_cast<int>(node.device_milli.size()); ++device) {
    if (node.device_milli[static_cast<std::size_t>(device)] >= pod.device_milli) with_room.push_back(device);
  }
  if (pod.device_milli == kWholeDevice) {
    with_room.resize(static_cast<std::size_t>(pod.devices));
    return {with_room};
  }
  std::vector<std::vector<int>> choices;
  std::vector<int> amounts;
  for (const int device : with_room) {
    const int milli = node.device_milli[static_cast<std::size_t>(device)];
    if (std::find(amounts.begin(), amounts.end(), milli) != amounts.end()) continue;
    amounts.push_back(milli);
    choices.push_back({device});
  }
  return choices;
}

FreeGpus After(FreeGpus node, const GpuRequest& pod, std::span<const int> devices) {
  node.milli_cpu -= pod.milli_cpu;
  for (const int device : devices) node.device_milli[static_cast<std::size_t>(device)] -= pod.device_milli;
  return node;
}

std::optional<GpuPlacement> PlacePod(const FreeGpus& node, const GpuRequest& pod, std::span<const TypicalPod> typical) {
  const double before = Fragmentation(node, typical);
  std::optional<GpuPlacement> best;
  for (std::vector<int>& devices : DeviceChoices(node, pod)) {
    const FreeGpus after = After(node, pod, devices);
    const double score = before - Fragmentation(after, typical) - Penalty(after);
    if (!best || score > best->score) best = GpuPlacement{std::move(devices), score};
  }
  return best;
}

}  // namespace grus
