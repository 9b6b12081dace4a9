// SPDX-License-Identifier: Apache-2.0
// Which queue's first job is tried next.
//
// From the top of the tree, at each level: first a queue whose first job fits into its guarantee, or which has such a
// queue below it; then the queue that has borrowed least for its weight, by its dominant share: the largest, over all
// pools, of what it uses above its guarantee, as a part of the pool (Ghodsi et al., "Dominant Resource Fairness",
// NSDI 2011; Kueue compares borrowed use in the same way). Then the least use by the same measure; then the name.
//
// The caller tries the first job of Next(): if it starts, Update(); if it is refused, SetFirst() to the next job of a
// BestEffortFifo queue, or Remove() for a StrictFifo one.
//
// A value; the use must outlive it. SetFirst() and Update() are O(levels * (pools + log queues)), Next() is O(levels).
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "clientlib/model/quantity.h"
#include "controllers/queues/queue_admission.h"
#include "controllers/queues/queue_use.h"

namespace grus {

class ServiceOrder {
 public:
  explicit ServiceOrder(const QueueUse& use);

  // What the first job of the queue needs to start; replaces the job before it. REQUIRES: no queues are below it.
  void SetFirst(QueueIndex queue, std::vector<PoolNeed> needs);
  void Remove(QueueIndex queue);  // No job of it is to be tried.
  void Update(QueueIndex queue);  // Call it after each change of what this queue uses.
  QueueIndex Next() const;        // kNoQueue: nothing is to be tried.

 private:
  // Parts of a pool for a weight, compared exactly.
  struct Fraction {
    std::int64_t over = 0;
    kube::Wide under = 1;
    friend std::strong_ordering operator<=>(const Fraction& a, const Fraction& b) {
      return a.over * b.under <=> b.over * a.under;
    }
    friend bool operator==(const Fraction& a, const Fraction& b) { return a <=> b == 0; }
  };
  struct Rank {
    bool is_above_guarantee = false;
    Fraction borrowed, used;
    QueueIndex queue = kNoQueue;  // Siblings are in the order of their names.
    friend std::strong_ordering operator<=>(const Rank&, const Rank&) = default;
  };
  struct Turn {
    std::vector<PoolNeed> needs;  // Of a leaf.
    std::set<Rank> below;         // Of the queues right below it: those with something to try.
    bool is_ranked = false;       // It is in the set above it, as `rank`.
    Rank rank;
  };

  Turn& TurnOf(QueueIndex queue) { return turns_[static_cast<std::size_t>(queue)]; }
  const Turn& TurnOf(QueueIndex queue) const { return turns_[static_cast<std::size_t>(queue)]; }
  QueueIndex FirstLeaf(QueueIndex queue) const;  // kNoQueue: nothing is to be tried.
  Rank RankOf(QueueIndex queue) const;
  bool FitsIntoGuarantee(QueueIndex queue, const std::vector<PoolNeed>& needs) const;

  const QueueUse* use_;
  std::vector<Turn> turns_;  // By queue.
};

}  // namespace grus
