// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/reclaim.h"

#include <algorithm>
#include <utility>

#include "controllers/queues/reclaim_search.h"

namespace grus {
namespace {

YieldReason ReasonOf(const ReclaimSearch::Pick& pick) {
  if (pick.level == 0) return YieldReason::kOwnQueue;
  return pick.is_for_guarantee ? YieldReason::kGuaranteeOfOther : YieldReason::kShareOfOther;
}

void SortByJob(std::vector<Yield>& yields) { std::ranges::sort(yields, {}, &Yield::job); }

}  // namespace

std::string_view ToString(YieldReason reason) {
  switch (reason) {
    case YieldReason::kGuaranteeOfOther: return "GuaranteeOfOther";
    case YieldReason::kShareOfOther: return "ShareOfOther";
    case YieldReason::kOwnQueue: return "OwnQueue";
    case YieldReason::kDrained: return "Drained";
    case YieldReason::kWorthMore: return "WorthMore";
  }
  return "";
}

ReclaimPlan PlanReclaim(const QueueUse& use, PoolIndex pool, std::span<const std::int64_t> shares,
                        std::span<const ReclaimJob> jobs, std::span<const ReclaimRequest> requests) {
  ReclaimPlan plan;
  ReclaimSearch search(use, pool, shares, jobs);
  std::vector<int> yield_of(jobs.size(), -1);  // By job: index in plan.yields.
  std::vector<ReclaimSearch::Pick> picks;
  for (const ReclaimRequest& request : requests) {
    picks.clear();
    plan.answers.push_back(search.Find(request, picks));
    for (const ReclaimSearch::Pick& pick : picks) {
      const ReclaimJob& job = jobs[pick.job];
      int& index = yield_of[pick.job];
      if (index < 0) {
        index = static_cast<int>(plan.yields.size());
        plan.yields.push_back({job.key, job.workers, job.workers, ReasonOf(pick), request.job});
      }
      plan.yields[static_cast<std::size_t>(index)].to -= pick.workers;
    }
  }
  SortByJob(plan.yields);
  return plan;
}

std::vector<Yield> PlanDrain(const QueueTree& tree, std::span<const ReclaimJob> jobs) {
  std::vector<Yield> yields;
  for (const ReclaimJob& job : jobs) {
    if (tree.At(job.queue).stop != QueueStop::kDrain || !job.comes_back || job.workers == 0) continue;
    yields.push_back({job.key, job.workers, 0, YieldReason::kDrained, {}});
  }
  SortByJob(yields);
  return yields;
}

}  // namespace grus
