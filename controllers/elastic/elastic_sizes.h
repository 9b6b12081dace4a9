// SPDX-License-Identifier: Apache-2.0
// How many workers a job may have and wants, defaults filled in.
#pragma once

#include "crds/types/elastic_horovod_job.h"

namespace grus {

struct Sizes {
  int min = 1;  // Training goes on with this many or more.
  int max = 1;
  int wanted = 1;    // The user's target, or max while no allocator chooses.
  int at_start = 1;  // It starts with this many or more.
  int slots = 1;     // Horovod processes for each worker.
  // At least one, even with a minimum of zero: a launcher without any host has nothing to do.
  int NeededToRun() const { return min > 0 ? min : 1; }
  int NeededToStart() const { return at_start > NeededToRun() ? at_start : NeededToRun(); }
};

Sizes SizesOf(const api::ElasticHorovodJobSpec& spec);

}  // namespace grus
