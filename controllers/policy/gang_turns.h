// SPDX-License-Identifier: Apache-2.0
// In which order waiting gangs are tried: the queues take turns (ServiceOrder), and each offers its gangs in their own
// order. Part of gang_planner.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "controllers/policy/cluster_queues.h"
#include "controllers/queues/service_order.h"

namespace grus {

class GangTurns {
 public:
  // A gang as the turns see it. Those of no queue are never offered.
  struct Entry {
    QueueIndex queue = kNoQueue;
    std::vector<PoolNeed> needs;  // To start.
    bool may_block = true;        // A queue that starts its jobs strictly in order waits for it.
  };

  // Without queues, `entries` are offered as they come. Otherwise those of each queue come in its own order. Both must
  // outlive this.
  GangTurns(ClusterQueues& queues, std::span<const Entry> entries);

  // The entry to try now; nullopt: all have been tried.
  std::optional<std::size_t> Next();
  // What came of it. A queue that starts its jobs strictly in order offers no other once one had to wait.
  void Tried(std::size_t entry, bool is_placed);

 private:
  struct Line {
    std::vector<std::size_t> entries;
    std::size_t at = 0;
  };

  ClusterQueues& queues_;
  const std::span<const Entry> entries_;
  std::optional<ServiceOrder> order_;  // None: no queues.
  std::map<QueueIndex, Line> lines_;
  std::size_t at_ = 0;  // Without queues.
};

}  // namespace grus
