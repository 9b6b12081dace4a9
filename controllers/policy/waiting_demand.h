// SPDX-License-Identifier: Apache-2.0
// What jobs and gangs ask of the queues.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "controllers/queues/queue_admission.h"

namespace grus {

// Of a job or gang that waits to start, or that could grow.
struct WaitingDemand {
  std::string owner;
  QueueIndex queue = kNoQueue;  // kNoQueue: none may start it.
  PoolIndex pool = kNoPool;     // kNoPool: it needs no GPUs.
  std::int64_t milli = 0;       // That it needs.
  std::int64_t since = 0;       // Unix seconds.
  std::string reason = {};      // Why it waits, as one word.
};

// What is kept for owners, as if they used it.
using Charges = std::map<std::string, PoolNeed>;
inline std::optional<PoolNeed> ChargeOf(const Charges& charges, const std::string& owner) {
  const auto it = charges.find(owner);
  return it == charges.end() ? std::nullopt : std::optional(it->second);
}

struct SizedJob {
  std::string owner;
  QueueIndex queue = kNoQueue;
  PoolIndex pool = kNoPool;  // Where it runs, or would.
  int gpus_per_worker = 1;
};

}  // namespace grus
