// SPDX-License-Identifier: Apache-2.0
// What is known of one job: its series, and what they are bounded by. A source that is missing leaves its series empty.
#pragma once

#include <cstdint>

#include "controllers/telemetry/series.h"

namespace grus {

struct JobSeries {
  Series gpu_utilization = {};   // 0 to 1, the mean of the job's GPUs.
  Series gpu_memory = {};        // Bytes, of the GPU that uses most.
  Series memory_bandwidth = {};  // 0 to 1, the mean of the job's GPUs.
  Series cpu = {};               // 0 to 1 of what the job may use.
  Series network = {};           // Bytes received a second, of the pod that receives most.
  Series disk = {};              // Bytes read a second, of the pod that reads most.
  double gpu_memory_limit = 0;   // Bytes of one GPU. 0: unknown.
  double network_limit = 0;      // Bytes a second of one pod. 0: unknown.
  std::int32_t gpus = 1;
  std::int32_t nodes = 1;  // That its GPUs are on. With one, gradients do not pass through the network.
  bool is_batch = false;   // It runs to an end of its own, as a Job and an ElasticHorovodJob do.
};

}  // namespace grus
