// SPDX-License-Identifier: Apache-2.0
// What queues use, for Prometheus: grus_queue_gpus and grus_queue_jobs. Queues that are deleted are not shown any more.
// Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "clientlib/runtime/metrics.h"
#include "controllers/queues/queue_setup.h"

namespace grus {

class QueueMetrics {
 public:
  explicit QueueMetrics(kube::Registry& registry);
  void Put(std::vector<QueueReport> queues);

 private:
  struct Shown;
  std::shared_ptr<Shown> shown_;  // Shared with the registry, which may outlive this.
};

}  // namespace grus
