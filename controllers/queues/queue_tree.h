// SPDX-License-Identifier: Apache-2.0
// The queues as a tree, with what counts of their quotas in each pool, whatever is wrong with some of them.
//
// Only the leaves hold jobs, as in Kueue, YuniKorn and KAI. A queue that jobs are in and that gets queues below it
// starts no more jobs of its own; those that run count in it until they end.
//
// A fault is found for each queue alone (QueueFaultKind says what follows from it), and touches only that queue and
// those below it. The guarantees of siblings never add up to more than their parent's, nor those of the queues without
// parent to more than the pool: where specs say more, or nodes are lost, they count in proportion.
//
// Jobs that no queue selects are in the queue "default". Unless a spec describes it, it has no parent, no guarantee, no
// limit and weight 1. Without any spec it is the only queue, and everybody uses what is idle.
//
// A value: the same specs and pools give the same tree, in whatever order the specs come. O(queues * (pools + log
// queues)) to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controllers/queues/queue_fault.h"
#include "controllers/queues/queue_spec.h"

namespace grus {

// Queues and pools by number, while the tree lives. A parent has a smaller number than its children, and siblings are
// in the order of their names.
using QueueIndex = int;
using PoolIndex = int;
inline constexpr QueueIndex kRootQueue = 0;  // Above all: the cluster. It is guaranteed the pools.
inline constexpr QueueIndex kNoQueue = -1;
inline constexpr PoolIndex kNoPool = -1;

struct Queue {
  std::string name;  // Empty: the root.
  QueueIndex parent = kNoQueue;
  int level = 0;                      // 0: the root; 1: the queues without parent.
  std::vector<QueueIndex> children;   // By name.
  bool is_left_out = false;           // By a fault of its own or above it.
  QueueStop stop = QueueStop::kNone;  // The strictest of its own and of those above it.
  bool selects_namespaces = false;
  QueueOrder order = QueueOrder::kBestEffortFifo;
  ReclaimPolicy reclaim = ReclaimPolicy::kAny;
  std::int64_t minimum_runtime_seconds = 0;
};

// What counts of a quota.
struct EffectiveQuota {
  int field = -1;                 // The quota in the spec; -1: the spec has none for this pool.
  std::int64_t guaranteed = 0;    // Thousandths, as are the next two.
  std::int64_t kept = 0;          // Of the guarantee: not lent even while it is idle.
  std::int64_t limit = kNoLimit;  // At least the guarantee.
  std::int64_t weight = 1;
  bool is_closed = false;  // Nothing new starts in this pool, by a fault of its own or above it.
};

class QueueTree {
 public:
  // REQUIRES: names are not empty; names of pools are unique.
  static QueueTree Build(std::span<const QueueSpec> specs, std::span<const PoolSize> pools);

  int size() const { return static_cast<int>(queues_.size()); }  // With the root.
  const Queue& At(QueueIndex queue) const { return queues_[static_cast<std::size_t>(queue)]; }
  const std::string& NameOf(QueueIndex queue) const { return At(queue).name; }
  QueueIndex ParentOf(QueueIndex queue) const { return At(queue).parent; }
  bool IsLeaf(QueueIndex queue) const { return At(queue).children.empty(); }
  QueueIndex Find(std::string_view name) const;  // kNoQueue: there is none.
  QueueIndex default_queue() const { return Find(kDefaultQueue); }
  bool IsWithin(QueueIndex queue, QueueIndex above) const;  // The same one, or below it.

  int pool_count() const { return static_cast<int>(pools_.size()); }
  const PoolSize& PoolAt(PoolIndex pool) const { return pools_[static_cast<std::size_t>(pool)]; }
  PoolIndex FindPool(std::string_view name) const;  // kNoPool: there is none.
  // Whether any queue has a quota in the pool. Where none has, nothing is guaranteed, and everybody may start anything.
  bool IsShared(PoolIndex pool) const { return is_shared_[static_cast<std::size_t>(pool)]; }

  const EffectiveQuota& QuotaOf(QueueIndex queue, PoolIndex pool) const { return quotas_[Cell(queue, pool)]; }

  // By queue, field and message.
  const std::vector<QueueFault>& faults() const { return faults_; }

 private:
  friend class QueueTreeBuilder;
  struct HashName {
    using is_transparent = void;  // NOLINT(readability-identifier-naming)
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  std::size_t Cell(QueueIndex queue, PoolIndex pool) const {
    return static_cast<std::size_t>(queue) * pools_.size() + static_cast<std::size_t>(pool);
  }

  std::vector<Queue> queues_;
  std::vector<PoolSize> pools_;
  std::vector<bool> is_shared_;
  std::vector<EffectiveQuota> quotas_;  // By Cell().
  std::unordered_map<std::string, QueueIndex, HashName, std::equal_to<>> by_name_;
  std::unordered_map<std::string, PoolIndex, HashName, std::equal_to<>> pools_by_name_;
  std::vector<QueueFault> faults_;
};

}  // namespace grus
