// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_use.h"

#include <algorithm>
#include <string>

#include "controllers/queues/wording.h"

namespace grus {

QueueUse::QueueUse(const QueueTree& tree)
    : tree_(&tree), cells_(static_cast<std::size_t>(tree.size()) * static_cast<std::size_t>(tree.pool_count())) {
  for (QueueIndex queue = tree.size() - 1; queue > kRootQueue; --queue) {
    for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) UpdateWithheld(queue, pool);
  }
}

void QueueUse::Add(QueueIndex queue, PoolIndex pool, const UsedGpus& more) {
  for (; queue != kNoQueue; queue = tree_->ParentOf(queue)) {
    UsedGpus& sum = cells_[Cell(queue, pool)].sum;
    sum.used += more.used;
    sum.fixed += more.fixed;
    sum.yielding += more.yielding;
    sum.claimed += more.claimed;
    if (queue != kRootQueue) UpdateWithheld(queue, pool);
  }
}

void QueueUse::UpdateWithheld(QueueIndex queue, PoolIndex pool) {
  PoolCell& cell = cells_[Cell(queue, pool)];
  const std::int64_t own = tree_->QuotaOf(queue, pool).kept - cell.sum.used;
  const std::int64_t withheld = std::max(own, cell.withheld_below);
  cells_[Cell(tree_->ParentOf(queue), pool)].withheld_below += withheld - cell.withheld;
  cell.withheld = withheld;
}

std::int64_t QueueUse::borrowed(QueueIndex queue, PoolIndex pool) const {
  return std::max<std::int64_t>(0, used(queue, pool) - tree_->QuotaOf(queue, pool).guaranteed);
}

std::int64_t QueueUse::Idle(PoolIndex pool) const {
  const UsedGpus& all = Of(kRootQueue, pool);
  return tree_->PoolAt(pool).milli - all.used + std::min(all.claimed, all.yielding);
}

std::int64_t QueueUse::Available(QueueIndex queue, PoolIndex pool) const {
  std::int64_t available = Idle(pool);
  for (; queue != kRootQueue; queue = tree_->ParentOf(queue)) {
    available -= cells_[Cell(tree_->ParentOf(queue), pool)].withheld_below - withheld(queue, pool);
  }
  return available;
}

QueueUse QueueUse::AfterYields() const {
  QueueUse after = *this;
  for (PoolCell& cell : after.cells_) {
    cell.sum.used -= cell.sum.yielding;
    cell.sum.yielding = cell.sum.claimed = 0;
  }
  for (QueueIndex queue = tree_->size() - 1; queue > kRootQueue; --queue) {
    for (PoolIndex pool = 0; pool < tree_->pool_count(); ++pool) after.UpdateWithheld(queue, pool);
  }
  return after;
}

std::vector<QueueFault> LimitsBelowUse(const QueueUse& use) {
  const QueueTree& tree = use.tree();
  std::vector<QueueFault> faults;
  for (QueueIndex queue = kRootQueue + 1; queue < tree.size(); ++queue) {
    for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) {
      const EffectiveQuota& quota = tree.QuotaOf(queue, pool);
      const std::int64_t used = use.used(queue, pool);
      if (used <= quota.limit) continue;
      faults.push_back({tree.NameOf(queue), QuotaField(quota.field, "limit"), QueueFaultKind::kLimitBelowUse,
                        "uses " + GpuCount(used) + " in pool " + tree.PoolAt(pool).name + ", above its limit of " +
                            GpuNumber(quota.limit) + ": nothing is stopped for it, and nothing new starts until " +
                            GpuNumber(used - quota.limit) + " of them are free; to change that, raise the limit"});
    }
  }
  return faults;
}

std::vector<Lender> LendersBelow(const QueueUse& use, QueueIndex parent, PoolIndex pool) {
  const QueueTree& tree = use.tree();
  std::int64_t left = tree.QuotaOf(parent, pool).guaranteed, lent = 0;
  std::vector<Lender> lenders;
  for (const QueueIndex child : tree.At(parent).children) {
    const std::int64_t guaranteed = tree.QuotaOf(child, pool).guaranteed, used = use.used(child, pool);
    left -= guaranteed;
    lent += std::max<std::int64_t>(0, used - guaranteed);
    if (used < guaranteed) lenders.push_back({child, guaranteed - used, 0});
  }
  std::ranges::stable_sort(lenders, std::ranges::greater(), &Lender::idle);
  if (left > 0) lenders.insert(lenders.begin(), {parent, left, 0});
  for (Lender& lender : lenders) {
    lender.lent = std::min(lent, lender.idle);
    lent -= lender.lent;
  }
  return lenders;
}

}  // namespace grus
