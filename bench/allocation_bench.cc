// SPDX-License-Identifier: Apache-2.0
// What one decision of the allocation policy costs, in CPU time on one thread: p99 over passes in which, as in a live
// pool, a few jobs have ended, a few have come, and the rest have aged since the one before.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/thread_cpu.h"
#include "controllers/policy/allocation.h"

namespace {

constexpr int kGpusPerNode = 8;
constexpr double kPassSeconds = 60;
constexpr int kWarmPasses = 20;

class Pool {
 public:
  Pool(int gpus, int jobs) : jobs_(jobs) {
    for (int i = 0; i < gpus / kGpusPerNode; ++i) {
      snapshot_.nodes.push_back({"gpu-node-" + std::to_string(10'000 + i), kGpusPerNode});
    }
    for (int i = 0; i < jobs; ++i) AddJob();
  }

  const grus::AllocationSnapshot& snapshot() const { return snapshot_; }

  // Carries the plan out, and lets a minute pass: of a hundred jobs one ends and one comes.
  void Advance(const std::vector<grus::Grant>& plan) {
    for (std::size_t i = 0; i < plan.size(); ++i) {
      grus::PoolJob& job = snapshot_.jobs[i];
      if (plan[i].from > 0 && job.places != plan[i].places) ++job.resizes;
      job.places = plan[i].places;
      job.age_seconds += kPassSeconds;
      job.attained_gpu_seconds += kPassSeconds * plan[i].to * job.gpus_per_worker;
    }
    std::erase_if(snapshot_.jobs, [this](const grus::PoolJob&) { return random_() % 100 == 0; });
    while (static_cast<int>(snapshot_.jobs.size()) < jobs_) AddJob();
  }

 private:
  void AddJob() {
    grus::PoolJob job;
    job.key = "team-" + std::to_string(next_ % 60) + "/bert-pretrain-" + std::to_string(next_);
    ++next_;
    job.max_workers = 1 << random_() % 7;
    if (random_() % 10 == 0) job.min_workers = std::min(job.max_workers, kGpusPerNode);
    const double exponent = 0.5 + static_cast<double>(random_() % 50) / 100;
    for (int gpus = 1; gpus <= 64; gpus *= 2) {
      const double speed = std::pow(gpus, exponent);
      job.curve.push_back({gpus, speed, 0.9 * speed, 1.1 * speed});
    }
    job.age_seconds = static_cast<double>(random_() % 36'000);
    job.attained_gpu_seconds = static_cast<double>(random_() % 360'000);
    job.resize_cost_seconds = 30;
    snapshot_.jobs.push_back(std::move(job));
  }

  grus::AllocationSnapshot snapshot_;
  std::mt19937 random_{1};
  int jobs_ = 0, next_ = 0;
};

void Decide(benchmark::State& state) {
  Pool pool(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (int i = 0; i < kWarmPasses; ++i) pool.Advance(grus::Allocate(pool.snapshot()));
  std::vector<double> times_ms;
  for (auto _ : state) {
    const double start_s = bench::ThreadCpuSeconds();
    const std::vector<grus::Grant> plan = grus::Allocate(pool.snapshot());
    const double took_s = bench::ThreadCpuSeconds() - start_s;
    state.SetIterationTime(took_s);
    times_ms.push_back(took_s * 1e3);
    pool.Advance(plan);
  }
  std::sort(times_ms.begin(), times_ms.end());
  state.counters["p99_ms"] = times_ms[times_ms.size() * 99 / 100];
  int used = 0, changed = 0;
  for (const grus::Grant& grant : grus::Allocate(pool.snapshot())) {
    used += grant.to;
    if (grant.reason != grus::GrantReason::kKept && grant.reason != grus::GrantReason::kWaiting) ++changed;
  }
  state.counters["gpus_used"] = used;
  state.counters["changes"] = changed;
}
BENCHMARK(Decide)
    ->Args({2'048, 600})
    ->Args({16'384, 5'000})
    ->Iterations(1'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
