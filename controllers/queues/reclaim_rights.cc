// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/reclaim_rights.h"

#include <algorithm>

namespace grus {

ReclaimRights::ReclaimRights(const QueueUse& use, PoolIndex pool, std::span<const std::int64_t> shares)
    : use_(use), tree_(use.tree()), pool_(pool), shares_(shares), place_(static_cast<std::size_t>(tree_.size()), -1) {}

void ReclaimRights::Begin(QueueIndex queue, std::int64_t milli) {
  for (const QueueIndex before : path_) place_[static_cast<std::size_t>(before)] = -1;
  path_.clear();
  milli_ = milli;
  for (; queue != kRootQueue; queue = tree_.ParentOf(queue)) {
    place_[static_cast<std::size_t>(queue)] = top_level();
    path_.push_back(queue);
  }
}

int ReclaimRights::LevelOf(QueueIndex queue) const {
  while (queue != kRootQueue && place_[static_cast<std::size_t>(queue)] < 0) queue = tree_.ParentOf(queue);
  return queue == kRootQueue ? top_level() : place_[static_cast<std::size_t>(queue)];
}

std::int64_t ReclaimRights::Shortfall(int level) const {
  std::int64_t lacking = milli_ - use_.Available(path_.front(), pool_);
  for (std::size_t i = static_cast<std::size_t>(level); i < path_.size(); ++i) {
    const std::int64_t room = tree_.QuotaOf(path_[i], pool_).limit - use_.used(path_[i], pool_);
    lacking = std::max(lacking, milli_ - room);
  }
  return lacking;
}

bool ReclaimRights::IsWithinGuarantee(int level) const {
  std::int64_t withheld = 0;  // Within the queue, from the request.
  for (std::size_t i = 0; i < static_cast<std::size_t>(level); ++i) {
    if (i > 0) withheld += use_.WithheldBelow(path_[i], pool_) - use_.withheld(path_[i - 1], pool_);
    const std::int64_t guaranteed = tree_.QuotaOf(path_[i], pool_).guaranteed;
    if (use_.used(path_[i], pool_) + withheld + milli_ <= guaranteed) return true;
  }
  return false;
}

bool ReclaimRights::IsWithinShare(int level) const {
  return std::all_of(path_.begin(), path_.begin() + level, [&](QueueIndex queue) {
    return use_.used(queue, pool_) + milli_ <= shares_[static_cast<std::size_t>(queue)];
  });
}

bool ReclaimRights::HasLessThanHalf() const {
  return 2 * use_.used(path_.front(), pool_) < shares_[static_cast<std::size_t>(path_.front())];
}

std::int64_t ReclaimRights::Above(QueueIndex queue, int level, bool is_guarantee) const {
  const QueueIndex common = level < top_level() ? path_[static_cast<std::size_t>(level)] : kRootQueue;
  // Jobs in a queue that has queues below it have no guarantee against these.
  if (queue == common) return is_guarantee ? kMostMilli : 0;
  std::int64_t above = kMostMilli;
  for (; queue != common; queue = tree_.ParentOf(queue)) {
    const std::int64_t used = use_.used(queue, pool_);
    above = std::min(above, used + use_.withheld(queue, pool_) - tree_.QuotaOf(queue, pool_).guaranteed);
    if (!is_guarantee) above = std::min(above, used - shares_[static_cast<std::size_t>(queue)]);
  }
  return above;
}

}  // namespace grus
