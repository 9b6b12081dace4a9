// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_sizes.h"

#include <algorithm>

#include "controllers/policy/worker_devices.h"

namespace grus {

Sizes SizesOf(const api::ElasticHorovodJobSpec& spec) {
  const api::WorkersSpec& workers = spec.workers;
  Sizes sizes;
  const int target = workers.target_replicas.value_or(-1);
  // One worker at least, unless the user asked for none at all.
  sizes.min = workers.min_replicas.value_or(target == 0 || workers.max_replicas == 0 ? 0 : 1);
  // The schema of earlier versions let any minimum pass.
  sizes.min = std::min(sizes.min, api::kMostReplicas);
  sizes.max = workers.max_replicas.value_or(std::max(sizes.min, target));
  sizes.max = std::max(sizes.max, sizes.min);
  sizes.wanted = target < 0 ? sizes.max : std::clamp(target, sizes.min, sizes.max);
  sizes.at_start = std::min(spec.run_policy.scheduling_policy.min_available.value_or(sizes.min), sizes.wanted);
  sizes.slots = std::max(1, DevicesOf(workers).count);
  return sizes;
}

}  // namespace grus
