// SPDX-License-Identifier: Apache-2.0
// What holds for every reclaim: random trees, jobs and requests, from seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "controllers/queues/reclaim.h"
#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

constexpr unsigned kSeeds = 4'000;

struct World {
  std::shared_ptr<const QueueTree> shared_tree;  // Use() of a copy refers to it.
  std::vector<ReclaimJob> jobs;
  std::map<std::string, int> yielding;  // By job: workers that yield already.
  std::vector<ReclaimRequest> requests;
  std::vector<std::int64_t> shares;

  const QueueTree& tree() const { return *shared_tree; }
  QueueUse Use() const {
    QueueUse use(tree());
    for (const ReclaimJob& job : jobs) {
      const auto gone = yielding.find(job.key);
      const std::int64_t leaving = gone == yielding.end() ? 0 : gone->second * job.worker_milli;
      const bool is_fixed = !IsPreemptible(job.job_class, job.comes_back);
      use.Add(job.queue, 0,
              {job.workers * job.worker_milli + leaving, is_fixed ? job.min_workers * job.worker_milli : 0, leaving});
    }
    return use;
  }
  ReclaimPlan Plan() const { return PlanReclaim(Use(), 0, shares, jobs, requests); }
  const ReclaimJob& JobOf(const Yield& yield) const {
    return *std::ranges::find_if(jobs, [&](const ReclaimJob& job) { return job.key == yield.job; });
  }
  // Once the yields are carried out, and their pods are gone.
  World After(const std::vector<Yield>& yields) const {
    World after = *this;
    after.yielding.clear();
    for (const Yield& yield : yields) {
      const auto job = std::ranges::find_if(after.jobs, [&](const ReclaimJob& j) { return j.key == yield.job; });
      job->workers = yield.to;
    }
    std::erase_if(after.jobs, [](const ReclaimJob& job) { return job.workers == 0; });
    return after;
  }
};

ReclaimJob RandomJob(Draws& draws, QueueIndex queue, int number) {
  ReclaimJob job;
  job.key = "job-" + std::to_string(number);
  job.queue = queue;
  job.job_class = static_cast<JobClass>(draws.OneIn(2) ? 2 : draws.Between(0, 3));
  job.priority = static_cast<int>(draws.Between(0, 2));
  job.comes_back = !draws.OneIn(12);
  job.min_workers = static_cast<int>(draws.Between(1, 4));
  job.workers = job.min_workers + static_cast<int>(draws.OneIn(2) ? 0 : draws.Between(0, 6));
  job.worker_milli = draws.OneIn(3) ? draws.Between(1, 3 * kOneGpu) : kOneGpu;
  job.attained_gpu_seconds = static_cast<double>(draws.Between(0, 5));
  job.running_seconds = draws.Between(0, 100);
  return job;
}

// Jobs fill most of the pool as they come, borrowing what is idle. Then requests come.
World RandomWorld(unsigned seed, int most_requests, int most_queues = 10) {
  Draws draws(seed);
  World world{std::make_shared<const QueueTree>(RandomTree(draws, most_queues)), {}, {}, {}, {}};
  std::vector<QueueIndex> leaves;
  for (QueueIndex queue = kRootQueue + 1; queue < world.tree().size(); ++queue) {
    if (world.tree().IsLeaf(queue)) leaves.push_back(queue);
  }
  const auto draw_leaf = [&] {
    return leaves[static_cast<std::size_t>(draws.Between(0, static_cast<std::int64_t>(leaves.size()) - 1))];
  };
  const QueueIndex greedy = draw_leaf();
  for (int i = 0; i < 24; ++i) {
    const ReclaimJob job = RandomJob(draws, draws.OneIn(2) ? greedy : draw_leaf(), i);
    const bool is_preemptible = IsPreemptible(job.job_class, job.comes_back);
    if (!Admit(world.Use(), {job.queue, {{0, job.workers * job.worker_milli}}, is_preemptible}).is_admitted()) continue;
    world.jobs.push_back(job);
    if (job.workers > job.min_workers && draws.OneIn(5)) {
      world.yielding[job.key] = 1;
      --world.jobs.back().workers;
    }
  }
  std::vector<QueueDemand> demands(static_cast<std::size_t>(world.tree().size()));
  for (const ReclaimJob& job : world.jobs) {
    QueueDemand& demand = demands[static_cast<std::size_t>(job.queue)];
    demand.used += job.workers * job.worker_milli;
    demand.wanted += job.workers * job.worker_milli;
  }
  for (std::int64_t i = 0, count = draws.Between(1, most_requests); i < count; ++i) {
    ReclaimRequest request;
    request.job = "new-" + std::to_string(i);
    request.queue = draw_leaf();
    request.job_class = static_cast<JobClass>(draws.OneIn(2) ? 2 : draws.Between(0, 3));
    request.priority = static_cast<int>(draws.Between(0, 2));
    request.is_preemptible = IsPreemptible(request.job_class, true);
    request.milli = draws.OneIn(3) ? draws.Between(1, 9 * kOneGpu) : kOneGpu * draws.Between(1, 8);
    demands[static_cast<std::size_t>(request.queue)].wanted += request.milli;
    world.requests.push_back(std::move(request));
  }
  world.shares = FairShares(world.tree(), 0, demands);
  return world;
}

bool IsReclaimed(const ReclaimAnswer& answer) { return answer.outcome == ReclaimOutcome::kReclaimed; }

TEST(PlanReclaimProperty, TakesOnlyWhatMayYield) {
  int yields = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const World world = RandomWorld(seed, 4);
    const ReclaimPlan plan = world.Plan();
    const bool any = std::ranges::any_of(plan.answers, IsReclaimed);
    ASSERT_EQ(any, !plan.yields.empty()) << "seed " << seed << ": a yield for nothing, or GPUs from nowhere";
    for (const Yield& yield : plan.yields) {
      const ReclaimJob& job = world.JobOf(yield);
      ++yields;
      ASSERT_EQ(yield.from, job.workers);
      ASSERT_LT(yield.to, yield.from);
      ASSERT_TRUE(yield.to >= job.min_workers || yield.to == 0) << "seed " << seed << " " << job.key;
      const bool is_stopped = yield.to == 0;
      ASSERT_TRUE(!is_stopped || IsPreemptible(job.job_class, job.comes_back)) << "seed " << seed << " " << job.key;
    }
  }
  EXPECT_GT(yields, 500);
}

TEST(PlanReclaimProperty, LetsTheRequestsStartAndNothingElseIsNeeded) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const World world = RandomWorld(seed, 4);
    const ReclaimPlan plan = world.Plan();
    QueueUse use = world.After(plan.yields).Use();
    for (std::size_t i = 0; i < plan.answers.size(); ++i) {
      const ReclaimOutcome outcome = plan.answers[i].outcome;
      if (outcome != ReclaimOutcome::kFree && outcome != ReclaimOutcome::kReclaimed) continue;
      const ReclaimRequest& request = world.requests[i];
      const Admission admission = Admit(use, {request.queue, {{0, request.milli}}, request.is_preemptible});
      ASSERT_TRUE(admission.is_admitted()) << "seed " << seed << ": " << Explain(world.tree(), admission);
      use.Add(request.queue, 0, {request.milli, request.is_preemptible ? 0 : request.milli, 0});
    }
  }
}

// But for the last gang or worker, which may be partly guaranteed, and only for a guarantee.
TEST(PlanReclaimProperty, NoQueueFallsBelowItsGuaranteeForAnother) {
  int checked = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const World world = RandomWorld(seed, 1);
    const ReclaimPlan plan = world.Plan();
    const QueueUse after = world.After(plan.yields).Use();
    std::map<QueueIndex, std::int64_t> largest;  // That yielded as one: by leaf.
    for (const Yield& yield : plan.yields) {
      if (yield.reason == YieldReason::kOwnQueue) continue;
      const ReclaimJob& job = world.JobOf(yield);
      const int unit = yield.to == 0 ? yield.from : 1;
      std::int64_t& most = largest[job.queue];
      if (yield.reason == YieldReason::kGuaranteeOfOther) most = std::max(most, unit * job.worker_milli);
    }
    for (const auto& [leaf, unit] : largest) {
      ++checked;
      const std::int64_t above = after.used(leaf, 0) - world.tree().QuotaOf(leaf, 0).guaranteed;
      ASSERT_TRUE(unit == 0 ? above >= 0 : above > -unit) << "seed " << seed << " " << world.tree().NameOf(leaf);
    }
  }
  EXPECT_GT(checked, 200);
}

// In trees of one level, where no right depends on what siblings yield.
TEST(PlanReclaimProperty, NoJobYieldsNeedlessly) {
  int yields = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const World world = RandomWorld(seed, 1, 3);
    const ReclaimPlan plan = world.Plan();
    const bool is_flat =
        std::ranges::all_of(world.jobs, [&](const ReclaimJob& job) { return world.tree().At(job.queue).level == 1; });
    for (std::size_t i = 0; i < plan.yields.size() && is_flat; ++i) {
      ++yields;
      std::vector<Yield> fewer = plan.yields;
      // The whole job stays, or one worker.
      fewer[i].to = fewer[i].to == 0 ? fewer[i].from : fewer[i].to + 1;
      const ReclaimRequest& request = world.requests[0];
      ASSERT_FALSE(
          Admit(world.After(fewer).Use(), {request.queue, {{0, request.milli}}, request.is_preemptible}).is_admitted())
          << "seed " << seed << ": " << fewer[i].job;
    }
  }
  EXPECT_GT(yields, 100);
}

// The request starts as a job; the jobs that yielded for it ask for their GPUs again.
TEST(PlanReclaimProperty, WhatYieldedCannotTakeItBack) {
  int asked = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const World world = RandomWorld(seed, 1);
    const ReclaimPlan plan = world.Plan();
    const ReclaimRequest& request = world.requests[0];
    for (const Yield& yield : plan.yields) {
      if (yield.reason == YieldReason::kOwnQueue) continue;
      World after = world.After(plan.yields);
      after.jobs.push_back({.key = request.job, .queue = request.queue, .workers = 1, .worker_milli = request.milli});
      const ReclaimJob& job = world.JobOf(yield);
      const int back = yield.to == 0 ? yield.from : 1;
      after.requests = {{"back", job.queue, job.job_class, 99, true, back * job.worker_milli}};
      ++asked;
      for (const Yield& again : after.Plan().yields) {
        ASSERT_NE(again.job, request.job) << "seed " << seed << ": in turn with " << yield.job;
      }
    }
  }
  EXPECT_GT(asked, 200);
}

TEST(PlanReclaimProperty, ASecondPassAsksNobodyElse) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    World world = RandomWorld(seed, 3);
    const ReclaimPlan plan = world.Plan();
    // Pods are on their way out; the requests that could be met wait for them.
    for (const Yield& yield : plan.yields) {
      const auto job = std::ranges::find_if(world.jobs, [&](const ReclaimJob& j) { return j.key == yield.job; });
      world.yielding[job->key] += yield.from - yield.to;
      job->workers = yield.to;
    }
    std::vector<ReclaimRequest> met;
    for (std::size_t i = 0; i < plan.answers.size(); ++i) {
      const ReclaimOutcome outcome = plan.answers[i].outcome;
      if (outcome == ReclaimOutcome::kFree || outcome == ReclaimOutcome::kReclaimed) met.push_back(world.requests[i]);
    }
    world.requests = met;

    const ReclaimPlan second = world.Plan();

    ASSERT_TRUE(second.yields.empty()) << "seed " << seed;
    for (const ReclaimAnswer& answer : second.answers)
      ASSERT_EQ(answer.outcome, ReclaimOutcome::kFree) << "seed " << seed;
  }
}

}  // namespace
}  // namespace grus
