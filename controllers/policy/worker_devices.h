// SPDX-License-Identifier: Apache-2.0
// The accelerators of the workers of an ElasticHorovodJob: pure.
#pragma once

#include <cstdint>
#include <string>

#include "clientlib/model/json.h"
#include "controllers/policy/resources.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

// Of each worker.
struct WorkerDevices {
  std::string resource;    // "nvidia.com/gpu", "amd.com/gpu", "google.com/tpu"
  int count = 0;           // 0: it trains on CPUs.
  bool is_stated = false;  // By the template, not by gpusPerWorker.
  std::int64_t milli = 0;  // Thousandths of devices: less than `count` says where a worker has part of a GPU.
  Resources part = {};     // Of a GPU, or whole shared ones in thousandths; empty: it asks for whole ones.
};

// The parts of a GPU that a container of a pod template asks for.
Resources GpuPartsOf(const kube::Json& container);
// With the memory that the template says for them (kSaidMemory).
Resources GpuPartsOf(const kube::Json& pod_template, const kube::Json& container);

// What the template's container "worker" asks for of an accelerator; if it asks for none, gpusPerWorker. On part of a
// GPU one process trains.
WorkerDevices DevicesOf(const api::WorkersSpec& workers);

}  // namespace grus
