// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_replay.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "bench/sim/csv_rows.h"

namespace grus {
namespace {

constexpr double kGiveUpSeconds = 365.0 * 24 * 3600;
constexpr double kLatestArrivalSeconds = 100.0 * 24 * 3600;

// The smallest value that `share` of all values do not exceed, as in the published figures. REQUIRES: there are some.
double PercentileOf(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(rank) - 1];
}

[[maybe_unused]] bool FitsCluster(const std::vector<GpuNodes>& places) {
  std::vector<int> used(kReplayNodes);
  for (const GpuNodes& nodes : places) {
    for (const int node : nodes) {
      if (++used.at(static_cast<std::size_t>(node)) > kReplayGpusPerNode) return false;
    }
  }
  return true;
}

std::string NamesOf(const Applications& applications) {
  std::string names;
  for (const auto& [name, application] : applications) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

kube::Result<Applications> LoadApplications(const std::filesystem::path& traces) {
  Applications applications;
  std::error_code ignored;
  if (!std::filesystem::is_directory(traces, ignored)) {
    return kube::Error(
        kube::ErrorCode::kNotFound,
        traces.string() + ": is no folder; give the one that has the traces' folders bert, cifar10, ...");
  }
  for (const ApplicationRules& rules : KnownApplications()) {
    kube::Result<Application> application = Application::Load(traces / rules.name, rules);
    if (!application) return std::move(application).error();
    applications.emplace(rules.name, *std::move(application));
  }
  return applications;
}

kube::Result<std::vector<ReplayJob>> LoadWorkload(const std::string& path, const Applications& applications,
                                                  BatchSize batch_size) {
  const kube::Result<CsvTable> table = ReadCsvFile(path);
  if (!table) return table.error();
  const auto submissions =
      RowsOf<Submission>(*table, {{"name", &Submission::name},
                                  {"time", &Submission::time_s, 0, kLatestArrivalSeconds},
                                  {"application", &Submission::application},
                                  {"num_replicas", &Submission::gpus, 1, kReplayNodes * kReplayGpusPerNode},
                                  {"batch_size", &Submission::batch, 1}});
  if (!submissions) return submissions.error();
  std::vector<ReplayJob> jobs;
  std::set<std::string> names;
  for (const Submission& job : *submissions) {
    const auto wrong = [&](const char* column, const std::string& remedy) {
      return BadFieldOf(*table, jobs.size(), column, "is wrong; write " + remedy);
    };
    if (!names.insert(job.name).second) return wrong("name", "another name than that of an earlier line");
    const auto found = applications.find(job.application);
    if (found == applications.end()) return wrong("application", "one of " + NamesOf(applications));
    const Application& application = found->second;
    if (job.batch < application.initial_batch() || job.batch > application.max_batch()) {
      return wrong("batch_size", "a number from " + std::to_string(application.initial_batch()) + " to " +
                                     std::to_string(application.max_batch()) + ", which were measured for " +
                                     job.application);
    }
    jobs.emplace_back(job, application, batch_size);
  }
  return jobs;
}

std::vector<ReplayJob> DrawWorkload(const std::vector<ReplayJob>& jobs, unsigned count, unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&]() -> const ReplayJob& { return jobs[random() % jobs.size()]; };
  std::vector<double> times;
  for (unsigned i = 0; i < count; ++i) times.push_back(draw().submitted_s());
  std::sort(times.begin(), times.end());
  std::vector<ReplayJob> drawn;
  for (const double time_s : times) {
    drawn.push_back(draw());
    drawn.back().Resubmit(drawn.back().application().name() + "-" + std::to_string(drawn.size()), time_s);
  }
  return drawn;
}

ReplayResult Summarise(const std::vector<ReplayJob>& jobs) {
  ReplayResult result;
  std::vector<double> times;
  const auto count = static_cast<double>(jobs.size());
  for (const ReplayJob& job : jobs) {
    times.push_back(*job.completed_s() - job.submitted_s());
    result.average_s += times.back() / count;
    result.makespan_s = std::max(result.makespan_s, *job.completed_s());
    result.restarts_per_job += job.restarts() / count;
  }
  result.p99_s = PercentileOf(std::move(times), 0.99);
  return result;
}

kube::Result<ReplayResult> Replay(std::vector<ReplayJob> jobs, ReplayPolicy& policy, const Standstills& standstills) {
  double now_s = 0;
  const auto is_open = [](const ReplayJob& job) { return !job.completed_s(); };
  for (auto open = jobs.begin(); (open = std::find_if(jobs.begin(), jobs.end(), is_open)) != jobs.end();) {
    if (now_s > kGiveUpSeconds) {
      return kube::Error(kube::ErrorCode::kTimeout,
                         "job " + open->name() + ": not complete after a year; give it fewer steps (progress) or a " +
                             "shorter step_time in the traces of " + open->application().name());
    }
    for (ReplayJob& job : jobs) job.Train(now_s, kReplayRoundSeconds);
    now_s += kReplayRoundSeconds;

    std::vector<ReplayJob*> active;
    for (ReplayJob& job : jobs) {
      if (job.submitted_s() <= now_s && !job.completed_s()) active.push_back(&job);
    }
    std::vector<GpuNodes> places = policy.Place(now_s, {active.begin(), active.end()});
    assert(FitsCluster(places) && "a policy gives no GPU twice");
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (places[i] != active[i]->gpu_nodes()) active[i]->Move(std::move(places[i]), standstills);
    }
  }
  return Summarise(jobs);
}

}  // namespace grus
