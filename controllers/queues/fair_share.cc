// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/fair_share.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "controllers/queues/max_min.h"

namespace grus {
namespace {

// What is known of a queue before anything is divided.
struct Bounds {
  std::int64_t demand = 0;    // What it can use: wanted, within limits.
  std::int64_t withheld = 0;  // Stays idle for it, whatever happens: more than it can use.
  std::int64_t least = 0;     // Set aside for it: its guarantee as far as wanted, and what is withheld.
  std::int64_t most = 0;      // All that can be set aside for it.
};

std::int64_t OwnDemand(const QueueTree& tree, QueueIndex queue, PoolIndex pool, const QueueDemand& own) {
  const Queue& at = tree.At(queue);
  if (at.stop == QueueStop::kDrain) return 0;
  const bool may_start = at.stop == QueueStop::kNone && at.children.empty() && !tree.QuotaOf(queue, pool).is_closed;
  return may_start ? own.wanted : std::min(own.wanted, own.used);
}

class Sharing {
 public:
  Sharing(const QueueTree& tree, PoolIndex pool, std::span<const QueueDemand> demands)
      : tree_(tree), pool_(pool), demands_(demands), bounds_(demands.size()), shares_(demands.size(), 0) {}

  std::vector<std::int64_t> Run() {
    for (QueueIndex queue = tree_.size() - 1; queue >= kRootQueue; --queue) SumUp(queue);
    Bounds& root = BoundsOf(kRootQueue);
    shares_[kRootQueue] = root.least - root.withheld;
    for (QueueIndex queue = kRootQueue; queue < tree_.size(); ++queue) Divide(queue);
    return std::move(shares_);
  }

 private:
  Bounds& BoundsOf(QueueIndex queue) { return bounds_[static_cast<std::size_t>(queue)]; }
  std::int64_t OwnOf(QueueIndex queue) const {
    return OwnDemand(tree_, queue, pool_, demands_[static_cast<std::size_t>(queue)]);
  }

  void SumUp(QueueIndex queue) {
    const EffectiveQuota& quota = tree_.QuotaOf(queue, pool_);
    std::int64_t demand = OwnOf(queue), withheld_below = 0, least_below = 0;
    for (const QueueIndex child : tree_.At(queue).children) {
      demand += BoundsOf(child).demand;
      withheld_below += BoundsOf(child).withheld;
      least_below += BoundsOf(child).least;
    }
    Bounds& bounds = BoundsOf(queue);
    bounds.demand = std::min(demand, quota.limit);
    const std::int64_t wanted = bounds.demand + withheld_below;
    bounds.least = std::max({std::min(quota.guaranteed, wanted), quota.kept, least_below});
    bounds.most = std::max(bounds.least, wanted);
    bounds.withheld = std::max(withheld_below, bounds.least - bounds.demand);
  }

  // Divides the share of the queue, and what is withheld below it, among its children.
  void Divide(QueueIndex queue) {
    const std::vector<QueueIndex>& children = tree_.At(queue).children;
    if (children.empty()) return;
    std::int64_t left = shares_[static_cast<std::size_t>(queue)];
    std::vector<MaxMinItem> items;
    items.reserve(children.size() + 1);
    for (const QueueIndex child : children) {
      const Bounds& bounds = BoundsOf(child);
      left += bounds.withheld - bounds.least;
      items.push_back({tree_.QuotaOf(child, pool_).weight, bounds.most - bounds.least});
    }
    assert(left >= 0 && "guarantees of children fit into their parent's");
    items.push_back({1, OwnOf(queue)});
    const std::vector<std::int64_t> more = MaxMin(left, items);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const Bounds& bounds = BoundsOf(children[i]);
      shares_[static_cast<std::size_t>(children[i])] = bounds.least + more[i] - bounds.withheld;
    }
  }

  const QueueTree& tree_;
  const PoolIndex pool_;
  const std::span<const QueueDemand> demands_;
  std::vector<Bounds> bounds_;
  std::vector<std::int64_t> shares_;
};

}  // namespace

std::vector<std::int64_t> FairShares(const QueueTree& tree, PoolIndex pool, std::span<const QueueDemand> demands) {
  assert(static_cast<int>(demands.size()) == tree.size());
  return Sharing(tree, pool, demands).Run();
}

}  // namespace grus
