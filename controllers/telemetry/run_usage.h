// SPDX-License-Identifier: Apache-2.0
// What a run used, as it adds up; what the runs of a workload say together. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "controllers/telemetry/pod_usage.h"
#include "crds/types/workload_usage.h"

namespace grus {

// A pod in an interval.
struct PodInterval {
  PodUsage used = {};
  double seconds = 0;  // That it ran.
  std::int32_t gpus = 0;
};

// A value; not thread-safe.
class RunUsage {
 public:
  RunUsage() = default;
  // Goes on where `so_far` ended, as if its means were of `seconds` and `gpu_seconds`.
  RunUsage(const api::ResourceUsage& so_far, double seconds, double gpu_seconds);

  // What its pods used during `seconds`. Numbers that no source gave leave their means as they are; pods without a
  // number that others have are taken for as busy as those.
  void Add(std::span<const PodInterval> pods, double seconds);
  void Merge(const RunUsage& other);

  api::ResourceUsage Summary() const;

 private:
  struct Mean {
    double sum = 0, weight = 0;
    void Add(std::optional<double> value, double its_weight);
    std::optional<double> value() const { return weight > 0 ? std::optional(sum / weight) : std::nullopt; }
  };
  Mean gpu_utilization_, memory_bandwidth_, cpu_cores_, network_, disk_;
  std::optional<double> max_gpu_utilization_, max_gpu_memory_, max_memory_;
};

// Whether a reader would notice: a maximum rose by a tenth, or a mean moved by a tenth, and not only by its rounding.
bool IsNews(const api::ResourceUsage& before, const api::ResourceUsage& after);

// `runs` with `run` in the place of the one of its UID. Of more than `limit`, those go that ended longest ago, then
// those that began longest ago.
std::vector<api::WorkloadRun> MergeRun(std::vector<api::WorkloadRun> runs, const api::WorkloadRun& run,
                                       std::size_t limit = api::kMaxProfileRuns);

// By GPU type: means weighted by GPU seconds, and maxima.
std::vector<api::GpuTypeFeatures> FeaturesOf(std::span<const api::WorkloadRun> runs);

}  // namespace grus
