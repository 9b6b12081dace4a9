// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/reclaim_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace grus {
namespace {

std::int64_t RoundedUp(std::int64_t milli, std::int64_t unit) { return (milli + unit - 1) / unit; }

}  // namespace

ReclaimSearch::ReclaimSearch(const QueueUse& use, PoolIndex pool, std::span<const std::int64_t> shares,
                             std::span<const ReclaimJob> jobs)
    : tree_(use.tree()),
      pool_(pool),
      jobs_(jobs),
      use_(use.AfterYields()),
      rights_(use_, pool, shares),
      of_queue_(static_cast<std::size_t>(tree_.size())),
      pick_of_(jobs.size(), -1) {
  workers_.reserve(jobs.size());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const ReclaimJob& job = jobs[index];
    workers_.push_back(job.workers);
    const Queue& queue = tree_.At(job.queue);
    if (queue.is_left_out || job.running_seconds < queue.minimum_runtime_seconds) continue;
    OfQueue& of = OfQueueAt(job.queue);
    if (job.workers > job.min_workers) of.elastic.push_back(index);
    if (IsPreemptible(job.job_class, job.comes_back)) of.preemptible.push_back(index);
  }
  for (OfQueue& of : of_queue_) {
    of.with_surplus = static_cast<int>(of.elastic.size());
    std::ranges::sort(of.preemptible, {}, [this](std::size_t job) { return TierOf(job); });
  }
}

ReclaimAnswer ReclaimSearch::Find(const ReclaimRequest& request, std::vector<Pick>& picks) {
  ReclaimAnswer answer;
  answer.refusal = Admit(use_, {request.queue, {{pool_, request.milli}}, request.is_preemptible});
  const AdmissionReason reason = answer.refusal.reason;
  const bool is_free = answer.refusal.is_admitted();
  const bool can_help = (reason == AdmissionReason::kLimit && request.milli <= answer.refusal.bound) ||
                        reason == AdmissionReason::kNothingIdle || reason == AdmissionReason::kWithheld;
  answer.outcome = is_free ? ReclaimOutcome::kFree : ReclaimOutcome::kRefused;
  if (!is_free) {
    if (!can_help) return answer;
    Begin(request);
    answer.outcome = IsEntitledAnywhere() ? ReclaimOutcome::kNotEnough : ReclaimOutcome::kNotEntitled;
    answer.lacking = rights_.LackingAt(0);
    for (const auto take : {&ReclaimSearch::TakeFromOthers, &ReclaimSearch::TakeFromOwn}) {
      (this->*take)();
      answer.lacking = std::min(answer.lacking, rights_.LackingAt(0));
      if (answer.lacking == 0) break;
      GiveBackAll();
    }
    if (answer.lacking > 0) return answer;
    answer.outcome = ReclaimOutcome::kReclaimed;
    GiveBackNeedless();
    for (const Pick& pick : picks_) {
      if (pick.workers == 0) continue;
      picks.push_back(pick);
      picks.back().is_for_guarantee = rights_.IsWithinGuarantee(pick.level);
    }
  }
  use_.Add(request.queue, pool_, {request.milli, request.is_preemptible ? 0 : request.milli, 0});
  return answer;
}

void ReclaimSearch::Begin(const ReclaimRequest& request) {
  ForgetPicks();
  request_ = &request;
  rights_.Begin(request.queue, request.milli);
  const auto levels = static_cast<std::size_t>(rights_.top_level()) + 1;
  counts_.assign(levels, {});
  victims_.resize(levels);
  for (std::vector<QueueIndex>& victims : victims_) victims.clear();
  victims_[0].push_back(request.queue);
  if (!IsEntitledAnywhere()) return;
  for (QueueIndex queue = kRootQueue + 1; queue < tree_.size(); ++queue) {
    const OfQueue& of = OfQueueAt(queue);
    if (queue == request.queue || (of.with_surplus == 0 && of.preemptible.empty())) continue;
    const int level = rights_.LevelOf(queue);
    if (rights_.AboveGuarantee(queue, level) > 0) victims_[static_cast<std::size_t>(level)].push_back(queue);
  }
}

bool ReclaimSearch::IsEntitledAnywhere() const {
  for (int level = 1; level <= rights_.top_level(); ++level) {
    if (IsEntitled(level, Pass{})) return true;
  }
  return false;
}

bool ReclaimSearch::IsEntitled(int level, const Pass& pass) const {
  if (level == 0) return true;  // To what its own queue has.
  if (tree_.At(request_->queue).reclaim == ReclaimPolicy::kNever) return false;
  if (rights_.IsWithinGuarantee(level)) return true;
  return !pass.is_for_guarantee && rights_.IsWithinShare(level) && (!pass.is_whole || rights_.HasLessThanHalf());
}

bool ReclaimSearch::ArePicksEntitled() const {
  for (std::size_t level = 1; level < counts_.size(); ++level) {
    const auto& [for_guarantee, for_share] = counts_[level];
    if (for_guarantee + for_share > 0 && !IsEntitled(static_cast<int>(level), {.is_for_guarantee = for_guarantee > 0}))
      return false;
  }
  return true;
}

std::pair<int, int> ReclaimSearch::TierOf(std::size_t job) const {
  return {-static_cast<int>(jobs_[job].job_class), jobs_[job].priority};
}

bool ReclaimSearch::MayYield(std::size_t index, const Pass& pass, int level) const {
  const ReclaimJob& job = jobs_[index];
  if (workers_[index] <= (pass.is_whole ? 0 : job.min_workers) || job.key == request_->job) return false;
  if (level > 0) {
    const bool by_priority = tree_.At(request_->queue).reclaim == ReclaimPolicy::kLowerPriority;
    return !by_priority || job.priority < request_->priority;
  }
  // Of its own queue: surplus of jobs that do not come before it, whole jobs that come after it.
  const std::pair tier(-static_cast<int>(request_->job_class), request_->priority);
  return pass.is_whole ? TierOf(index) < tier : TierOf(index) <= tier;
}

std::int64_t ReclaimSearch::AboveIn(QueueIndex queue, int level, const Pass& pass) const {
  return pass.is_for_guarantee ? rights_.AboveGuarantee(queue, level) : rights_.AboveShare(queue, level);
}

int ReclaimSearch::WorkersToTake(std::size_t index, const Pass& pass, int level) const {
  const ReclaimJob& job = jobs_[index];
  const std::int64_t above_guarantee = rights_.AboveGuarantee(job.queue, level);
  const std::int64_t above = AboveIn(job.queue, level, pass);
  const std::int64_t lacking = rights_.LackingAt(level);
  if (lacking <= 0 || above <= 0) return 0;
  std::int64_t most = above / job.worker_milli;
  if (pass.may_straddle) most = pass.is_whole ? workers_[index] : RoundedUp(above, job.worker_milli);
  // Whatever a fair share asks of a queue, it keeps its guarantee.
  if (!pass.is_for_guarantee) most = std::min(most, above_guarantee / job.worker_milli);
  if (pass.is_whole) return workers_[index] <= most ? workers_[index] : 0;
  most = std::min(most, RoundedUp(lacking, job.worker_milli));
  return static_cast<int>(std::min<std::int64_t>(most, workers_[index] - job.min_workers));
}

bool ReclaimSearch::YieldsBefore(std::size_t a, std::size_t b) const {
  const auto rank = [this](std::size_t index) {
    const ReclaimJob& job = jobs_[index];
    const bool is_asked = pick_of_[index] >= 0;  // It costs no further job.
    return std::tuple(!is_asked, -static_cast<int>(job.job_class), job.priority, job.attained_gpu_seconds,
                      job.running_seconds, std::string_view(job.key));
  };
  return rank(a) < rank(b);
}

void ReclaimSearch::TakeFromOthers() {
  static constexpr Pass kPasses[] = {
      {.is_whole = false, .is_for_guarantee = false, .may_straddle = false},
      {.is_whole = false, .is_for_guarantee = true, .may_straddle = false},
      {.is_whole = false, .is_for_guarantee = false, .may_straddle = true},
      {.is_whole = false, .is_for_guarantee = true, .may_straddle = true},
      {.is_whole = true, .is_for_guarantee = false, .may_straddle = false},
      {.is_whole = true, .is_for_guarantee = true, .may_straddle = false},
      {.is_whole = true, .is_for_guarantee = false, .may_straddle = true},
      {.is_whole = true, .is_for_guarantee = true, .may_straddle = true},
  };
  for (const Pass& pass : kPasses) {
    for (int level = 1; level <= rights_.top_level(); ++level) TakeAt(level, pass);
  }
}

void ReclaimSearch::TakeFromOwn() {
  for (const bool is_whole : {false, true}) {
    TakeAt(0, {.is_whole = is_whole, .is_for_guarantee = true, .may_straddle = true});
  }
}

void ReclaimSearch::TakeAt(int level, const Pass& pass) {
  if (rights_.LackingAt(level) == 0 || !IsEntitled(level, pass)) return;
  if (pass.is_whole) TakeWholeAt(level, pass);
  else TakeSurplusAt(level, pass);
}

void ReclaimSearch::TakeSurplusAt(int level, const Pass& pass) {
  // Queues whose jobs yield anyway, then those most above their share.
  std::vector<std::tuple<bool, std::int64_t, QueueIndex>> order;
  for (const QueueIndex queue : victims_[static_cast<std::size_t>(level)]) {
    const OfQueue& of = OfQueueAt(queue);
    if (of.with_surplus > 0) order.emplace_back(!of.is_asked, -rights_.AboveShare(queue, level), queue);
  }
  std::ranges::sort(order);
  std::vector<Candidate> candidates;
  for (const auto& [is_new, above_share, at] : order) {
    const QueueIndex queue = at;
    const auto target = [&] { return std::min(rights_.LackingAt(level), AboveIn(queue, level, pass)); };
    if (target() <= 0) continue;
    candidates.clear();
    for (const std::size_t job : OfQueueAt(queue).elastic) {
      if (!MayYield(job, pass, level)) continue;
      candidates.push_back({job, (workers_[job] - jobs_[job].min_workers) * jobs_[job].worker_milli});
    }
    TakeFrom(candidates, pass, level, target);
  }
}

void ReclaimSearch::TakeWholeAt(int level, const Pass& pass) {
  struct Cursor {
    const std::vector<std::size_t>* jobs;  // By tier.
    std::size_t next = 0;
  };
  std::vector<Cursor> cursors;
  for (const QueueIndex queue : victims_[static_cast<std::size_t>(level)]) {
    const std::vector<std::size_t>& jobs = OfQueueAt(queue).preemptible;
    if (!jobs.empty() && AboveIn(queue, level, pass) > 0) cursors.push_back({&jobs});
  }
  const auto target = [&] { return rights_.LackingAt(level); };
  std::vector<Candidate> candidates;
  while (!cursors.empty() && target() > 0) {
    const auto tier_at = [this](const Cursor& cursor) { return TierOf((*cursor.jobs)[cursor.next]); };
    const auto tier = tier_at(*std::ranges::min_element(cursors, {}, tier_at));
    candidates.clear();
    for (Cursor& cursor : cursors) {
      for (; cursor.next < cursor.jobs->size() && tier_at(cursor) == tier; ++cursor.next) {
        const std::size_t job = (*cursor.jobs)[cursor.next];
        if (MayYield(job, pass, level)) candidates.push_back({job, workers_[job] * jobs_[job].worker_milli});
      }
    }
    std::erase_if(cursors, [](const Cursor& cursor) { return cursor.next == cursor.jobs->size(); });
    TakeFrom(candidates, pass, level, target);
  }
}

// Of those with at least so much, the one that loses least; `candidates.size()` if there is none.
std::size_t ReclaimSearch::BestWith(std::int64_t milli, std::span<const Candidate> candidates, const Pass& pass,
                                    int level) const {
  std::size_t best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::size_t job = candidates[i].job;
    if (candidates[i].milli < milli || (best < candidates.size() && !YieldsBefore(job, candidates[best].job))) continue;
    if (WorkersToTake(job, pass, level) > 0) best = i;
  }
  return best;
}

template <typename Target>
void ReclaimSearch::TakeFrom(std::span<Candidate> candidates, const Pass& pass, int level, const Target& target) {
  const auto take = [&](std::size_t job) { Take(job, WorkersToTake(job, pass, level), pass, level); };
  const std::size_t enough = BestWith(target(), candidates, pass, level);
  if (enough < candidates.size()) take(candidates[enough].job);
  if (target() <= 0) return;

  std::ranges::sort(candidates, [&](const Candidate& a, const Candidate& b) {
    return a.milli != b.milli ? a.milli > b.milli : YieldsBefore(a.job, b.job);
  });
  while (!candidates.empty()) {
    const std::int64_t wanted = target();
    if (wanted <= 0) return;
    const auto less = std::ranges::find_if(candidates, [&](const Candidate& c) { return c.milli < wanted; });
    const auto count = static_cast<std::size_t>(less - candidates.begin());
    if (count == 0) {
      take(candidates.front().job);
      candidates = candidates.subspan(1);
      continue;
    }
    const std::size_t best = BestWith(wanted, candidates.first(count), pass, level);
    if (best == count) {
      candidates = candidates.subspan(count);  // None of these can be taken.
      continue;
    }
    take(candidates[best].job);
    std::swap(candidates[best], candidates.front());
    candidates = candidates.subspan(1);
  }
}

void ReclaimSearch::Take(std::size_t job, int workers, const Pass& pass, int level) {
  if (workers == 0) return;
  int& index = pick_of_[job];
  if (index < 0) {
    index = static_cast<int>(picks_.size());
    picks_.push_back({.job = job, .level = level});
    OfQueueAt(jobs_[job].queue).is_asked = true;
    ++CountsOf(picks_.back()).for_share;
  }
  Pick& pick = picks_[static_cast<std::size_t>(index)];
  pick.is_whole = pass.is_whole;
  if (pass.is_for_guarantee && !pick.is_for_guarantee) {
    pick.is_for_guarantee = true;
    --CountsOf(pick).for_share;
    ++CountsOf(pick).for_guarantee;
  }
  Move(pick, workers);
}

// So many workers more yield, or fewer where negative.
void ReclaimSearch::Move(Pick& pick, int workers) {
  const ReclaimJob& job = jobs_[pick.job];
  const bool had_surplus = workers_[pick.job] > job.min_workers;
  pick.workers += workers;
  workers_[pick.job] -= workers;
  use_.Add(job.queue, pool_, {-workers * job.worker_milli, 0, 0});
  const bool has_surplus = workers_[pick.job] > job.min_workers;
  OfQueueAt(job.queue).with_surplus += (has_surplus ? 1 : 0) - (had_surplus ? 1 : 0);
}

bool ReclaimSearch::TryGiveBack(Pick& pick, int workers) {
  if (workers == 0) return false;
  Move(pick, -workers);
  int& count = pick.is_for_guarantee ? CountsOf(pick).for_guarantee : CountsOf(pick).for_share;
  const int gone = pick.workers == 0 ? 1 : 0;
  count -= gone;
  if (rights_.IsMet() && ArePicksEntitled()) return true;
  count += gone;
  Move(pick, workers);
  return false;
}

// What was taken early may not be needed any more once a larger job yields. Of whole jobs the last ones, which are
// worth most, stay first.
void ReclaimSearch::GiveBackNeedless() {
  for (auto pick = picks_.rbegin(); pick != picks_.rend(); ++pick) {
    if (pick->is_whole) TryGiveBack(*pick, pick->workers);
  }
  for (auto pick = picks_.rbegin(); pick != picks_.rend(); ++pick) {
    if (pick->is_whole || TryGiveBack(*pick, pick->workers)) continue;
    const std::int64_t spare = rights_.SpareAt(pick->level) / jobs_[pick->job].worker_milli;
    TryGiveBack(*pick, static_cast<int>(std::min<std::int64_t>(spare, pick->workers)));
  }
}

void ReclaimSearch::GiveBackAll() {
  for (Pick& pick : picks_) Move(pick, -pick.workers);
  ForgetPicks();
}

void ReclaimSearch::ForgetPicks() {
  for (const Pick& pick : picks_) {
    pick_of_[pick.job] = -1;
    OfQueueAt(jobs_[pick.job].queue).is_asked = false;
  }
  picks_.clear();
  std::ranges::fill(counts_, Counts{});
}

}  // namespace grus
