// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/run_usage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "controllers/policy/decimal.h"

namespace grus {
namespace {

using api::ResourceUsage;
using api::WorkloadRun;

using Number = MaybeNumber PodUsage::*;

// Over the pods that have the number; none: no pod has it.
struct Over {
  double by_seconds = 0, by_gpus = 0;  // Sums, of the number times seconds, or GPU seconds.
  double seconds = 0, gpu_seconds = 0;
  double all_seconds = 0;  // Of all pods.
  std::optional<double> max;

  std::optional<double> mean() const { return gpu_seconds > 0 ? std::optional(by_gpus / gpu_seconds) : std::nullopt; }
  // All pods together, over an interval.
  std::optional<double> total(double interval) const {
    return seconds > 0 ? std::optional(by_seconds * all_seconds / seconds / interval) : std::nullopt;
  }
};

Over Of(std::span<const PodInterval> pods, Number number) {
  Over over;
  for (const PodInterval& pod : pods) {
    over.all_seconds += pod.seconds;
    const MaybeNumber value = pod.used.*number;
    if (!value) continue;
    over.by_seconds += *value * pod.seconds;
    over.by_gpus += *value * pod.seconds * pod.gpus;
    over.seconds += pod.seconds;
    over.gpu_seconds += pod.seconds * pod.gpus;
    over.max = std::max(over.max.value_or(0), *value);
  }
  return over;
}

void Raise(std::optional<double>& highest, std::optional<double> value) {
  if (value) highest = std::max(highest.value_or(0), *value);
}

std::optional<std::int32_t> Percent(std::optional<double> share) {
  if (!share) return std::nullopt;
  return static_cast<std::int32_t>(std::lround(std::min(*share, 1.0) * 100));
}

std::optional<std::int64_t> Whole(std::optional<double> number) {
  return number ? std::optional<std::int64_t>(std::llround(*number)) : std::nullopt;
}

template <typename Integer>
std::optional<double> Back(std::optional<Integer> number, double scale = 1) {
  return number ? std::optional(static_cast<double>(*number) * scale) : std::nullopt;
}

// `least`: what rounding alone may move it by.
template <typename Integer>
bool Rose(std::optional<Integer> before, std::optional<Integer> after, double least) {
  if (!after) return false;
  if (!before) return true;
  const auto from = static_cast<double>(*before), to = static_cast<double>(*after);
  return to - from > std::max(least, from / 10);
}

template <typename Integer>
bool Moved(std::optional<Integer> before, std::optional<Integer> after, double least) {
  return Rose(before, after, least) || (after && Rose(after, before, least));
}

}  // namespace

void RunUsage::Mean::Add(std::optional<double> value, double its_weight) {
  if (!value) return;
  sum += *value * its_weight;
  weight += its_weight;
}

RunUsage::RunUsage(const ResourceUsage& so_far, double seconds, double gpu_seconds) {
  gpu_utilization_.Add(Back(so_far.gpu_utilization_percent, 0.01), gpu_seconds);
  memory_bandwidth_.Add(Back(so_far.memory_bandwidth_percent, 0.01), gpu_seconds);
  cpu_cores_.Add(ParseDecimal(so_far.cpu_cores), seconds);
  network_.Add(Back(so_far.network_bytes_per_second), seconds);
  disk_.Add(Back(so_far.disk_bytes_per_second), seconds);
  max_gpu_utilization_ = Back(so_far.max_gpu_utilization_percent, 0.01);
  max_gpu_memory_ = Back(so_far.max_gpu_memory_bytes);
  max_memory_ = Back(so_far.max_memory_bytes);
}

void RunUsage::Add(std::span<const PodInterval> pods, double seconds) {
  for (const auto& [mean, number] : {std::pair(&RunUsage::gpu_utilization_, &PodUsage::gpu_utilization),
                                     std::pair(&RunUsage::memory_bandwidth_, &PodUsage::memory_bandwidth)}) {
    const Over over = Of(pods, number);
    (this->*mean).Add(over.mean(), over.gpu_seconds);
  }
  cpu_cores_.Add(Of(pods, &PodUsage::cpu_cores).total(seconds), seconds);
  network_.Add(Of(pods, &PodUsage::network).total(seconds), seconds);
  disk_.Add(Of(pods, &PodUsage::disk).total(seconds), seconds);
  Raise(max_gpu_utilization_, Of(pods, &PodUsage::max_gpu_utilization).max);
  Raise(max_gpu_memory_, Of(pods, &PodUsage::max_gpu_memory).max);
  Raise(max_memory_, Of(pods, &PodUsage::max_memory).max);
}

void RunUsage::Merge(const RunUsage& other) {
  for (Mean RunUsage::*mean : {&RunUsage::gpu_utilization_, &RunUsage::memory_bandwidth_, &RunUsage::cpu_cores_,
                               &RunUsage::network_, &RunUsage::disk_}) {
    (this->*mean).sum += (other.*mean).sum;
    (this->*mean).weight += (other.*mean).weight;
  }
  Raise(max_gpu_utilization_, other.max_gpu_utilization_);
  Raise(max_gpu_memory_, other.max_gpu_memory_);
  Raise(max_memory_, other.max_memory_);
}

ResourceUsage RunUsage::Summary() const {
  const std::optional<double> cores = cpu_cores_.value();
  return {.gpu_utilization_percent = Percent(gpu_utilization_.value()),
          .max_gpu_utilization_percent = Percent(max_gpu_utilization_),
          .memory_bandwidth_percent = Percent(memory_bandwidth_.value()),
          .max_gpu_memory_bytes = Whole(max_gpu_memory_),
          .cpu_cores = cores ? ToDecimal(*cores, 3) : std::string(),
          .max_memory_bytes = Whole(max_memory_),
          .network_bytes_per_second = Whole(network_.value()),
          .disk_bytes_per_second = Whole(disk_.value())};
}

bool IsNews(const ResourceUsage& before, const ResourceUsage& after) {
  constexpr double kPoints = 2, kMiB = 1 << 20;
  const auto milli = [](const std::string& cores) {
    const std::optional<double> value = ParseDecimal(cores);
    return value ? Whole(*value * 1000) : std::nullopt;
  };
  return Moved(before.gpu_utilization_percent, after.gpu_utilization_percent, kPoints) ||
         Rose(before.max_gpu_utilization_percent, after.max_gpu_utilization_percent, kPoints) ||
         Moved(before.memory_bandwidth_percent, after.memory_bandwidth_percent, kPoints) ||
         Rose(before.max_gpu_memory_bytes, after.max_gpu_memory_bytes, kMiB) ||
         Moved(milli(before.cpu_cores), milli(after.cpu_cores), 100) ||
         Rose(before.max_memory_bytes, after.max_memory_bytes, kMiB) ||
         Moved(before.network_bytes_per_second, after.network_bytes_per_second, kMiB) ||
         Moved(before.disk_bytes_per_second, after.disk_bytes_per_second, kMiB);
}

std::vector<WorkloadRun> MergeRun(std::vector<WorkloadRun> runs, const WorkloadRun& run, std::size_t limit) {
  const auto same = std::ranges::find(runs, run.uid, &WorkloadRun::uid);
  if (same != runs.end()) *same = run;
  else runs.push_back(run);
  while (runs.size() > limit) {
    runs.erase(std::ranges::min_element(runs, {}, [](const WorkloadRun& one) {
      return std::tuple(!one.end.has_value(), one.end.value_or(one.start), one.start);
    }));
  }
  return runs;
}

std::vector<api::GpuTypeFeatures> FeaturesOf(std::span<const WorkloadRun> runs) {
  struct Sum {
    RunUsage usage;
    std::int32_t runs = 0;
  };
  std::map<std::string, Sum> by_type;
  for (const WorkloadRun& run : runs) {
    if (run.usage == ResourceUsage()) continue;
    Sum& sum = by_type[run.gpu_type];
    ++sum.runs;
    const auto weight = static_cast<double>(std::max<std::int64_t>(run.gpu_seconds, 1));
    sum.usage.Merge(RunUsage(run.usage, weight, weight));
  }
  std::vector<api::GpuTypeFeatures> features;
  for (const auto& [type, sum] : by_type) {
    if (features.size() < static_cast<std::size_t>(api::kMaxProfileFeatures)) {
      features.push_back({.gpu_type = type, .runs = sum.runs, .usage = sum.usage.Summary()});
    }
  }
  return features;
}

}  // namespace grus
