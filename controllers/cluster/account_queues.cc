// SPDX-License-Identifier: Apache-2.0
// The part of ClusterAccount that is about queues: their setup, those who hold or want GPUs, and what they may have.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <tuple>

#include "controllers/cluster/cluster_account.h"

namespace grus {

ShapePtr ClusterAccount::InPoolLocked(const std::string& owner, const ShapePtr& shape) {
  if (!queues_.is_active() || shape->request.Accelerator().empty()) return shape;
  const PoolIndex pool = queues_.HomeOf(owner);
  if (pool == kNoPool) return shape;
  PodShape in_pool = *shape;
  in_pool.pool = queues_.tree().PoolAt(pool).name;
  return shapes_.Share(std::move(in_pool));
}

void ClusterAccount::LimitByQueueLocked(const std::string& owner, const Resources& request, Room& room) {
  const int own = static_cast<int>(ledger_.PlacesOf(owner).size());  // These are used already.
  if (const std::optional<int> target = queues_.TargetOf(owner)) {
    room.allowed = own + std::max(0, *target - queues_.HolderOf(owner).workers);
    room.limit = Room::Limit::kWorth;
  }
  const PoolIndex pool = queues_.HomeOf(owner);
  const std::int64_t each = pool == kNoPool ? 0 : queues_.MilliOf(request, pool);
  if (each > 0) {
    const std::int64_t more =
        std::min<std::int64_t>(queues_.HeadroomOf(owner, pool, true) / each, std::numeric_limits<int>::max() / 2);
    if (own + more < room.allowed) {
      room.allowed = own + static_cast<int>(more);
      room.limit = Room::Limit::kQueue;
    }
  }
  room.copies = std::min(room.copies, room.allowed);
}

// A gang may have been placed since the caller looked at what its queue allows.
int ClusterAccount::LimitPlacesLocked(const std::string& owner, const Resources& request, int count) {
  const int before = static_cast<int>(ledger_.PlacesOf(owner).size());
  if (!queues_.is_active() || count <= before) return count;
  Room room{.copies = count};
  LimitByQueueLocked(owner, request, room);
  return std::max(room.copies, before);
}

std::string ClusterAccount::OnlyPoolFor(const PodShape& shape) const {
  std::lock_guard lock(mutex_);
  std::string only;
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr || !node->CanHold(shape, {}) || node->state.pool == only) continue;
    if (!only.empty()) return {};
    only = node->state.pool;
  }
  return only;
}

void ClusterAccount::SetQueues(QueueSetup setup) {
  Apply([&](Effects& effects) {
    const std::map<std::string, RuntimeLimit> before = queues_.RuntimeLimits();
    if (!queues_.SetUp(std::move(setup))) return;
    effects.has_freed = true;  // What waits may start now, and what runs may grow.
    const std::map<std::string, RuntimeLimit> after = queues_.RuntimeLimits();
    std::vector<std::pair<std::string, RuntimeLimit>> changed;
    const auto by_text = [](const auto& a, const auto& b) {
      return std::tie(a.first, a.second.queue, a.second.seconds) < std::tie(b.first, b.second.queue, b.second.seconds);
    };
    std::ranges::set_symmetric_difference(before, after, std::back_inserter(changed), by_text);
    for (auto& [owner, limit] : changed) effects.yielding.push_back(std::move(owner));
  });
}

QueuesReport ClusterAccount::Queues() {
  QueuesReport report;
  Apply([&](Effects& effects) {
    if (!queues_.is_active()) return;
    if (has_planned_) {
      PlanLocked({}, effects);
      PlanSizesLocked(effects);
    }
    effects.has_used = false;
    report = queues_.Report(planner_.Waiting());
    report.look_again_seconds = sizes_.LookAgainSeconds();
  });
  return report;
}

void ClusterAccount::PutHolder(const std::string& owner, const Holder& holder) {
  Apply([&](Effects& effects) {
    if (!queues_.PutHolder(owner, holder)) return;
    planner_.Rerank(owner);
    effects.has_used = queues_.is_active();
  });
}

void ClusterAccount::RemoveHolder(const std::string& owner) {
  Apply([&](Effects& effects) {
    // Its pods may be gone already: no event of theirs tells that a job less runs.
    effects.has_used = queues_.is_active() && !(queues_.HolderOf(owner) == Holder());
    queues_.RemoveHolder(owner);
    metrics_.NoteGone(owner);
    planner_.SetEnd(owner, std::nullopt);
  });
}

std::optional<RuntimeLimit> ClusterAccount::RuntimeLimitOf(const std::string& owner) {
  std::lock_guard lock(mutex_);
  return queues_.RuntimeLimitOf(owner);
}

void ClusterAccount::PlanSizesLocked(Effects& effects) {
  const kube::TimePoint began = clock_.Now();
  const std::vector<std::string> changed = sizes_.Update(UnixSeconds());
  metrics_.NoteDecision(AccountMetrics::Decision::kSizes, began);
  metrics_.NoteNotices(changed);
  effects.yielding.insert(effects.yielding.end(), changed.begin(), changed.end());
}

std::optional<int> ClusterAccount::TargetOf(const std::string& owner) {
  std::optional<int> target;
  Apply([&](Effects& effects) {
    // A job that is about to start needs its size now; of many, each second one of them asks for all.
    const std::int64_t now = UnixSeconds();
    const bool is_late =
        queues_.HolderOf(owner).curve && !queues_.TargetOf(owner) && std::exchange(sized_at_, now) != now;
    if (is_late) PlanSizesLocked(effects);
    target = queues_.TargetOf(owner);
  });
  return target;
}

void ClusterAccount::NoteResize(const std::string& owner, int from, int to) {
  std::lock_guard lock(mutex_);
  metrics_.NoteResize(owner, from, to);
}

std::optional<YieldNotice> ClusterAccount::YieldOf(const std::string& owner) const {
  std::lock_guard lock(mutex_);
  const auto notice = queues_.yields().find(owner);
  return notice == queues_.yields().end() ? std::nullopt : std::optional(notice->second);
}

}  // namespace grus
