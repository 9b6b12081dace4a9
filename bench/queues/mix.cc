// SPDX-License-Identifier: Apache-2.0
#include "bench/queues/mix.h"

#include <random>

namespace bench {
namespace {

constexpr int kTeams = 3;
constexpr int kNodeGpus = 8;

// Without the standard library's distributions, which differ between libraries.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  int Below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  double Between(double least, double most) { return least + (most - least) * Below(1000) / 1000; }

 private:
  std::mt19937_64 random_;
};

void SetSizes(MixJob& job, int workers, bool is_elastic) {
  job.workers = workers;
  job.min_workers = is_elastic ? workers / 2 : workers;
  job.max_workers = is_elastic ? workers * 2 : workers;
}

MixJob Training(Draws& draws) {
  MixJob job;
  job.job_class = MixClass::kUnattended;
  SetSizes(job, 4 << draws.Below(3), true);
  job.run_seconds = draws.Between(10, 40);
  return job;
}

MixJob Gang(Draws& draws) {
  MixJob job;
  job.job_class = MixClass::kGang;
  SetSizes(job, 2 + draws.Below(2), false);
  job.gpus = kNodeGpus;
  job.run_seconds = draws.Between(10, 30);
  return job;
}

MixJob OfAnyClass(Draws& draws) {
  const int percent = draws.Below(100);
  if (percent < 10) return Gang(draws);
  if (percent < 40) return Training(draws);
  MixJob job;
  const bool is_inference = percent < 50;
  job.job_class = is_inference ? MixClass::kInference : MixClass::kInteractive;
  SetSizes(job, is_inference ? 2 : 1, false);
  job.run_seconds = is_inference ? draws.Between(30, 60) : draws.Between(5, 20);
  return job;
}

void Number(std::vector<MixJob>& jobs) {
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].name = "job-" + std::to_string(i);
}

}  // namespace

std::vector<Team> TeamsOf(int gpus) { return {{"vision", gpus / 2}, {"speech", gpus / 4}, {"lab", gpus / 4}}; }

std::vector<MixJob> DrawCrowd(int gpus, std::uint64_t seed) {
  Draws draws(seed);
  std::vector<MixJob> jobs;
  for (int wanted = 0; wanted < gpus * 2;) {
    MixJob job = OfAnyClass(draws);
    job.team = draws.Below(4) % kTeams;  // Half of them are of vision, which is guaranteed half of the GPUs.
    job.run_seconds = 0;
    wanted += job.workers * job.gpus;
    jobs.push_back(job);
  }
  Number(jobs);
  return jobs;
}

std::vector<MixJob> DrawBorrowers(int gpus, std::uint64_t seed) {
  Draws draws(seed);
  std::vector<MixJob> jobs;
  for (int wanted = 0; wanted < gpus * 3 / 2;) {
    MixJob job = draws.Below(4) == 0 ? Gang(draws) : Training(draws);
    job.run_seconds = 0;
    wanted += job.workers * job.gpus;
    jobs.push_back(job);
  }
  Number(jobs);
  return jobs;
}

std::vector<MixJob> MakeAsk(const Team& team, int index) {
  std::vector<MixJob> jobs(static_cast<std::size_t>(team.guaranteed / kNodeGpus));
  for (MixJob& job : jobs) {
    job.team = index;
    SetSizes(job, kNodeGpus, false);
  }
  Number(jobs);
  for (MixJob& job : jobs) job.name = team.name + "-" + job.name;
  return jobs;
}

std::vector<MixJob> DrawSmallJobs(int gpus, double seconds, std::uint64_t seed) {
  Draws draws(seed);
  std::vector<MixJob> jobs;
  double work = 0;
  while (work < 1.2 * gpus * seconds) {
    MixJob job;
    job.job_class = MixClass::kGang;
    job.team = draws.Below(4) % kTeams;
    SetSizes(job, 1 + draws.Below(4), false);
    job.run_seconds = draws.Between(8, 16);
    job.submitted_at = work / (1.2 * gpus);
    work += job.Work();
    jobs.push_back(job);
  }
  Number(jobs);
  return jobs;
}

std::vector<MixJob> DrawDay(int gpus, double seconds, std::uint64_t seed) {
  Draws draws(seed);
  std::vector<MixJob> jobs;
  for (double work = 0; work < gpus * seconds;) {
    MixJob job = OfAnyClass(draws);
    job.team = draws.Below(4) % kTeams;
    job.submitted_at = draws.Between(0, seconds);
    work += job.Work();
    jobs.push_back(job);
  }
  Number(jobs);
  return jobs;
}

}  // namespace bench
