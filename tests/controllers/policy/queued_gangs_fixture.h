// SPDX-License-Identifier: Apache-2.0
// Gangs of several queues over one ledger.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controllers/policy/gang_planner.h"
#include "tests/kit/shapes.h"

namespace grus {

inline QueueSpec Team(const std::string& name, std::int64_t guaranteed, std::optional<std::int64_t> limit = {},
                      const std::string& pool = kDefaultPool) {
  PoolQuota quota{.pool = pool, .guaranteed_milli = guaranteed * kOneGpu};
  if (limit) quota.limit_milli = *limit * kOneGpu;
  return {.name = name, .quotas = {quota}, .selects_namespaces = true};
}

// Namespaces are named like the queues that select them.
inline QueueSetup SetupOf(std::vector<QueueSpec> specs, std::vector<PoolSpec> pools = {}) {
  QueueSetup setup{.pools = std::move(pools), .queues = std::move(specs)};
  for (const QueueSpec& spec : setup.queues) setup.namespaces.push_back({spec.name, {spec.name}});
  return setup;
}

class QueuedGangs : public ::testing::Test {
 protected:
  QueuedGangs() { ledger_.Observe(&queues_); }

  void SetUpQueues(std::vector<QueueSpec> specs, std::vector<PoolSpec> pools = {}) {
    queues_.SetUp(SetupOf(std::move(specs), std::move(pools)));
  }
  // A gang of one-GPU members that waits.
  void Put(const std::string& key, int members, Holder holder = {}) {
    holder.comes_back = true;
    queues_.PutHolder(key, holder);
    GangDemand gang = Gang(key, members, 1);
    gang.waiting_since = ++since_;
    planner_.Put(std::move(gang));
  }
  // One of any members that waits.
  void Put(GangDemand gang) {
    queues_.PutHolder(gang.key, {.comes_back = true});
    planner_.Put(std::move(gang));
  }
  // One that runs on a node; `min` workers are its minimum.
  void Run(const std::string& key, const std::string& node, int workers, int min, Holder holder = {}) {
    for (int i = 0; i < workers; ++i) ledger_.Bind(key + std::to_string(i), node, GpuPod(1).request, key);
    holder.comes_back = true;
    holder.workers = workers;
    holder.min_workers = min;
    queues_.PutHolder(key, holder);
  }
  void End(const std::string& key, int from, int to) {
    for (int i = from; i > to; --i) ledger_.Release(key + std::to_string(i - 1));
    Holder holder = queues_.HolderOf(key);
    holder.workers = to;
    queues_.PutHolder(key, holder);
  }
  void Plan(std::int64_t now = 1000) { planner_.Plan(now); }
  bool IsPlaced(const std::string& key) { return !ledger_.PlacesOf(key).empty(); }
  std::string Why(const std::string& key) { return planner_.StandingOf(key)->queue_refusal; }
  std::optional<YieldNotice> NoticeTo(const std::string& key) {
    const auto notice = queues_.yields().find(key);
    return notice == queues_.yields().end() ? std::nullopt : std::optional(notice->second);
  }
  std::int64_t Used(const std::string& queue) {
    return queues_.use().used(queues_.tree().Find(queue), queues_.tree().FindPool(kDefaultPool)) / kOneGpu;
  }

  ClusterLedger ledger_;
  ClusterQueues queues_{ledger_};
  GangPlanner planner_{ledger_, 15, &queues_};
  std::int64_t since_ = 0;
};

}  // namespace grus
