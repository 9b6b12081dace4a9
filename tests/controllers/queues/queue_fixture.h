// SPDX-License-Identifier: Apache-2.0
// Queues, shares and use in whole GPUs, for tables.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "controllers/queues/fair_share.h"
#include "controllers/queues/queue_tree.h"
#include "controllers/queues/queue_use.h"

namespace grus {

constexpr std::int64_t Gpus(double gpus) { return static_cast<std::int64_t>(gpus * kOneGpu + (gpus < 0 ? -0.5 : 0.5)); }

// A quota in pool "a", in GPUs.
struct GpuQuota {
  double guaranteed = 0;
  double limit = -1;     // -1: none.
  double lendable = -1;  // -1: all.
  std::int64_t weight = 1;
};

inline PoolQuota QuotaIn(std::string pool, const GpuQuota& gpus) {
  PoolQuota quota{.pool = std::move(pool), .guaranteed_milli = Gpus(gpus.guaranteed), .weight = gpus.weight};
  if (gpus.limit >= 0) quota.limit_milli = Gpus(gpus.limit);
  if (gpus.lendable >= 0) quota.lendable_milli = Gpus(gpus.lendable);
  return quota;
}

inline QueueSpec QueueIn(std::string name, std::string parent, const GpuQuota& quota) {
  return {.name = std::move(name), .parent = std::move(parent), .quotas = {QuotaIn("a", quota)}};
}

inline QueueTree TreeOf(const std::vector<QueueSpec>& specs, double gpus) {
  const std::vector<PoolSize> pools = {{"a", Gpus(gpus)}};
  return QueueTree::Build(specs, pools);
}

using GpusByQueue = std::map<std::string, double>;

// What queues use of pool "a", all of it by preemptible jobs.
inline QueueUse UseOf(const QueueTree& tree, const GpusByQueue& used) {
  QueueUse use(tree);
  for (const auto& [queue, gpus] : used) use.Add(tree.Find(queue), 0, {Gpus(gpus), 0, 0});
  return use;
}

inline std::vector<QueueDemand> DemandsOf(const QueueTree& tree, const GpusByQueue& used, const GpusByQueue& wanted) {
  std::vector<QueueDemand> demands(static_cast<std::size_t>(tree.size()));
  for (const auto& [queue, gpus] : used) demands[static_cast<std::size_t>(tree.Find(queue))].used = Gpus(gpus);
  for (const auto& [queue, gpus] : wanted) demands[static_cast<std::size_t>(tree.Find(queue))].wanted = Gpus(gpus);
  return demands;
}

// Shares of pool "a", in GPUs, of the queues that `wanted` names.
inline GpusByQueue SharesOf(const QueueTree& tree, const GpusByQueue& wanted, const GpusByQueue& used = {}) {
  const std::vector<std::int64_t> shares = FairShares(tree, 0, DemandsOf(tree, used, wanted));
  GpusByQueue by_queue;
  for (const auto& [queue, gpus] : wanted) {
    by_queue[queue] = static_cast<double>(shares[static_cast<std::size_t>(tree.Find(queue))]) / kOneGpu;
  }
  return by_queue;
}

// Integers from a seed, the same on every machine.
class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}

  std::int64_t Between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool OneIn(std::int64_t n) { return Between(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

// A tree of up to `most` queues without faults in pool "a" of up to 64 GPUs, with amounts that are not whole GPUs.
// Guarantees, limits and weights are all drawn.
inline QueueTree RandomTree(Draws& draws, int most) {
  const std::int64_t pool = draws.Between(0, 64 * kOneGpu);
  struct Drawn {
    QueueSpec spec;
    std::int64_t left = 0;  // Of its guarantee, for children.
  };
  std::vector<Drawn> drawn;
  std::int64_t left = pool;
  for (int i = 0, count = static_cast<int>(draws.Between(1, most)); i < count; ++i) {
    Drawn queue;
    queue.spec.name = "q" + std::to_string(draws.Between(0, 9)) + "-" + std::to_string(i);
    Drawn* parent = nullptr;
    if (!drawn.empty() && !draws.OneIn(3)) {
      parent = &drawn[static_cast<std::size_t>(draws.Between(0, static_cast<std::int64_t>(drawn.size()) - 1))];
      queue.spec.parent = parent->spec.name;
    }
    std::int64_t& above = parent == nullptr ? left : parent->left;
    PoolQuota quota{.pool = "a", .weight = draws.Between(1, 5)};
    quota.guaranteed_milli = draws.OneIn(3) ? 0 : draws.Between(0, above);
    above -= *quota.guaranteed_milli;
    if (draws.OneIn(3)) quota.limit_milli = *quota.guaranteed_milli + draws.Between(0, 20 * kOneGpu);
    if (draws.OneIn(4)) quota.lendable_milli = draws.Between(0, *quota.guaranteed_milli);
    queue.left = *quota.guaranteed_milli;
    queue.spec.quotas = {quota};
    drawn.push_back(std::move(queue));
  }
  std::vector<QueueSpec> specs;
  for (Drawn& queue : drawn) specs.push_back(std::move(queue.spec));
  const std::vector<PoolSize> pools = {{"a", pool}};
  return QueueTree::Build(specs, pools);
}

inline std::vector<QueueDemand> RandomDemands(Draws& draws, const QueueTree& tree) {
  std::vector<QueueDemand> demands(static_cast<std::size_t>(tree.size()));
  for (QueueIndex queue = kRootQueue + 1; queue < tree.size(); ++queue) {
    if (tree.IsLeaf(queue) && !draws.OneIn(4)) {
      demands[static_cast<std::size_t>(queue)].wanted = draws.Between(0, 40 * kOneGpu);
    }
  }
  return demands;
}

}  // namespace grus
