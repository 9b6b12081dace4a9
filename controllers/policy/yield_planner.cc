// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/yield_planner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "controllers/queues/fair_share.h"

namespace grus {
namespace {

// A job that runs takes GPUs when its cooldown is over. One that cannot use them must not keep them idle for long.
constexpr std::int64_t kKeptForGrowth = 60;
constexpr std::int64_t kClockSkew = 60;
// Searches on single nodes take long: so many in one plan and pool, and for one owner no more often than that.
constexpr int kMostSearches = 2;
constexpr std::int64_t kSearchSeconds = 10;

}  // namespace

const QueueSpec* YieldPlanner::SpecOf(QueueIndex queue) const {
  const std::vector<QueueSpec>& specs = queues_.setup().queues;
  const auto spec = std::ranges::find(specs, queues_.tree().NameOf(queue), &QueueSpec::name);
  return spec == specs.end() ? nullptr : &*spec;
}

void YieldPlanner::DropNeedless(std::span<const WaitingDemand> requests, const Growth& growth, std::int64_t now) {
  std::set<std::string_view> waiting;
  for (const WaitingDemand& request : requests) waiting.insert(request.owner);
  for (const auto& [pool, of_pool] : growth) {
    for (const WaitingDemand& demand : of_pool) waiting.insert(demand.owner);
  }
  std::vector<std::string> ended;
  for (const auto& [owner, notice] : queues_.yields()) {
    const kube::Result<QueueIndex> queue = queues_.QueueOf(owner);
    const Holder& holder = queues_.HolderOf(owner);
    const bool is_drain = notice.reason == YieldReason::kDrained, is_resize = notice.reason == YieldReason::kWorthMore;
    const bool is_needed = is_drain    ? queue && queues_.tree().At(*queue).stop == QueueStop::kDrain
                           : is_resize ? queues_.TargetOf(owner).value_or(holder.workers) < holder.workers
                                       : waiting.contains(notice.for_owner);
    const bool is_below_minimum = notice.to > 0 && notice.to < holder.min_workers;  // It was raised since.
    const bool is_done = queues_.HasYielded(owner);
    if (is_done) kept_until_[notice.for_owner] = now + kKeptForGrowth;
    if (!is_needed || is_done || is_below_minimum) ended.push_back(owner);
  }
  for (const std::string& owner : ended) {
    queues_.SetYield(owner, std::nullopt);
    changed_.push_back(owner);
  }
}

void YieldPlanner::Tell(const Yield& yield, std::int64_t now) {
  const kube::Result<QueueIndex> queue = queues_.QueueOf(yield.job);
  const QueueSpec* spec = queue ? SpecOf(*queue) : nullptr;
  const std::int64_t notice = spec ? spec->preemption_notice_seconds : QueueSpec().preemption_notice_seconds;
  const auto known = queues_.yields().find(yield.job);
  const auto withdrawn = withdrawn_.find(yield.job);
  const bool is_known = known != queues_.yields().end();
  const YieldNotice* before = is_known ? &known->second : withdrawn != withdrawn_.end() ? &withdrawn->second : nullptr;
  const bool has_less_time = before != nullptr && before->to == 0;
  queues_.SetYield(yield.job, YieldNotice{.to = yield.to,
                                          .reason = yield.reason,
                                          .for_owner = yield.for_job,
                                          .by = has_less_time ? before->by : now + (yield.to == 0 ? notice : 0)});
  changed_.push_back(yield.job);
}

// Who had a right to GPUs may have none any more, and the other way round: ask anew. Those that are told again keep
// their deadline.
void YieldPlanner::WithdrawIfOtherQueues() {
  if (std::exchange(setup_version_, queues_.version()) == queues_.version()) return;
  shares_.clear();
  for (const auto& [owner, notice] : queues_.yields()) {
    if (notice.reason != YieldReason::kWorthMore) withdrawn_[owner] = notice;
  }
  for (const auto& [owner, notice] : withdrawn_) {
    queues_.SetYield(owner, std::nullopt);
    changed_.push_back(owner);
  }
}

std::int64_t YieldPlanner::ShareOf(QueueIndex queue, PoolIndex pool) const {
  const auto shares = shares_.find(pool);
  const auto index = static_cast<std::size_t>(queue);
  return shares == shares_.end() || index >= shares->second.size() ? 0 : shares->second[index];
}

bool YieldPlanner::MayAsk(const WaitingDemand& request, std::int64_t now) const {
  const QueueSpec* spec = SpecOf(request.queue);
  // A time far ahead was noted before the clock was set back: nobody knows how long it has waited.
  if (spec == nullptr || request.since > now + kClockSkew) return true;
  return now - request.since >= spec->preemption_delay_seconds;
}

// What yields is enough for it.
bool YieldPlanner::IsComing(const WaitingDemand& request, const Promised& promised) const {
  return promised.contains(request.owner) || queues_.use().Available(request.queue, request.pool) < request.milli;
}

void YieldPlanner::ClaimIfFreed(const WaitingDemand& request, ReclaimOutcome outcome, const Promised& promised) {
  const bool is_freed_for_it =
      outcome == ReclaimOutcome::kReclaimed ||
      (outcome == ReclaimOutcome::kFree && (IsComing(request, promised) || kept_until_.contains(request.owner)));
  if (is_freed_for_it) queues_.ClaimFor(request.owner, PoolNeed{request.pool, request.milli});
}

void YieldPlanner::PlanStarts(PoolIndex pool, std::span<const WaitingDemand> requests, std::int64_t now) {
  std::vector<WaitingDemand> waiting, asking;
  std::vector<ReclaimRequest> of_pool;
  for (const WaitingDemand& request : requests) {
    if (request.pool != pool) continue;
    waiting.push_back(request);
    if (!MayAsk(request, now)) continue;
    asking.push_back(request);
    const Holder& holder = queues_.HolderOf(request.owner);
    of_pool.push_back({request.owner, request.queue, holder.job_class, holder.priority,
                       queues_.IsPreemptible(request.owner), request.milli});
  }
  if (waiting.empty()) return;
  const std::vector<std::int64_t>& shares = shares_[pool] =
      FairShares(queues_.tree(), pool, queues_.DemandIn(pool, waiting));
  if (of_pool.empty()) return;
  const ReclaimPlan plan = PlanReclaim(queues_.use(), pool, shares, queues_.JobsIn(pool, now), of_pool);
  std::map<std::string_view, std::vector<Yield>> yields_for;
  for (const Yield& yield : plan.yields) yields_for[yield.for_job].push_back(yield);
  Promised promised;
  for (const auto& [owner, notice] : queues_.yields()) promised.insert(notice.for_owner);
  int tries = kMostSearches;
  for (std::size_t i = 0; i < asking.size(); ++i) {
    const WaitingDemand& request = asking[i];
    std::vector<Yield>& yields = yields_for[request.owner];
    YieldAnswer& answer = answers_[request.owner];
    answer.outcome = plan.answers[i].outcome;
    if (answer.outcome == ReclaimOutcome::kFree && !IsComing(request, promised)) {
      yields = OnFewNodes(of_pool[i], pool, shares, now, tries);
      if (!yields.empty()) answer.outcome = ReclaimOutcome::kReclaimed;
    } else if (!yields.empty() && !would_help_(request.owner, yields)) {
      yields = OnFewNodes(of_pool[i], pool, shares, now, tries);
      if (yields.empty()) {
        answer.outcome = ReclaimOutcome::kNotEnough;
        continue;
      }
    }
    for (const Yield& yield : yields) Tell(yield, now);
    ClaimIfFreed(request, answer.outcome, promised);
  }
}

std::vector<Yield> YieldPlanner::OnFewNodes(const ReclaimRequest& request, PoolIndex pool,
                                            std::span<const std::int64_t> shares, std::int64_t now, int& tries) {
  if (tries == 0 || searched_at_.contains(request.job)) return {};
  const auto may_yield = [&](const ReclaimJob& job) {
    if (job.queue != request.queue) return queues_.use().borrowed(job.queue, pool) > 0;
    return job.workers > job.min_workers || job.job_class > request.job_class || job.priority < request.priority;
  };
  std::vector<ReclaimJob> jobs = queues_.JobsIn(pool, now);
  std::erase_if(jobs, [&](const ReclaimJob& job) { return !may_yield(job); });
  if (jobs.empty()) return {};
  --tries;
  searched_at_[request.job] = now;
  if (would_help_(request.job, {})) return {};  // There is room, but it is kept for others.
  std::set<std::string> owners;
  for (const ReclaimJob& job : jobs) owners.insert(job.key);
  owners = in_the_way_(request.job, owners);
  std::erase_if(jobs, [&](const ReclaimJob& job) { return !owners.contains(job.key); });
  std::int64_t held = 0;
  for (const ReclaimJob& job : jobs) held += job.workers * job.worker_milli;
  // All that it needs comes from these, or all that they hold: what is idle elsewhere does not help it.
  QueueUse use = queues_.use();
  const std::int64_t idle_there = request.milli - std::min(request.milli, held);
  const std::int64_t elsewhere = use.AfterYields().Available(request.queue, pool) - idle_there;
  use.Add(kRootQueue, pool, {.used = std::max<std::int64_t>(0, elsewhere)});
  std::vector<Yield> yields = PlanReclaim(use, pool, shares, jobs, std::span(&request, 1)).yields;
  if (!yields.empty() && !would_help_(request.job, yields)) yields.clear();
  return yields;
}

// Jobs that run take surplus alone, and of other queues.
void YieldPlanner::PlanGrowth(PoolIndex pool, std::span<const WaitingDemand> growth, std::int64_t now) {
  if (growth.empty()) return;
  const std::vector<std::int64_t> shares = FairShares(queues_.tree(), pool, queues_.DemandIn(pool, growth));
  for (const WaitingDemand& request : growth) {
    if (!MayAsk(request, now)) continue;
    std::vector<ReclaimJob> jobs = queues_.JobsIn(pool, now);
    std::erase_if(jobs,
                  [&](const ReclaimJob& job) { return job.queue == request.queue || job.workers <= job.min_workers; });
    for (ReclaimJob& job : jobs) job.comes_back = false;  // None is stopped.
    const Holder& holder = queues_.HolderOf(request.owner);
    const ReclaimRequest asked{request.owner, request.queue, holder.job_class, holder.priority, true, request.milli};
    const ReclaimPlan plan = PlanReclaim(queues_.use(), pool, shares, jobs, std::span(&asked, 1));
    for (const Yield& yield : plan.yields) Tell(yield, now);
    ClaimIfFreed(request, plan.answers.front().outcome, {});
  }
}

void YieldPlanner::PlanDrains(std::int64_t now) {
  const QueueTree& tree = queues_.tree();
  bool drains = false;
  for (QueueIndex queue = 0; queue < tree.size(); ++queue) drains |= tree.At(queue).stop == QueueStop::kDrain;
  for (PoolIndex pool = 0; drains && pool < tree.pool_count(); ++pool) {
    for (const Yield& yield : PlanDrain(tree, queues_.JobsIn(pool, now))) {
      if (const auto told = queues_.yields().find(yield.job); told == queues_.yields().end() || told->second.to > 0) {
        Tell(yield, now);
      }
    }
  }
}

void YieldPlanner::NoteGivers() {
  for (const auto& [owner, notice] : queues_.yields()) {
    const auto answer = answers_.find(notice.for_owner);
    if (answer == answers_.end()) continue;
    answer->second.givers.push_back(owner);
    if (notice.to == 0) answer->second.by = std::max(answer->second.by, notice.by);
  }
}

std::optional<YieldAnswer> YieldPlanner::AnswerTo(const std::string& owner) const {
  const auto answer = answers_.find(owner);
  return answer == answers_.end() ? std::nullopt : std::optional(answer->second);
}

std::vector<std::string> YieldPlanner::Update(std::span<const WaitingDemand> requests, std::int64_t now) {
  changed_ = queues_.TakeTakenBack();
  answers_.clear();
  queues_.tree();  // Counts anew, if needed: that may drop claims.
  const Charges claims = queues_.claims();
  for (const auto& [owner, claim] : claims) queues_.ClaimFor(owner, std::nullopt);
  std::vector<WaitingDemand> all(requests.begin(), requests.end());
  // What yields stays with those for whom it does: given to others, it would have to be asked for once more.
  std::stable_partition(all.begin(), all.end(), [&](const WaitingDemand& r) { return claims.contains(r.owner); });
  std::erase_if(searched_at_, [now](const auto& at) { return now - at.second >= kSearchSeconds || now < at.second; });
  std::erase_if(kept_until_, [now](const auto& kept) { return kept.second <= now; });
  const QueueTree& tree = queues_.tree();
  Growth growth;
  for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) growth[pool] = queues_.GrowthIn(pool, now);
  DropNeedless(all, growth, now);
  WithdrawIfOtherQueues();
  for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) {
    if (!tree.IsShared(pool)) continue;
    PlanStarts(pool, all, now);
    PlanGrowth(pool, growth[pool], now);
  }
  PlanDrains(now);
  NoteGivers();
  withdrawn_.clear();
  std::ranges::sort(changed_);
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  return std::exchange(changed_, {});
}

}  // namespace grus
