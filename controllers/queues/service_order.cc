// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/service_order.h"

#include <algorithm>
#include <utility>

namespace grus {

ServiceOrder::ServiceOrder(const QueueUse& use) : use_(&use), turns_(static_cast<std::size_t>(use.tree().size())) {}

void ServiceOrder::SetFirst(QueueIndex queue, std::vector<PoolNeed> needs) {
  TurnOf(queue).needs = std::move(needs);
  Update(queue);
}

void ServiceOrder::Remove(QueueIndex queue) { SetFirst(queue, {}); }

void ServiceOrder::Update(QueueIndex queue) {
  for (; queue != kRootQueue; queue = use_->tree().ParentOf(queue)) {
    Turn& turn = TurnOf(queue);
    std::set<Rank>& siblings = TurnOf(use_->tree().ParentOf(queue)).below;
    if (turn.is_ranked) siblings.erase(turn.rank);
    turn.is_ranked = FirstLeaf(queue) != kNoQueue;
    if (!turn.is_ranked) continue;
    turn.rank = RankOf(queue);
    siblings.insert(turn.rank);
  }
}

QueueIndex ServiceOrder::Next() const { return FirstLeaf(kRootQueue); }

QueueIndex ServiceOrder::FirstLeaf(QueueIndex queue) const {
  while (!TurnOf(queue).below.empty()) queue = TurnOf(queue).below.begin()->queue;
  return TurnOf(queue).needs.empty() ? kNoQueue : queue;
}

ServiceOrder::Rank ServiceOrder::RankOf(QueueIndex queue) const {
  const QueueTree& tree = use_->tree();
  Rank rank;
  rank.queue = queue;
  const std::set<Rank>& below = TurnOf(queue).below;
  const bool has_guaranteed = !below.empty() && !below.begin()->is_above_guarantee;
  rank.is_above_guarantee = !has_guaranteed && !FitsIntoGuarantee(queue, TurnOf(FirstLeaf(queue)).needs);
  for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) {
    const std::int64_t size = std::max<std::int64_t>(1, tree.PoolAt(pool).milli);
    const kube::Wide under = kube::Wide{size} * tree.QuotaOf(queue, pool).weight;
    rank.borrowed = std::max(rank.borrowed, Fraction{use_->borrowed(queue, pool), under});
    rank.used = std::max(rank.used, Fraction{use_->used(queue, pool), under});
  }
  return rank;
}

bool ServiceOrder::FitsIntoGuarantee(QueueIndex queue, const std::vector<PoolNeed>& needs) const {
  return std::ranges::all_of(needs, [&](const PoolNeed& need) {
    return use_->used(queue, need.pool) + need.milli <= use_->tree().QuotaOf(queue, need.pool).guaranteed;
  });
}

}  // namespace grus
