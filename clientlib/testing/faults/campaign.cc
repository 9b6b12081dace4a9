// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace kube::testing {
namespace {

// The number of runs without faults of each workload, one per seed: schedules are planned from the points they passed,
// and ends are compared with the first run.
constexpr int kModels = 5;
// The share of schedules with several faults.
constexpr double kRandomShare = 0.3;
constexpr int kMostFaults = 4;

struct Job {
  const Workload* workload;
  Schedule schedule;
  std::vector<std::string> wrong{};
  bool is_unreached = false;
  Duration longest_takeover{};
};

// Adds schedules with one fault, of each kind and at each place where it can happen according to `models`.
void AddSingles(const Workload& workload, const std::vector<Outcome>& models, std::vector<Job>& all) {
  for (const FaultKind& kind : AllFaultKinds()) {
    if (!workload.Suffers(kind) || (kind.point == FaultPoint::kRenewal && !workload.uses_leases())) continue;
    for (int seed = 1; seed <= kModels; ++seed) {
      const int places = models[static_cast<std::size_t>(seed - 1)].points[static_cast<std::size_t>(kind.point)];
      for (int at = 0; at < places; ++at) {
        // Every place once; its seed differs from kind to kind.
        if ((at + static_cast<int>(kind.name.size())) % kModels != seed - 1) continue;
        all.push_back({&workload, {std::string(workload.name()), static_cast<std::uint64_t>(seed), {{&kind, at}}}});
      }
    }
  }
}

// Chooses `count` jobs, as evenly over the kinds as possible.
std::vector<Job> ChooseEvenly(std::vector<Job> all, std::size_t count, std::mt19937_64& random) {
  std::shuffle(all.begin(), all.end(), random);
  std::map<std::string_view, std::vector<Job>> by_kind;
  for (Job& job : all) by_kind[job.schedule.faults[0].kind->name].push_back(std::move(job));
  std::vector<Job> chosen;
  for (bool is_more = true; is_more && chosen.size() < count;) {
    is_more = false;
    for (auto& [kind, jobs] : by_kind) {
      if (jobs.empty() || chosen.size() >= count) continue;
      chosen.push_back(std::move(jobs.back()));
      jobs.pop_back();
      is_more = true;
    }
  }
  return chosen;
}

// Several faults in one run; none if there is no place for one. Later ones may not be reached if an earlier one changes
// the run; that is fine.
Schedule PlanRandom(const Workload& workload, const std::vector<Outcome>& models, std::mt19937_64& random) {
  Schedule schedule{std::string(workload.name()), 1 + random() % kModels, {}};
  const auto& points = models[schedule.seed - 1].points;
  const auto wanted = static_cast<std::size_t>(2 + random() % (kMostFaults - 1));
  const auto places_of = [&](const FaultKind& kind) {
    if (kind.point == FaultPoint::kRenewal && !workload.uses_leases()) return 0;
    return points[static_cast<std::size_t>(kind.point)];
  };
  std::vector<const FaultKind*> kinds;
  for (const FaultKind& kind : AllFaultKinds()) {
    if (workload.Suffers(kind)) kinds.push_back(&kind);
  }
  if (std::none_of(kinds.begin(), kinds.end(), [&](const FaultKind* kind) { return places_of(*kind) > 0; })) {
    return schedule;
  }
  while (schedule.faults.size() < wanted) {
    const FaultKind& kind = *kinds[random() % kinds.size()];
    const int places = places_of(kind);
    if (places == 0) continue;
    schedule.faults.push_back({&kind, static_cast<int>(random() % static_cast<std::uint64_t>(places))});
  }
  return schedule;
}

// Calls `work(i)` for each i below `count`, on `threads` threads (0: one for each core).
void InParallel(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < threads; ++i) {
    crew.emplace_back([&] {
      for (std::size_t mine; (mine = next++) < count;) work(mine);
    });
  }
}

std::string Line(const char* format, auto... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Table(const std::vector<Job>& jobs) {
  struct Row {
    int schedules = 0, wrong = 0;
  };
  std::map<std::string, Row> by_workload, by_kind;
  for (const Job& job : jobs) {
    const auto& faults = job.schedule.faults;
    const std::string kind = faults.size() > 1 ? "several at once" : std::string(faults[0].kind->name);
    for (Row* row : {&by_workload[job.schedule.workload], &by_kind[kind]}) {
      ++row->schedules;
      row->wrong += !job.wrong.empty();
    }
  }
  std::string table = Line("%-28s %10s %12s\n", "workload", "schedules", "divergences");
  for (const auto& [name, row] : by_workload)
    table += Line("%-28s %10d %12d\n", name.c_str(), row.schedules, row.wrong);
  table += Line("\n%-28s %10s %12s\n", "fault", "schedules", "divergences");
  for (const auto& [name, row] : by_kind) table += Line("%-28s %10d %12d\n", name.c_str(), row.schedules, row.wrong);
  return table;
}

std::string Failure(const Schedule& schedule, const std::vector<std::string>& wrong) {
  std::string text = ToText(schedule);
  for (const std::string& line : wrong) text += "\n    " + line;
  return text;
}

}  // namespace

CampaignReport RunCampaign(const Workloads& workloads, const CampaignOptions& options,
                           const std::function<void(const std::string&)>& progress) {
  const auto started = std::chrono::steady_clock::now();
  std::vector<const Workload*> chosen;
  for (const auto& workload : workloads) {
    if (options.workloads.empty() ||
        std::count(options.workloads.begin(), options.workloads.end(), workload->name()) > 0) {
      chosen.push_back(workload.get());
    }
  }

  CampaignReport report;
  if (chosen.empty()) {
    report.controls = report.false_alarms = 1;
    report.failures.push_back("there is no workload of that name");
    return report;
  }
  std::vector<std::vector<Outcome>> models(chosen.size(), std::vector<Outcome>(kModels));
  InParallel(chosen.size() * kModels, options.threads, [&](std::size_t i) {
    const Workload& workload = *chosen[i / kModels];
    models[i / kModels][i % kModels] = Run(workload, {std::string(workload.name()), i % kModels + 1, {}});
  });
  for (std::size_t w = 0; w < chosen.size(); ++w) {
    for (std::size_t seed = 1; seed <= kModels; ++seed) {
      ++report.controls;
      const std::vector<std::string> wrong = Compare(models[w][0], models[w][seed - 1]);
      if (wrong.empty()) continue;
      ++report.false_alarms;
      report.failures.push_back(Failure({std::string(chosen[w]->name()), seed, {}}, wrong));
    }
  }
  progress(std::to_string(report.controls) + " runs without faults, " + std::to_string(report.false_alarms) +
           " of them wrong");

  std::mt19937_64 random(options.seed);
  std::vector<Job> singles;
  for (std::size_t w = 0; w < chosen.size(); ++w) AddSingles(*chosen[w], models[w], singles);
  std::vector<Job> jobs =
      ChooseEvenly(std::move(singles), static_cast<std::size_t>(options.schedules * (1 - kRandomShare)), random);
  // A workload whose runs without faults did not end has nothing to plan; it is reported as a false alarm.
  std::size_t planless = 0;
  for (std::size_t w = 0; static_cast<int>(jobs.size()) < options.schedules && planless < chosen.size();
       w = (w + 1) % chosen.size()) {
    Schedule schedule = PlanRandom(*chosen[w], models[w], random);
    planless = schedule.faults.empty() ? planless + 1 : 0;
    if (!schedule.faults.empty()) jobs.push_back({chosen[w], std::move(schedule)});
  }

  std::mutex mutex;  // Guards finished and the calls of `progress`.
  std::size_t finished = 0;
  InParallel(jobs.size(), options.threads, [&](std::size_t i) {
    Job& job = jobs[i];
    const auto w = static_cast<std::size_t>(std::find(chosen.begin(), chosen.end(), job.workload) - chosen.begin());
    const Outcome run = Run(*job.workload, job.schedule);
    job.wrong = Compare(models[w][0], run);
    job.is_unreached = run.has_faults_left && job.schedule.faults.size() == 1;
    job.longest_takeover = run.longest_takeover;
    std::lock_guard lock(mutex);
    if (++finished % 500 == 0) progress(std::to_string(finished) + " of " + std::to_string(jobs.size()) + " schedules");
  });
  for (const Job& job : jobs) {
    ++report.schedules;
    report.longest_takeover = std::max(report.longest_takeover, job.longest_takeover);
    report.unreached += job.is_unreached;
    if (job.wrong.empty()) continue;
    ++report.divergences;
    report.failures.push_back(Failure(job.schedule, job.wrong));
  }
  report.table = Table(jobs);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

namespace {

// `is_due`: whether the kind is played at the place.
SweepReport Sweep(const Workload& workload, FaultPoint point, std::uint64_t seed, int threads,
                  const std::function<bool(const FaultKind& kind, int at)>& is_due) {
  const auto started = std::chrono::steady_clock::now();
  SweepReport report;
  const Schedule without{std::string(workload.name()), seed, {}};
  const Outcome model = Run(workload, without);
  std::vector<Job> jobs{{&workload, without, model.complaints}};
  report.places = model.points[static_cast<std::size_t>(point)];
  for (int at = 0; at < report.places; ++at) {
    for (const FaultKind& kind : AllFaultKinds()) {
      if (kind.point == point && is_due(kind, at)) jobs.push_back({&workload, {without.workload, seed, {{&kind, at}}}});
    }
  }
  InParallel(jobs.size(), threads, [&](std::size_t i) {
    Job& job = jobs[i];
    if (job.schedule.faults.empty()) return;
    const Outcome run = Run(workload, job.schedule);
    job.wrong = Compare(model, run);
    if (run.has_faults_left) job.wrong.emplace_back("the fault did not happen");
  });
  for (const Job& job : jobs) {
    ++report.runs;
    if (job.wrong.empty()) continue;
    ++report.divergences;
    report.failures.push_back(Failure(job.schedule, job.wrong));
  }
  if (report.places == 0) {
    ++report.divergences;
    report.failures.push_back(Failure(without, {"there is no place for a fault"}));
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace

SweepReport SweepWrites(const Workload& workload, std::uint64_t seed, int threads) {
  return Sweep(workload, FaultPoint::kWrite, seed, threads,
               [](const FaultKind& kind, int) { return kind.name == "crash-before" || kind.name == "crash-after"; });
}

SweepReport SweepQueries(const Workload& workload, std::uint64_t seed, int threads, int parts) {
  const FaultKind* first = FindFaultKind("query-refused");
  return Sweep(workload, FaultPoint::kQuery, seed, threads,
               [&](const FaultKind& kind, int at) { return (&kind - first + at) % parts == 0; });
}

Result<std::vector<std::string>> Replay(const Workloads& workloads, const Schedule& schedule) {
  for (const auto& workload : workloads) {
    if (workload->name() != schedule.workload) continue;
    const Outcome model = Run(*workload, {schedule.workload, 1, {}});
    return Compare(model, Run(*workload, schedule));
  }
  return Error(ErrorCode::kInvalidArgument, "there is no workload " + schedule.workload);
}

}  // namespace kube::testing
