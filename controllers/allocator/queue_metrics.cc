// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_metrics.h"

#include <mutex>
#include <string>
#include <utility>

namespace grus {

struct QueueMetrics::Shown {
  std::mutex mutex;  // Guards what follows.
  std::vector<QueueReport> queues;

  kube::Registry::Samples Gpus() {
    kube::Registry::Samples samples;
    std::lock_guard lock(mutex);
    for (const QueueReport& queue : queues) {
      for (const QueuePoolReport& pool : queue.pools) {
        for (const auto& [state, milli] :
             {std::pair{"guaranteed", pool.guaranteed}, std::pair{"used", pool.used},
              std::pair{"borrowed", pool.borrowed}, std::pair{"lent", pool.lent}, std::pair{"waiting", pool.waiting}}) {
          samples.push_back({{queue.queue, pool.pool, state}, static_cast<double>(milli) / kOneGpu});
        }
      }
    }
    return samples;
  }

  kube::Registry::Samples Jobs() {
    kube::Registry::Samples samples;
    std::lock_guard lock(mutex);
    for (const QueueReport& queue : queues) {
      samples.push_back({{queue.queue, "running"}, static_cast<double>(queue.running)});
      samples.push_back({{queue.queue, "waiting"}, static_cast<double>(queue.waiting)});
    }
    return samples;
  }
};

QueueMetrics::QueueMetrics(kube::Registry& registry) : shown_(std::make_shared<Shown>()) {
  registry.AddGaugeFamily("grus_queue_gpus", "GPUs of a queue and those below it: parts count as such.",
                          {"queue", "pool", "state"}, [shown = shown_] { return shown->Gpus(); });
  registry.AddGaugeFamily("grus_queue_jobs", "Jobs and gangs of a queue and those below it.", {"queue", "state"},
                          [shown = shown_] { return shown->Jobs(); });
}

void QueueMetrics::Put(std::vector<QueueReport> queues) {
  std::lock_guard lock(shown_->mutex);
  shown_->queues = std::move(queues);
}

}  // namespace grus
