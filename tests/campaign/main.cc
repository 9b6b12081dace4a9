// SPDX-License-Identifier: Apache-2.0
// The fault campaign: make campaign, or build/release/bin/campaign --help.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/campaign/elastic_mutants.h"
#include "tests/campaign/elastic_workloads.h"
#include "tests/campaign/endurance.h"
#include "tests/campaign/gang_mutants.h"
#include "tests/campaign/gang_workloads.h"
#include "tests/campaign/lone_part_mutants.h"
#include "tests/campaign/lone_part_stories.h"
#include "tests/campaign/profile_stories.h"
#include "tests/campaign/spec_campaign.h"
#include "tests/campaign/trial_lives.h"
#include "tests/campaign/trial_workloads.h"
#include "tests/campaign/usage_stories.h"

namespace {

constexpr char kHelp[] = R"(Usage: campaign [--schedules N] [--workload NAME]... [--seed N] [--threads N]
       campaign --replay "SCHEDULE"
       campaign --sweep [--workload NAME]... [--seed N] [--threads N]
       campaign --list
       campaign --spec-changes [--operations N] [--seed N] [--threads N]
       campaign --replay-spec "PLAN"
       campaign --hours N [--seed N]

Plays grus against an API server and a cluster in virtual time, under planned and random faults, and compares
every end with that of the run without faults. A failure is one line that --replay plays again.

  --schedules N    how many, over all workloads (default 2000)
  --workload NAME  only this one; may be given more than once
  --seed N         of the choice of schedules (default 1)
  --threads N      default: one for each core
  --list           the workloads and the faults that there are

With --sweep it kills the manager at every write of a story instead: once right before it, once right after it. The
stories are the lives of TrialJobs and of queues, or those of the given workloads. In stories of usage in which only
Prometheus has faults, it plays each of these at each query.

With --spec-changes it edits every field of jobs that live instead, without faults: each edit must lead to where a
fresh deploy of the edited spec leads, and undoing it back.

  --operations N   edits and undoings, at least (default 1500)

With --hours it lets jobs, gangs and trials come and go for so many hours (4 at least) without a fault, and prints the memory in use
at the end of each. It must not grow from the third quarter to the last.
)";

void List(const kube::testing::Workloads& workloads) {
  std::printf("workloads:\n");
  for (const auto& workload : workloads) std::printf("  %s\n", std::string(workload->name()).c_str());
  std::printf("faults, written FAULT@N for the N-th time that it could happen:\n");
  for (const auto& kind : kube::testing::AllFaultKinds()) {
    std::printf("  %-18s %s\n", std::string(kind.name).c_str(), std::string(kind.what).c_str());
  }
}

int Replay(const kube::testing::Workloads& workloads, std::string_view line) {
  const auto schedule = kube::testing::ParseSchedule(line);
  const auto wrong = schedule ? kube::testing::Replay(workloads, *schedule) : schedule.error();
  if (!wrong) {
    std::fprintf(stderr, "campaign: %s\n", wrong.error().message().c_str());
    return 2;
  }
  for (const std::string& what : *wrong) std::printf("%s\n", what.c_str());
  std::printf("%s\n", wrong->empty() ? "as without faults" : "NOT as without faults");
  return wrong->empty() ? 0 : 1;
}

int ReplaySpec(std::string_view plan) {
  const auto wrong = grus::testing::ReplaySpec(plan);
  if (!wrong) {
    std::fprintf(stderr, "campaign: %s\n", wrong.error().message().c_str());
    return 2;
  }
  for (const std::string& what : *wrong) std::printf("%s\n", what.c_str());
  std::printf("%s\n", wrong->empty() ? "as a fresh deploy" : "NOT as a fresh deploy");
  return wrong->empty() ? 0 : 1;
}

int RunSpecChanges(const grus::testing::SpecCampaignOptions& options) {
  const auto report = grus::testing::RunSpecCampaign(options, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  std::printf("\n%s\n", report.table.c_str());
  for (const std::string& failure : report.failures) std::printf("FAIL  %s\n", failure.c_str());
  std::printf(
      "%d operations in %.1f s: %d refused by the API, %d more skipped because they break a rule of the CRD; "
      "%d looks after a restart\n",
      report.operations, report.seconds, report.refused, report.skipped, report.restarts);
  std::printf("%d passed, %d failed\n", report.plans - report.failed, report.failed);
  return report.failed == 0 ? 0 : 1;
}

struct Count {
  int runs = 0, failed = 0;
};

// Deaths at each write of the stories, or faults of Prometheus at each query of those that have no others; of several
// `parts` of these one.
Count SweepAll(const kube::testing::Workloads& workloads, const std::vector<std::string>& names,
               const kube::testing::CampaignOptions& options, int parts) {
  Count count;
  for (const auto& story : workloads) {
    if (std::ranges::count(names, story->name()) == 0) continue;
    const bool has_deaths = story->Suffers(*kube::testing::FindFaultKind("crash-before"));
    const auto report = has_deaths ? kube::testing::SweepWrites(*story, options.seed, options.threads)
                                   : kube::testing::SweepQueries(*story, options.seed, options.threads, parts);
    for (const std::string& failure : report.failures) std::printf("FAIL  %s\n", failure.c_str());
    std::printf("%s: %d %s, %d runs in %.1f s: %d divergences\n", std::string(story->name()).c_str(), report.places,
                has_deaths ? "writes" : "queries", report.runs, report.seconds, report.divergences);
    std::fflush(stdout);
    count.runs += report.runs;
    count.failed += report.divergences;
  }
  return count;
}

int Sweep(const kube::testing::Workloads& workloads, const kube::testing::CampaignOptions& options) {
  const Count count = SweepAll(workloads, options.workloads, options, 1);
  if (count.runs == 0) return std::fputs("campaign: there is no workload of that name\n", stderr), 2;
  std::printf("%d passed, %d failed\n", count.runs - count.failed, count.failed);
  return count.failed == 0 ? 0 : 1;
}

// What is played: schedules of faults that are drawn, and sweeps.
struct Plan {
  std::vector<std::string> drawn, drawn_of_usage, drawn_of_lone_parts, swept;
};
// Schedules of the stories of usage, and of lone pods, have a draw of their own, so that those of the others stay what
// they are.
constexpr int kSchedulesOfUsage = 120, kSchedulesOfLoneParts = 300, kPartsOfQueries = 18;

bool IsAmong(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

Count Draw(const kube::testing::Workloads& workloads, const kube::testing::CampaignOptions& options) {
  const auto report = kube::testing::RunCampaign(workloads, options, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  std::printf("\n%s\n", report.table.c_str());
  for (const std::string& failure : report.failures) std::printf("FAIL  %s\n", failure.c_str());
  const double takeover = std::chrono::duration<double>(report.longest_takeover).count();
  std::printf(
      "%d schedules in %.1f s: %d divergences; %d runs without faults: %d false alarms; %d schedules missed "
      "their fault\n",
      report.schedules, report.seconds, report.divergences, report.controls, report.false_alarms, report.unreached);
  if (takeover > 0)
    std::printf("longest time from a leader's death to the next one's lease: %.1f s (virtual)\n", takeover);
  return {report.schedules + report.controls, report.divergences + report.false_alarms + report.unreached};
}

int Run(const kube::testing::Workloads& workloads, const Plan& plan, const kube::testing::CampaignOptions& options) {
  Count count;
  const auto add = [&count](Count more) {
    count.runs += more.runs;
    count.failed += more.failed;
  };
  const auto draw = [&](const std::vector<std::string>& names, int schedules) {
    kube::testing::CampaignOptions its = options;
    its.workloads = names;
    its.schedules = schedules;
    if (!names.empty()) add(Draw(workloads, its));
  };
  draw(plan.drawn, options.schedules);
  draw(plan.drawn_of_usage, plan.drawn.empty() ? options.schedules : kSchedulesOfUsage);
  draw(plan.drawn_of_lone_parts, plan.drawn.empty() ? options.schedules : kSchedulesOfLoneParts);
  add(SweepAll(workloads, plan.swept, options, kPartsOfQueries));
  int asked = 0;
  std::vector<std::string> wrong = grus::testing::CheckGangRules(asked);
  for (std::string& what : grus::testing::CheckElasticRules(asked)) wrong.push_back(std::move(what));
  for (std::string& what : grus::testing::CheckLonePartRules(asked)) wrong.push_back(std::move(what));
  for (const std::string& what : wrong) std::printf("FAIL  %s\n", what.c_str());
  add({asked, static_cast<int>(wrong.size())});
  std::printf("%d checks of the rules for gangs, jobs and lone pods, %zu of them wrong\n", asked, wrong.size());
  std::printf("%d passed, %d failed\n", count.runs - count.failed, count.failed);
  return count.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  kube::testing::Workloads workloads;
  const auto add = [&workloads](kube::testing::Workloads more) {
    std::vector<std::string> names;
    for (auto& workload : more) names.emplace_back(workload->name());
    std::move(more.begin(), more.end(), std::back_inserter(workloads));
    return names;
  };
  std::vector<std::string> played = add(grus::testing::ElasticWorkloads());
  for (const auto& names : {add(grus::testing::TrialWorkloads()), add(grus::testing::TrialLivesUnderFaults()),
                            add(grus::testing::GangWorkloads()), add(grus::testing::ProfileStories())}) {
    played.insert(played.end(), names.begin(), names.end());
  }
  const std::vector<std::string> usage = add(grus::testing::UsageStories());
  const std::vector<std::string> usage_under_faults = add(grus::testing::UsageUnderFaults());
  const std::vector<std::string> lone_parts = add(grus::testing::LonePartStories());
  std::vector<std::string> swept = add(grus::testing::TrialLives());
  // What a reclaim has begun must not be lost at any of its writes either.
  std::ranges::copy_if(played, std::back_inserter(swept),
                       [](const std::string& name) { return name.starts_with("queue-"); });
  kube::testing::CampaignOptions options;
  grus::testing::SpecCampaignOptions spec_options;
  bool changes_specs = false, sweeps = false;
  int hours = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help") return std::fputs(kHelp, stdout), 0;
    if (option == "--list") return List(workloads), 0;
    if (option == "--spec-changes") {
      changes_specs = true;
      continue;
    }
    if (option == "--sweep") {
      sweeps = true;
      continue;
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "campaign: %s needs a value, or is no option; see --help\n", argv[i]);
      return 2;
    }
    const char* value = argv[++i];
    if (option == "--replay") return Replay(workloads, value);
    if (option == "--replay-spec") return ReplaySpec(value);
    if (option == "--hours") hours = std::atoi(value);
    else if (option == "--schedules") options.schedules = std::atoi(value);
    else if (option == "--workload") options.workloads.emplace_back(value);
    else if (option == "--operations") spec_options.operations = std::atoi(value);
    else if (option == "--seed") spec_options.seed = options.seed = std::strtoull(value, nullptr, 10);
    else if (option == "--threads") spec_options.threads = options.threads = std::atoi(value);
    else return std::fprintf(stderr, "campaign: there is no option %s; see --help\n", argv[i - 1]), 2;
  }
  if (hours != 0 && hours < 4) return std::fputs("campaign: --hours needs 4 or more; see --help\n", stderr), 2;
  if (hours > 0) return grus::testing::RunEndurance(hours, options.seed);
  if (changes_specs) return RunSpecChanges(spec_options);
  if (sweeps) {
    if (options.workloads.empty()) options.workloads = swept;
    return Sweep(workloads, options);
  }
  Plan plan{played, usage_under_faults, lone_parts, usage};
  if (!options.workloads.empty()) plan = {};
  for (const std::string& name : options.workloads) {
    (IsAmong(usage, name)                ? plan.swept
     : IsAmong(usage_under_faults, name) ? plan.drawn_of_usage
     : IsAmong(lone_parts, name)         ? plan.drawn_of_lone_parts
                                         : plan.drawn)
        .push_back(name);
  }
  return Run(workloads, plan, options);
}
