// SPDX-License-Identifier: Apache-2.0
// What the jobs and pods of queues use of each pool, summed up the tree, and what is left for whom.
//
// GPUs count until the pods that have them are gone. What belongs to no queue is put into the default queue, so that
// use and idle GPUs add up to the pool. All amounts are thousandths of a GPU.
//
// A value; the tree must outlive it. Add() and Available() are O(levels).
#pragma once

#include <cstdint>
#include <vector>

#include "controllers/queues/queue_tree.h"

namespace grus {

struct UsedGpus {
  std::int64_t used = 0;
  std::int64_t fixed = 0;     // Of `used`: by jobs that are not preemptible, without their surplus.
  std::int64_t yielding = 0;  // Of `used`: by pods that were told to end, or are ending.
  std::int64_t claimed = 0;   // Of `used`: nobody has them yet. Of the idle ones, and of those that yield.
  friend bool operator==(const UsedGpus&, const UsedGpus&) = default;
};

class QueueUse {
 public:
  explicit QueueUse(const QueueTree& tree);

  const QueueTree& tree() const { return *tree_; }

  // The queue uses so much more, or less where negative.
  void Add(QueueIndex queue, PoolIndex pool, const UsedGpus& more);

  // With all queues below it.
  const UsedGpus& Of(QueueIndex queue, PoolIndex pool) const { return cells_[Cell(queue, pool)].sum; }
  std::int64_t used(QueueIndex queue, PoolIndex pool) const { return Of(queue, pool).used; }
  std::int64_t borrowed(QueueIndex queue, PoolIndex pool) const;  // What it uses above its guarantee.

  // Without what is claimed, beyond what yields. Negative if nodes were lost under what runs.
  std::int64_t Idle(PoolIndex pool) const;
  // Idle GPUs that this queue may use: without what others do not lend.
  std::int64_t Available(QueueIndex queue, PoolIndex pool) const;
  // Of the idle GPUs, those that stay for this queue and the queues below it because they are not lent.
  std::int64_t withheld(QueueIndex queue, PoolIndex pool) const { return cells_[Cell(queue, pool)].withheld; }

  // By the queues right below it, together.
  std::int64_t WithheldBelow(QueueIndex queue, PoolIndex pool) const {
    return cells_[Cell(queue, pool)].withheld_below;
  }

  // How it will be once all that yields is gone.
  QueueUse AfterYields() const;

 private:
  struct PoolCell {
    UsedGpus sum;
    std::int64_t withheld = 0;
    std::int64_t withheld_below = 0;  // By the queues right below it.
  };
  std::size_t Cell(QueueIndex queue, PoolIndex pool) const {
    return static_cast<std::size_t>(queue) * static_cast<std::size_t>(tree_->pool_count()) +
           static_cast<std::size_t>(pool);
  }
  void UpdateWithheld(QueueIndex queue, PoolIndex pool);

  const QueueTree* tree_;
  std::vector<PoolCell> cells_;
};

// Limits below what is used now, as faults of their queues.
std::vector<QueueFault> LimitsBelowUse(const QueueUse& use);

// A queue that lends some of its idle guarantee.
struct Lender {
  QueueIndex queue = kNoQueue;  // The parent: what it guarantees to none of its children; the root: to nobody at all.
  std::int64_t idle = 0;        // Of its guarantee: what it does not use itself.
  std::int64_t lent = 0;        // Of `idle`: what others use.
};

// Who lends to the children of `parent`, and how much of it is used: first what nobody is guaranteed, then the largest
// idle guarantees, then by name. That is the order in which loans are attributed.
std::vector<Lender> LendersBelow(const QueueUse& use, QueueIndex parent, PoolIndex pool);

}  // namespace grus
