// SPDX-License-Identifier: Apache-2.0
// What one decision of the policy of queues costs, in CPU time on one thread: the tree from its specs, use, shares, who
// starts, and who yields. p99 over passes in which, as in a live pool, one job of a hundred has ended and as many have
// come since the one before; and of the pass in which half of all teams, after a pause, take back what they are
// guaranteed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/thread_cpu.h"
#include "controllers/queues/fair_share.h"
#include "controllers/queues/reclaim.h"
#include "controllers/queues/service_order.h"

namespace {

constexpr std::int64_t kChildren = 9;  // Of each queue without parent.
constexpr int kWarmPasses = 20;

struct Job {
  std::string queue;
  int max_workers = 1;
  grus::ReclaimJob job;  // Its queue and workers are those of a pass.
};

struct Decision {
  std::vector<Job> started;
  grus::ReclaimPlan plan;
  int requests = 0, reclaimed = 0;
};

class Pool {
 public:
  // `pausing`: only every second team has jobs.
  Pool(int gpus, int queues, int jobs, unsigned seed, bool pausing) : random_(seed), jobs_(jobs) {
    pools_ = {{"a100", gpus * grus::kOneGpu}};
    const std::int64_t parents = queues / (kChildren + 1);
    const std::int64_t each = gpus * grus::kOneGpu / (parents * kChildren) * 4 / 5;  // A fifth is guaranteed to nobody.
    for (int i = 0; i < parents; ++i) {
      const std::string parent = "department-" + std::to_string(100 + i);
      specs_.push_back({.name = parent, .quotas = {{.pool = "a100", .guaranteed_milli = kChildren * each}}});
      for (int k = 0; k < kChildren; ++k) {
        teams_.push_back(parent + "-team-" + std::to_string(k));
        specs_.push_back({.name = teams_.back(),
                          .parent = parent,
                          .quotas = {{.pool = "a100", .guaranteed_milli = each, .weight = 1 + Draw(4)}}});
      }
    }
    every_team_ = pausing ? 2 : 1;
    AddJobs();
  }

  void EndPause() {
    jobs_ += jobs_;
    every_team_ = 1;
    AddJobs();
  }

  // The plan is carried out, and the pods of jobs that yield are gone at once.
  void Advance(Decision decision) {
    std::map<std::string, int> left;
    for (const grus::Yield& yield : decision.plan.yields) left[yield.job] = yield.to;
    std::vector<Job> running;
    for (Job& job : running_) {
      const auto yields = left.find(job.job.key);
      if (yields != left.end()) job.job.workers = yields->second;
      job.job.attained_gpu_seconds += 60.0 * job.job.workers;
      if (Draw(100) == 0) continue;  // It has ended.
      if (job.job.workers > 0) running.push_back(std::move(job));
      else Wait(std::move(job));
    }
    for (Job& job : decision.started) running.push_back(std::move(job));
    running_ = std::move(running);
    AddJobs();
  }

  Decision Decide() {
    Decision decision;
    const grus::QueueTree tree = grus::QueueTree::Build(specs_, pools_);
    grus::QueueUse use(tree);
    std::vector<grus::QueueDemand> demands(static_cast<std::size_t>(tree.size()));
    std::vector<grus::ReclaimJob> jobs;
    jobs.reserve(running_.size());
    for (Job& job : running_) {
      job.job.queue = tree.Find(job.queue);
      grus::QueueDemand& demand = demands[static_cast<std::size_t>(job.job.queue)];
      demand.used += job.job.workers * job.job.worker_milli;
      demand.wanted += job.max_workers * job.job.worker_milli;
      use.Add(job.job.queue, 0, {job.job.workers * job.job.worker_milli, 0, 0});
      jobs.push_back(job.job);
    }
    grus::ServiceOrder order(use);
    std::vector<std::deque<Job>*> waiting(static_cast<std::size_t>(tree.size()), nullptr);
    const auto needs_of = [](const Job& job) { return job.job.min_workers * job.job.worker_milli; };
    for (auto& [name, of_team] : waiting_) {
      const grus::QueueIndex queue = tree.Find(name);
      waiting[static_cast<std::size_t>(queue)] = &of_team;
      for (const Job& job : of_team) demands[static_cast<std::size_t>(queue)].wanted += needs_of(job);
      if (!of_team.empty()) order.SetFirst(queue, {{0, needs_of(of_team.front())}});
    }
    const std::vector<std::int64_t> shares = grus::FairShares(tree, 0, demands);
    std::vector<std::size_t> tried(waiting.size(), 0);  // By queue: BestEffortFifo tries all of them.
    std::vector<grus::ReclaimRequest> requests;
    for (grus::QueueIndex queue = order.Next(); queue != grus::kNoQueue; queue = order.Next()) {
      std::deque<Job>& of_team = *waiting[static_cast<std::size_t>(queue)];
      std::size_t& at = tried[static_cast<std::size_t>(queue)];
      Job& job = of_team[at];
      if (grus::Admit(use, {queue, {{0, needs_of(job)}}}).is_admitted()) {
        job.job.workers = job.job.min_workers;
        use.Add(queue, 0, {needs_of(job), 0, 0});
        decision.started.push_back(std::move(job));
        of_team.erase(of_team.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        requests.push_back({.job = job.job.key, .queue = queue, .priority = job.job.priority, .milli = needs_of(job)});
        ++at;
      }
      if (at == of_team.size()) order.Remove(queue);
      else order.SetFirst(queue, {{0, needs_of(of_team[at])}});
    }
    decision.plan = grus::PlanReclaim(use, 0, shares, jobs, requests);
    decision.requests = static_cast<int>(requests.size());
    for (const grus::ReclaimAnswer& answer : decision.plan.answers) {
      decision.reclaimed += answer.outcome == grus::ReclaimOutcome::kReclaimed ? 1 : 0;
    }
    return decision;
  }

 private:
  int Draw(int most) { return static_cast<int>(random_() % static_cast<unsigned>(most)); }

  // By priority; of equal ones as they come.
  void Wait(Job job) {
    std::deque<Job>& of_team = waiting_[job.queue];
    const auto after =
        std::ranges::find_if(of_team, [&](const Job& other) { return other.job.priority < job.job.priority; });
    of_team.insert(after, std::move(job));
  }

  void AddJobs() {
    std::size_t now = running_.size();
    for (const auto& [name, of_team] : waiting_) now += of_team.size();
    for (; now < static_cast<std::size_t>(jobs_); ++now) {
      Job job;
      const int team = Draw(static_cast<int>(teams_.size()) / every_team_) * every_team_;
      job.queue = teams_[static_cast<std::size_t>(team)];
      job.job.key = job.queue + "/bert-pretrain-" + std::to_string(10'000 + made_++);
      job.job.priority = Draw(3);
      job.job.min_workers = 1 << Draw(4);
      job.max_workers = job.job.min_workers * (1 + Draw(2));
      Wait(std::move(job));
    }
  }

  std::mt19937 random_;
  int jobs_ = 0, made_ = 0, every_team_ = 1;
  std::vector<grus::PoolSize> pools_;
  std::vector<grus::QueueSpec> specs_;
  std::vector<std::string> teams_;
  std::vector<Job> running_;
  std::map<std::string, std::deque<Job>> waiting_;  // By team.
};

class Passes {
 public:
  explicit Passes(benchmark::State& bench) : bench_(bench) {}

  void Measure(Pool& pool) {
    const double start_s = bench::ThreadCpuSeconds();
    Decision decision = pool.Decide();
    const double took_s = bench::ThreadCpuSeconds() - start_s;
    bench_.SetIterationTime(took_s);
    times_ms_.push_back(took_s * 1e3);
    requests_ += decision.requests;
    reclaimed_ += decision.reclaimed;
    yields_ += static_cast<double>(decision.plan.yields.size());
    pool.Advance(std::move(decision));
  }

  void Report() {
    std::sort(times_ms_.begin(), times_ms_.end());
    const auto passes = static_cast<double>(times_ms_.size());
    bench_.counters["p99_ms"] = times_ms_[times_ms_.size() * 99 / 100];
    bench_.counters["requests"] = requests_ / passes;
    bench_.counters["reclaimed"] = reclaimed_ / passes;
    bench_.counters["yields"] = yields_ / passes;
  }

 private:
  benchmark::State& bench_;
  std::vector<double> times_ms_;
  double requests_ = 0, reclaimed_ = 0, yields_ = 0;
};

Pool PoolOf(const benchmark::State& bench, unsigned seed, bool pausing) {
  const auto range = [&](std::size_t i) { return static_cast<int>(bench.range(i)); };
  Pool pool(range(0), range(1), range(2) / (pausing ? 2 : 1), seed, pausing);
  for (int i = 0; i < kWarmPasses; ++i) pool.Advance(pool.Decide());
  return pool;
}

void DecideOverQueues(benchmark::State& bench) {
  Pool pool = PoolOf(bench, 1, false);
  Passes passes(bench);
  for (auto _ : bench) passes.Measure(pool);
  passes.Report();
}

void HalfOfTeamsReturn(benchmark::State& bench) {
  unsigned seed = 1;
  Passes passes(bench);
  for (auto _ : bench) {
    Pool pool = PoolOf(bench, seed++, true);
    pool.EndPause();
    passes.Measure(pool);
  }
  passes.Report();
}

// GPUs, queues, jobs.
BENCHMARK(DecideOverQueues)
    ->Args({2'048, 40, 600})
    ->Args({16'384, 200, 5'000})
    ->Iterations(500)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(HalfOfTeamsReturn)
    ->Args({16'384, 200, 5'000})
    ->Iterations(100)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
