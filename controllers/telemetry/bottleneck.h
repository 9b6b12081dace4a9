// SPDX-License-Identifier: Apache-2.0
// What holds a job back, from what its GPUs, CPUs, network and disks do, together and while the GPUs wait.
//
// A GPU counts as busy also while it waits for others in an all-reduce, so that a network at its limit decides before
// the GPUs do. Network traffic of a job on one node is its input. What speaks for two answers gets none. Pure
// functions.
#pragma once

#include <optional>

#include "controllers/telemetry/job_series.h"

namespace grus {

enum class Bottleneck { kUnknown, kNone, kInput, kCompute, kMemoryBandwidth, kCommunication };

enum class Witness { kNone, kCpu, kDisk, kNetwork };  // What shows that it is so, beside the GPUs.

struct BottleneckFinding {
  Bottleneck bottleneck = Bottleneck::kUnknown;
  Witness witness = Witness::kNone;
  std::optional<double> gpu_utilization, memory_bandwidth, cpu;  // Means since the job has loaded.
  std::optional<double> network_share;                           // Of its limit, in the mean.
  double waiting = 0;                                            // Share of the time in which the GPUs wait.
  std::optional<double> cpu_while_waiting;                       // Mean.
  bool is_by_waiting = false;  // The witness is busy while the GPUs wait, and not all the time.
};

// `from`: Unix time when the job had loaded.
BottleneckFinding FindBottleneck(const JobSeries& job, double from);

}  // namespace grus
