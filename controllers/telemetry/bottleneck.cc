// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/bottleneck.h"

#include <algorithm>
#include <cmath>

namespace grus {
namespace {

constexpr std::size_t kFewest = 20;     // Samples of the GPUs.
constexpr double kUnused = 0.05;        // GPUs that do less are held back by nothing that these series show.
constexpr double kBusy = 0.9;           // GPUs that do more have enough to do.
constexpr double kNotBusy = 0.85;       // GPUs that do less wait.
constexpr double kBandwidthFull = 0.7;  // Real kernels do not reach more than about 0.9.
constexpr double kBandwidthFree = 0.6;  // Well below full: it is the arithmetic.
constexpr double kCpuFull = 0.88;       // Throttling begins before the mean is at the limit.
constexpr double kNetworkFull = 0.8;    // Of the limit; headers and gaps take the rest.
constexpr double kNetworkFree = 0.5;    //
constexpr double kWaitingLevel = 0.4;   // Of what the GPUs do when they are busy.
constexpr double kMuchWaiting = 0.15;   // Of the time; less is what evaluations and checkpoints take.
constexpr double kMostWaiting = 0.95;   //
constexpr double kTimesAsMuch = 2;      // Traffic while the GPUs wait, over that while they work.
constexpr double kSteadyTraffic = 0.6;  // Of the peak, on average while the GPUs wait: it is what they wait for.
constexpr double kMuchTraffic = 20e6;   // Bytes a second for each GPU; less holds none back.

struct Split {  // Means of one series.
  std::optional<double> all, waiting, working;
};

struct Activity {
  std::vector<double> times;  // Of the samples of the GPUs since the job has loaded.
  std::vector<bool> waits;
  double waiting = 0;  // Share of them.
};

// Of the same moment; NaN if there is none.
float At(const Series& series, double time) {
  const double place = (time - static_cast<double>(series.start)) / series.step;
  if (!(place > -0.5) || !(place < static_cast<double>(series.values.size()) - 0.5)) return NAN;
  return series.values[static_cast<std::size_t>(std::lround(std::max(0.0, place)))];
}

Activity ActivityOf(const Series& gpu, double from) {
  Activity activity;
  const double level = kWaitingLevel * Quantile(gpu, 0.9).value_or(0);
  double waits = 0;
  for (std::size_t at = 0; at < gpu.values.size(); ++at) {
    const double time = static_cast<double>(gpu.start) + static_cast<double>(at) * gpu.step;
    if (time < from || !std::isfinite(gpu.values[at])) continue;
    activity.times.push_back(time);
    activity.waits.push_back(gpu.values[at] < level);
    if (activity.waits.back()) ++waits;
  }
  if (!activity.times.empty()) activity.waiting = waits / static_cast<double>(activity.times.size());
  return activity;
}

Split SplitOf(const Series& series, const Activity& activity) {
  double sums[2] = {0, 0}, counts[2] = {0, 0};
  for (std::size_t at = 0; at < activity.times.size(); ++at) {
    const float value = At(series, activity.times[at]);
    if (!std::isfinite(value)) continue;
    const std::size_t part = activity.waits[at] ? 1 : 0;
    sums[part] += value;
    ++counts[part];
  }
  Split split;
  const double count = counts[0] + counts[1];
  if (count < static_cast<double>(activity.times.size()) / 2) return split;  // Too little to compare.
  split.all = (sums[0] + sums[1]) / count;
  if (counts[0] > 0) split.working = sums[0] / counts[0];
  if (counts[1] > 0) split.waiting = sums[1] / counts[1];
  return split;
}

// The series is high exactly while the GPUs wait.
bool IsWaitedFor(const Series& series, const Split& split, const JobSeries& job) {
  if (!split.waiting || !split.working) return false;
  const double peak = Quantile(series, 0.95).value_or(0);
  return peak >= kMuchTraffic * std::max(1, job.gpus) / std::max(1, job.nodes) &&
         *split.waiting >= kTimesAsMuch * *split.working && *split.waiting >= kSteadyTraffic * peak;
}

struct Evidence {
  bool input_by_cpu = false, input_by_disk = false, input_by_network = false, communication = false;
  int count() const { return (input_by_cpu || input_by_disk || input_by_network ? 1 : 0) + (communication ? 1 : 0); }
};

Evidence EvidenceOf(const JobSeries& job, const BottleneckFinding& means, const Activity& activity) {
  Evidence evidence;
  const bool waits = activity.waiting >= kMuchWaiting && activity.waiting <= kMostWaiting;
  const bool is_spread = job.gpus > 1 && job.nodes > 1;
  const Split cpu = SplitOf(job.cpu, activity), disk = SplitOf(job.disk, activity);
  const Split network = SplitOf(job.network, activity);
  const bool is_network_full = means.network_share && *means.network_share >= kNetworkFull;
  const bool is_network_waited_for = waits && IsWaitedFor(job.network, network, job);
  if (*means.gpu_utilization < kNotBusy) {
    evidence.input_by_cpu = (cpu.all && *cpu.all >= kCpuFull) || (waits && cpu.waiting && *cpu.waiting >= kCpuFull);
    evidence.input_by_disk = waits && IsWaitedFor(job.disk, disk, job);
    evidence.input_by_network = !is_spread && (is_network_full || is_network_waited_for);
  }
  evidence.communication =
      is_spread && (is_network_full || (is_network_waited_for && *means.gpu_utilization < kNotBusy));
  return evidence;
}

// Nothing but the GPU itself: it is busy, and what is known of the rest is free.
Bottleneck OfBusyGpu(const JobSeries& job, const BottleneckFinding& means) {
  const bool is_spread = job.gpus > 1 && job.nodes > 1;
  const bool may_communicate = is_spread && !(means.network_share && *means.network_share < kNetworkFree);
  if (*means.gpu_utilization < kBusy || !means.memory_bandwidth || may_communicate) return Bottleneck::kUnknown;
  if (*means.memory_bandwidth >= kBandwidthFull) return Bottleneck::kMemoryBandwidth;
  return *means.memory_bandwidth < kBandwidthFree ? Bottleneck::kCompute : Bottleneck::kUnknown;
}

}  // namespace

BottleneckFinding FindBottleneck(const JobSeries& job, double from) {
  BottleneckFinding finding;
  const Activity activity = ActivityOf(job.gpu_utilization, from);
  if (activity.times.size() < kFewest) return finding;
  finding.waiting = activity.waiting;
  finding.gpu_utilization = SplitOf(job.gpu_utilization, activity).all;
  finding.memory_bandwidth = SplitOf(job.memory_bandwidth, activity).all;
  const Split cpu = SplitOf(job.cpu, activity);
  finding.cpu = cpu.all;
  finding.cpu_while_waiting = cpu.waiting;
  if (job.network_limit > 0) {
    if (const auto network = SplitOf(job.network, activity).all) finding.network_share = *network / job.network_limit;
  }
  if (!finding.gpu_utilization) return finding;
  if (*finding.gpu_utilization < kUnused && Quantile(job.gpu_utilization, 0.98).value_or(0) < kUnused) {
    finding.bottleneck = Bottleneck::kNone;
    return finding;
  }
  const Evidence evidence = EvidenceOf(job, finding, activity);
  if (evidence.count() > 1) return finding;
  if (evidence.communication) {
    finding.bottleneck = Bottleneck::kCommunication;
    finding.witness = Witness::kNetwork;
  } else if (evidence.count() == 1) {
    finding.bottleneck = Bottleneck::kInput;
    finding.witness = evidence.input_by_cpu    ? Witness::kCpu
                      : evidence.input_by_disk ? Witness::kDisk
                                               : Witness::kNetwork;
  } else {
    finding.bottleneck = OfBusyGpu(job, finding);
  }
  const bool is_full = finding.witness == Witness::kCpu ? finding.cpu.value_or(0) >= kCpuFull
                                                        : finding.network_share.value_or(0) >= kNetworkFull;
  finding.is_by_waiting = finding.witness == Witness::kDisk || !is_full;
  return finding;
}

}  // namespace grus
