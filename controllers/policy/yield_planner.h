// SPDX-License-Identifier: Apache-2.0
// Who must yield GPUs, to whom, and until when: keeps the notices and claims of ClusterQueues up to date.
//
// A notice ends when its GPUs are free, or when nobody waits for them any more. Until the waiting job has started, a
// claim keeps what comes free for it.
//
// Pure data structure: no I/O, clock or lock; the owner serialises access and passes the time in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "controllers/policy/cluster_queues.h"

namespace grus {

class YieldPlanner {
 public:
  // Whether the waiting owner would have room on nodes that it may use, once these have yielded.
  using WouldHelp = std::function<bool(const std::string& owner, std::span<const Yield> yields)>;
  // Of those that may yield, which would make room for it on a few nodes; empty: they would not.
  using InTheWay =
      std::function<std::set<std::string>(const std::string& owner, const std::set<std::string>& may_yield)>;

  YieldPlanner(ClusterQueues& queues, WouldHelp would_help, InTheWay in_the_way)
      : queues_(queues), would_help_(std::move(would_help)), in_the_way_(std::move(in_the_way)) {}

  // `requests`: of gangs and jobs that its queue would start if GPUs were idle, in the order of service. Those that run
  // and may grow within their guarantee it finds itself. Returns the owners whose notice has changed, has come or has
  // gone. REQUIRES: queues.is_active().
  std::vector<std::string> Update(std::span<const WaitingDemand> requests, std::int64_t now);
  std::optional<YieldAnswer> AnswerTo(const std::string& owner) const;  // By the last update; nullopt: none.

  // Its fair share of the pool as of the last update, in thousandths of a GPU; 0: not known.
  std::int64_t ShareOf(QueueIndex queue, PoolIndex pool) const;

 private:
  using Promised = std::set<std::string>;  // For whom others yield already.
  using Growth = std::map<PoolIndex, std::vector<WaitingDemand>>;

  void DropNeedless(std::span<const WaitingDemand> requests, const Growth& growth, std::int64_t now);
  bool MayAsk(const WaitingDemand& request, std::int64_t now) const;
  bool IsComing(const WaitingDemand& request, const Promised& promised) const;
  void ClaimIfFreed(const WaitingDemand& request, ReclaimOutcome outcome, const Promised& promised);
  void PlanStarts(PoolIndex pool, std::span<const WaitingDemand> requests, std::int64_t now);
  // For one request that lacks room on single nodes: from those alone that are on a few of them. Empty: that does not
  // help, or it has been searched for lately, or by others in this plan: `tries` is what they have left.
  std::vector<Yield> OnFewNodes(const ReclaimRequest& request, PoolIndex pool, std::span<const std::int64_t> shares,
                                std::int64_t now, int& tries);
  void PlanGrowth(PoolIndex pool, std::span<const WaitingDemand> growth, std::int64_t now);
  void PlanDrains(std::int64_t now);
  void WithdrawIfOtherQueues();
  void Tell(const Yield& yield, std::int64_t now);
  void NoteGivers();
  const QueueSpec* SpecOf(QueueIndex queue) const;  // Null: the default queue, which need not exist.

  ClusterQueues& queues_;
  const WouldHelp would_help_;
  const InTheWay in_the_way_;
  std::vector<std::string> changed_;
  std::map<std::string, YieldAnswer> answers_;
  std::map<PoolIndex, std::vector<std::int64_t>> shares_;  // By queue.
  std::uint64_t setup_version_ = 0;                        // Of the queues, for which the notices hold.
  std::map<std::string, YieldNotice> withdrawn_;           // By this update.
  std::map<std::string, std::int64_t> searched_at_;        // Of owners: Unix seconds.
  std::map<std::string, std::int64_t> kept_until_;  // Unix seconds: what others gave up for this owner is kept for it.
};

}  // namespace grus
