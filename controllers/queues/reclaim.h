// SPDX-License-Identifier: Apache-2.0
// Which jobs yield GPUs of one pool to requests that cannot start otherwise.
//
// A request may take from other queues as much as keeps its own queue within its guarantee, or, where no guarantee
// holds it, within its fair share; Queue::reclaim says from which jobs. A queue yields only what it has above its
// guarantee, and to a fair share only what it has above its own. In the tree that holds for each pair of queues right
// below their lowest common ancestor: children of one parent share the parent's part among themselves, and are asked
// before queues further away. What is asked for, until it is enough:
//  1. Surplus: workers of elastic jobs above their minimum. Of the queue most above its share first, from as few
//     jobs as possible.
//  2. Whole preemptible jobs: of lower class, then of lower priority first; of equal ones as few as possible, then
//     those with the least attained service. For a fair share only while the queue of the request has less than
//     half of it: what stops jobs should change much. Source: Hadoop's Fair Scheduler,
//     fairSharePreemptionThreshold.
//  3. Instead of all that, if it is not enough: jobs of the request's own queue. Surplus of jobs that do not come
//     before it, then whole jobs of lower class, or of the same and lower priority.
// Only where nothing else is enough for a guarantee, a worker or a gang yields that is partly within the guarantee of
// its queue: half a gang is no use. A job that has not had the minimum runtime of its queue does not yield, nor does
// any of a queue that is left out.
//
// If all that may yield is not enough, nobody yields. GPUs that yield already count as free, so that nobody yields for
// them a second time. What yielded cannot take its GPUs back from the one that has them now.
//
// The caller starts a request that has got GPUs before all others, at its `milli`: those are counted on.
//
// Pure: the same input gives the same plan, in whatever order the jobs come. All amounts are thousandths of a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/queues/queue_admission.h"
#include "controllers/queues/queue_use.h"

namespace grus {

// A job that has GPUs of the pool.
struct ReclaimJob {
  std::string key;  // Unique.
  QueueIndex queue = kNoQueue;
  JobClass job_class = JobClass::kUnattended;
  int priority = 0;
  bool comes_back = true;  // Its pods are made again once they are deleted.
  int workers = 0;         // Without those that yield already.
  int min_workers = 1;
  std::int64_t worker_milli = kOneGpu;  // Of each worker; more than 0.
  double attained_gpu_seconds = 0;
  std::int64_t running_seconds = 0;  // Since it started, or started again.
};

struct ReclaimRequest {
  std::string job;  // Its key.
  QueueIndex queue = kNoQueue;
  JobClass job_class = JobClass::kUnattended;
  int priority = 0;
  bool is_preemptible = true;
  std::int64_t milli = 0;  // More than 0.
};

enum class YieldReason {
  kGuaranteeOfOther,  // The other queue is below its guarantee.
  kShareOfOther,      // The other queue is below its fair share.
  kOwnQueue,          // A job of the same queue that comes before it.
  kDrained,           // By spec.stop of its queue.
  kWorthMore,         // To a job of the same queue, whose work gains more.
};
std::string_view ToString(YieldReason reason);

struct Yield {
  std::string job;
  int from = 0, to = 0;  // Workers. 0: it comes back later.
  YieldReason reason = YieldReason::kGuaranteeOfOther;
  std::string for_job;  // The first, where several requests take from this job; empty: kDrained.
  friend bool operator==(const Yield&, const Yield&) = default;
};

enum class ReclaimOutcome {
  kFree,         // What is idle or yields already is enough.
  kReclaimed,    // Jobs yield for it.
  kRefused,      // `refusal` says why: no yield of others can help.
  kNotEntitled,  // Its queue would use more than its guarantee and its share, or takes nothing from others.
  kNotEnough,    // Too little may yield.
};

struct ReclaimAnswer {
  ReclaimOutcome outcome = ReclaimOutcome::kFree;
  std::int64_t lacking = 0;  // kNotEntitled: beside what is free; kNotEnough: also beside all that may yield.
  Admission refusal = {};    // kRefused.
};

struct ReclaimPlan {
  std::vector<Yield> yields;           // By job.
  std::vector<ReclaimAnswer> answers;  // One for each request.
};

// `shares`: by FairShares(), from the same state. Requests come in the order of service; what one gets, later ones
// cannot count on. O(jobs log jobs), and O(queues + jobs that may yield) for each request that its queue is entitled
// to. REQUIRES: `use` has what the jobs use.
ReclaimPlan PlanReclaim(const QueueUse& use, PoolIndex pool, std::span<const std::int64_t> shares,
                        std::span<const ReclaimJob> jobs, std::span<const ReclaimRequest> requests);

// All jobs of queues that drain, by key, but for those that would not come back.
std::vector<Yield> PlanDrain(const QueueTree& tree, std::span<const ReclaimJob> jobs);

}  // namespace grus
