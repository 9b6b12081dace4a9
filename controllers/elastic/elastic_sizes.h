// SPDX-License-Identifier: Apache-2.0
// How many workers a job may have and wants, defaults filled in.
#pragma once

#include <string>

#include "crds/types/elastic_horovod_job.h"

namespace grus {

// The accelerators of each worker: what the template's container "worker" asks for, else gpusPerWorker.
struct WorkerDevices {
  std::string resource;  // "nvidia.com/gpu", "amd.com/gpu", "google.com/tpu"
  int count = 0;         // 0: it trains on processors.
};

WorkerDevices DevicesOf(const api::WorkersSpec& workers);

struct Sizes {
  int min = 1;     // Training goes on with this many or more.
  int max = 1;
  int wanted = 1;  // The user's target, or max while no allocator chooses.
  int slots = 1;   // Horovod processes for each worker.
  // Workers without which the job does not start: a launcher without any host has nothing to do.
  int NeededToRun() const { return min > 0 ? min : 1; }
};

Sizes SizesOf(const api::WorkersSpec& workers);

}  // namespace grus
