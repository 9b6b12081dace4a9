// SPDX-License-Identifier: Apache-2.0
// What a request may take from which queues: the arithmetic of reclaim.h, without jobs.
//
// Two queues compare right below their lowest common ancestor. That ancestor's level says which one it is: 0 is the
// queue of the request itself, 1 its parent, and so on up to the root.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "controllers/queues/queue_use.h"

namespace grus {

class ReclaimRights {
 public:
  // All must outlive it. `use`: once all that yields is gone; it may change.
  ReclaimRights(const QueueUse& use, PoolIndex pool, std::span<const std::int64_t> shares);

  void Begin(QueueIndex queue, std::int64_t milli);  // A request.

  int top_level() const { return static_cast<int>(path_.size()); }  // Of the root.
  int LevelOf(QueueIndex queue) const;                              // Of the ancestor that it shares with the request.

  // What jobs that yield below that ancestor still have to free: GPUs, and room below the limits of this ancestor and
  // of those above it.
  std::int64_t LackingAt(int level) const { return std::max<std::int64_t>(0, Shortfall(level)); }
  std::int64_t SpareAt(int level) const {
    return std::max<std::int64_t>(0, -Shortfall(level));
  }  // They freed too much.
  bool IsMet() const { return LackingAt(0) == 0; }

  // Whether the request may take from queues of this level: because a guarantee holds it, or its fair share.
  bool IsWithinGuarantee(int level) const;
  bool IsWithinShare(int level) const;
  bool HasLessThanHalf() const;  // Of its share, before the request.

  // What the queue, and each queue between it and the common ancestor, has above its guarantee, or above its share and
  // its guarantee. 0 or less: nothing. Of a guarantee it has what it uses, and what queues below it withhold: otherwise
  // a queue could borrow from its parent what a sibling withholds, and nobody could ask for it.
  std::int64_t AboveGuarantee(QueueIndex queue, int level) const { return Above(queue, level, true); }
  std::int64_t AboveShare(QueueIndex queue, int level) const { return Above(queue, level, false); }

 private:
  std::int64_t Shortfall(int level) const;
  std::int64_t Above(QueueIndex queue, int level, bool is_guarantee) const;

  const QueueUse& use_;
  const QueueTree& tree_;
  const PoolIndex pool_;
  const std::span<const std::int64_t> shares_;
  std::int64_t milli_ = 0;
  std::vector<QueueIndex> path_;  // From the queue of the request up, without the root.
  std::vector<int> place_;        // By queue: its place in path_; -1: it is not there.
};

}  // namespace grus
