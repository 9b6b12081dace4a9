// SPDX-License-Identifier: Apache-2.0
// What ClusterQueues says of everybody: for reclaiming, and for the status of queues and pools.
#include <algorithm>
#include <tuple>
#include <utility>

#include "controllers/policy/cluster_queues.h"

namespace grus {
namespace {

constexpr std::size_t kMostWaitingTold = 5;

}  // namespace

std::vector<ReclaimJob> ClusterQueues::JobsIn(PoolIndex pool, std::int64_t now) {
  std::vector<ReclaimJob> jobs;
  for (const auto& [owner, account] : Counted().accounts) {
    const Holder& holder = *account.holder;
    const std::int64_t each = WorkerMilli(account, pool);
    const auto notice = notices_.find(owner);
    const int workers = notice == notices_.end() ? holder.workers : std::min(holder.workers, notice->second.to);
    if (each <= 0 || workers <= 0 || account.is_on_closed_node) continue;
    jobs.push_back({.key = owner,
                    .queue = account.queue,
                    .job_class = holder.job_class,
                    .priority = holder.priority,
                    .comes_back = holder.comes_back,
                    .workers = workers,
                    .min_workers = std::clamp(holder.min_workers, 1, holder.workers),
                    .worker_milli = each,
                    .attained_gpu_seconds = holder.attained_gpu_seconds,
                    .running_seconds = std::max<std::int64_t>(0, now - holder.running_since)});
  }
  return jobs;
}

std::vector<WaitingDemand> ClusterQueues::GrowthIn(PoolIndex pool, std::int64_t now) {
  std::vector<std::pair<int, WaitingDemand>> growth;  // By priority, highest first.
  std::vector<std::int64_t> left;                     // Of the guarantee, by queue.
  for (QueueIndex queue = 0; queue < tree().size(); ++queue) {
    left.push_back(tree().QuotaOf(queue, pool).guaranteed - use().used(queue, pool));
  }
  for (const auto& [owner, account] : Counted().accounts) {
    const Holder& holder = *account.holder;
    const std::int64_t each = WorkerMilli(account, pool);
    if (each <= 0 || left[static_cast<std::size_t>(account.queue)] < each) continue;
    const int wanted =
        std::min(holder.wanted_workers, TargetOf(owner).value_or(holder.wanted_workers)) - holder.workers;
    const bool grows = holder.workers > 0 && wanted > 0 && now >= holder.grows_from && !account.is_misplaced &&
                       !notices_.contains(owner);
    if (!grows) continue;
    const std::int64_t since = std::max(holder.running_since, holder.grows_from);
    growth.push_back({-holder.priority, {owner, account.queue, pool, wanted * each, since, {}}});
  }
  std::ranges::sort(growth, [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.owner) < std::tie(b.first, b.second.owner);
  });
  std::vector<WaitingDemand> demands;
  for (auto& [priority, demand] : growth) {
    std::int64_t& of_queue = left[static_cast<std::size_t>(demand.queue)];
    const std::int64_t each = WorkerMilli(count_.accounts.at(demand.owner), pool);
    demand.milli = std::min(demand.milli, of_queue / each * each);
    if (demand.milli <= 0) continue;
    of_queue -= demand.milli;
    demands.push_back(std::move(demand));
  }
  return demands;
}

std::vector<SizedJob> ClusterQueues::SizedJobs() {
  std::vector<SizedJob> jobs;
  const int pools = tree().pool_count();
  for (const auto& [owner, holder] : holders_) {
    if (!holder.curve || holder.wanted_workers <= 0) continue;
    const kube::Result<QueueIndex> queue = FindQueue(owner, *count_.tree);
    const auto account = count_.accounts.find(owner);
    PoolIndex home = kNoPool;
    int homes = 0;
    for (PoolIndex pool = 0; account != count_.accounts.end() && pool < pools; ++pool) {
      if (account->second.held[static_cast<std::size_t>(pool)] <= 0) continue;
      home = pool;
      ++homes;
    }
    // Nobody knows yet in which of several pools it will start.
    if (homes == 0) home = pools == 1 ? 0 : tree().FindPool(holder.pool);
    if (queue && home != kNoPool && homes <= 1)
      jobs.push_back({owner, *queue, home, std::max(1, static_cast<int>(holder.worker_milli / kOneGpu))});
  }
  std::ranges::sort(jobs, {}, &SizedJob::owner);
  return jobs;
}

std::int64_t ClusterQueues::MinimumRuntimeOf(const std::string& owner) {
  const kube::Result<QueueIndex> queue = QueueOf(owner);
  return queue ? tree().At(*queue).minimum_runtime_seconds : 0;
}

std::vector<QueueDemand> ClusterQueues::DemandIn(PoolIndex pool, std::span<const WaitingDemand> waiting) {
  std::vector<QueueDemand> demands(static_cast<std::size_t>(tree().size()));
  for (const auto& [owner, account] : count_.accounts) {
    const Holder& holder = *account.holder;
    QueueDemand& demand = demands[static_cast<std::size_t>(account.queue)];
    const std::int64_t held = account.held[static_cast<std::size_t>(pool)];
    demand.used += held;
    demand.wanted +=
        held + WorkerMilli(account, pool) * std::max(0, holder.wanted_workers - std::max(1, holder.workers));
  }
  for (const WaitingDemand& wait : waiting) {
    if (wait.queue != kNoQueue && wait.pool == pool) demands[static_cast<std::size_t>(wait.queue)].wanted += wait.milli;
  }
  return demands;
}

void ClusterQueues::ReportQueue(QueueIndex queue, const std::vector<std::vector<std::int64_t>>& shares,
                                QueueReport& report) const {
  const QueueTree& tree = *count_.tree;
  for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) {
    const EffectiveQuota& quota = tree.QuotaOf(queue, pool);
    QueuePoolReport at{.pool = tree.PoolAt(pool).name, .guaranteed = quota.guaranteed};
    at.used = count_.use->used(queue, pool);
    at.borrowed = count_.use->borrowed(queue, pool);
    at.share = shares[static_cast<std::size_t>(pool)][static_cast<std::size_t>(queue)];
    for (const Lender& lender : LendersBelow(*count_.use, tree.ParentOf(queue), pool)) {
      if (lender.queue == queue) at.lent = lender.lent;
    }
    if (quota.field >= 0 || at.guaranteed > 0 || at.used > 0) report.pools.push_back(std::move(at));
  }
}

void ClusterQueues::ReportWaiting(const WaitingDemand& wait, QueuesReport& report) const {
  const QueueTree& tree = *count_.tree;
  for (QueueIndex queue = wait.queue; queue > kRootQueue; queue = tree.ParentOf(queue)) {
    QueueReport& at = report.queues[static_cast<std::size_t>(queue) - 1];
    ++at.waiting;
    if (at.first_waiting.size() < kMostWaitingTold) at.first_waiting.push_back({wait.owner, wait.milli, wait.reason});
    if (wait.pool == kNoPool) continue;
    const std::string& name = tree.PoolAt(wait.pool).name;
    auto pool = std::ranges::find(at.pools, name, &QueuePoolReport::pool);
    if (pool == at.pools.end()) pool = at.pools.insert(pool, {.pool = name});
    pool->waiting += wait.milli;
  }
}

QueuesReport ClusterQueues::Report(std::span<const WaitingDemand> waiting) {
  QueuesReport report;
  if (!is_active()) return report;
  const QueueTree& tree = this->tree();
  const Charges claims = claims_, reserved = reserved_;
  for (const auto& [owner, claim] : claims) ClaimFor(owner, std::nullopt);
  for (const auto& [owner, idle] : reserved) SetReserved(owner, std::nullopt);
  std::vector<std::vector<std::int64_t>> shares;
  for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) {
    shares.push_back(FairShares(tree, pool, DemandIn(pool, waiting)));
  }
  std::vector<int> running(static_cast<std::size_t>(tree.size()));
  for (const auto& [owner, account] : count_.accounts) {
    if (account.holder->workers == 0) continue;
    for (QueueIndex queue = account.queue; queue > kRootQueue; queue = tree.ParentOf(queue)) {
      ++running[static_cast<std::size_t>(queue)];
    }
  }
  for (QueueIndex queue = kRootQueue + 1; queue < tree.size(); ++queue) {
    QueueReport& at = report.queues.emplace_back();
    at.queue = tree.NameOf(queue);
    at.running = running[static_cast<std::size_t>(queue)];
    ReportQueue(queue, shares, at);
  }
  for (const WaitingDemand& wait : waiting) ReportWaiting(wait, report);
  std::ranges::sort(report.queues, {}, &QueueReport::queue);
  report.pools = count_.pools;
  report.faults = tree.faults();
  for (QueueFault& fault : NamespacesInTwoQueues(tree, setup_.namespaces)) report.faults.push_back(std::move(fault));
  for (QueueFault& fault : LimitsBelowUse(*count_.use)) report.faults.push_back(std::move(fault));
  for (const auto& [owner, claim] : claims) ClaimFor(owner, claim);
  for (const auto& [owner, idle] : reserved) SetReserved(owner, idle);
  return report;
}

std::vector<PoolRoom> ClusterQueues::RoomByPool() {
  FindDefaultResource();
  std::vector<PoolRoom> rooms;
  for (const PoolSpec& pool : setup_.pools) rooms.push_back({.pool = pool.name});
  // A NodePool may have this name, too.
  if (std::ranges::find(rooms, kDefaultPool, &PoolRoom::pool) == rooms.end()) rooms.push_back({.pool = kDefaultPool});
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr || !node->is_known || IsClosed(node->state)) continue;
    const auto room = std::ranges::find(rooms, node->state.pool, &PoolRoom::pool);
    if (room == rooms.end()) continue;
    const auto pool = static_cast<PoolIndex>(room - rooms.begin());
    const std::int64_t used = MilliOf(node->used, pool);
    (used > 0 ? room->on_used_nodes : room->on_empty_nodes) +=
        std::max<std::int64_t>(0, MilliOf(node->state.allocatable, pool) - used);
  }
  return rooms;
}

}  // namespace grus
