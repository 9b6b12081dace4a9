// SPDX-License-Identifier: Apache-2.0
// Builds a QueueTree: first who is above whom, then what counts of the quotas, noting what is wrong on the way. Part of
// queue_tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controllers/queues/queue_tree.h"

namespace grus {

class QueueTreeBuilder {
 public:
  QueueTreeBuilder(std::span<const QueueSpec> specs, std::span<const PoolSize> pools);

  // Once.
  QueueTree Build();

 private:
  // All specs of one name.
  struct Entry {
    const QueueSpec* spec = nullptr;
    int copies = 1;
    std::optional<std::size_t> parent = {};  // Entry; empty: none, or none that can be used.
    bool is_left_out = false;                // By a fault of its own.
  };
  // A quota as its spec has it, after faults of its own.
  struct OwnQuota {
    std::optional<std::int64_t> guaranteed = {};  // Set for all by SumUpGuarantees().
    std::int64_t lendable = kNoLimit;
  };

  struct QuotaNumbers {
    std::optional<std::int64_t> guaranteed = {};
    std::int64_t lendable = kNoLimit, limit = kNoLimit, weight = 1;
    bool is_faulty = false;
  };

  void CollectEntries();
  void FindParents();
  void FindCycles();
  void NoteCycle(const std::vector<std::size_t>& members);
  void AddQueues();
  void AddQueue(const Entry& entry, QueueIndex parent);

  void ReadQuotas(QueueIndex queue);
  void ReadQuota(QueueIndex queue, int field);
  QuotaNumbers ReadNumbers(QueueIndex queue, int field);
  void InheritClosed(QueueIndex queue);
  void SumUpGuarantees();  // Of queues whose specs name none.
  void FitIntoParents();
  void FitChildren(QueueIndex parent, PoolIndex pool);
  void NoteTooMuch(QueueIndex queue, PoolIndex pool, std::int64_t sum, std::int64_t above);

  void Note(QueueIndex queue, std::string field, QueueFaultKind kind, std::string message);
  void NoteName(const std::string& queue, std::string field, QueueFaultKind kind, std::string message);
  EffectiveQuota& Quota(QueueIndex queue, PoolIndex pool) { return tree_.quotas_[tree_.Cell(queue, pool)]; }
  OwnQuota& Own(QueueIndex queue, PoolIndex pool) { return own_[tree_.Cell(queue, pool)]; }
  const QueueSpec* SpecOf(QueueIndex queue) const { return spec_of_[static_cast<std::size_t>(queue)]; }

  const std::span<const QueueSpec> specs_;
  const QueueSpec implicit_default_{.name = kDefaultQueue};
  std::vector<Entry> entries_;             // By name.
  std::vector<const QueueSpec*> spec_of_;  // By queue; null: the root.
  std::vector<OwnQuota> own_;              // By Cell().
  QueueTree tree_;
};

}  // namespace grus
