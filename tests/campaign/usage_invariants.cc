// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/usage_invariants.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "crds/types/workload_profile.h"
#include "tests/campaign/fake_prometheus.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;
using api::WorkloadRun;
using Job = UsageTruth::Job;

constexpr kube::Duration kSweep = 60s;

// How far a run may be off. A run is written when it has a tenth more GPU seconds, or ten minutes: so much may be
// missing of one whose writer died.
struct Slack {
  kube::Duration start, late;  // Its end may be so much late,
  kube::Duration early;        // or so much early.
  double more, less;           // GPU seconds, of each GPU.
  kube::Duration unended;      // How long a run has no end whose job has no pods.
};
constexpr kube::Duration kUnwritten = 10min + 2 * kSweep;
constexpr Slack kSlacks[] = {{2s, 5s, kSweep, 5, 5, 10min},
                             {2s, kSweep, kUnwritten, 5, 12 * 60, 20min},
                             {2s, kFaultySlack, kUnwritten + kFaultySlack, 12 * 60, 24 * 60, 90min}};

const Slack& SlackOf(UsageJudgement judgement) { return kSlacks[static_cast<std::size_t>(judgement)]; }

const FakePrometheus& PrometheusIn(const World& world) { return static_cast<const FakePrometheus&>(*world.asked); }

std::vector<WorkloadRun> RunsIn(const Json& profile) {
  return (*kube::Decode<api::WorkloadProfile>(kube::ToText(profile)))->spec.runs;
}

std::string ToText(kube::Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

// "" or " 7 is not from 8 to 9".
template <typename Number>
std::string NotWithin(const char* what, std::optional<Number> said, double least, double most) {
  if (!said || (static_cast<double>(*said) >= least && static_cast<double>(*said) <= most)) return {};
  return std::string(what) + " " + std::to_string(*said) + ", not from " + std::to_string(least) + " to " +
         std::to_string(most);
}

// A part of a per cent is rounded.
std::string WrongNumbers(const api::ResourceUsage& usage, const Job& job) {
  const double low = job.load - kSpread, high = job.most_utilization, pods = job.pods;
  const double cores = usage.cpu_cores.empty() ? 1 : std::strtod(usage.cpu_cores.c_str(), nullptr);
  const std::string wrong[] = {
      NotWithin("utilisation", usage.gpu_utilization_percent, low - 1, high),
      NotWithin("highest utilisation", usage.max_gpu_utilization_percent, low, high),
      NotWithin("bandwidth", usage.memory_bandwidth_percent, low / 2 - 1, high / 2 + 1),
      NotWithin("GPU memory", usage.max_gpu_memory_bytes, std::ldexp(job.load * 100, 20),
                std::ldexp(static_cast<double>(job.most_memory_mib), 20)),
      NotWithin("memory", usage.max_memory_bytes, job.load * 1e7, job.load * 1e7),
      NotWithin("cores", std::optional(cores), 0.001, usage.cpu_cores.empty() ? 1 : pods * job.load / 10.0 + 0.01),
      NotWithin("network", usage.network_bytes_per_second, 1, 2 * pods * job.load * 1e6 + 1),
      NotWithin("disk", usage.disk_bytes_per_second, 1, 2 * pods * job.load * 1e5 + 1)};
  for (const std::string& text : wrong) {
    if (!text.empty()) return text;
  }
  return {};
}

std::string WrongIn(const World& world, const WorkloadRun& run, UsageJudgement judgement) {
  const Slack& slack = SlackOf(judgement);
  const FakePrometheus& prometheus = PrometheusIn(world);
  const std::optional<Job> job = prometheus.truth().Find(run.uid);
  if (!job) return "there was no such job";
  if (const kube::Duration late = run.start.value - job->start.value; late > slack.start || -late > slack.start) {
    return "it starts " + ToText(late) + " late";
  }
  if (run.end && job->end) {
    const kube::Duration late = run.end->value - job->end->value;
    if (late > slack.late || -late > slack.early) return "it ends " + ToText(late) + " late";
  }
  if (run.end && !job->end && judgement != UsageJudgement::kLoose) return "it has an end, and its pods run";
  if (run.gpus < 1 || run.gpus > job->gpus) {
    return std::to_string(run.gpus) + " GPUs, but its pods had " + std::to_string(job->gpus);
  }
  if (static_cast<double>(run.gpu_seconds) > job->gpu_seconds + slack.more * job->gpus) {
    return std::to_string(run.gpu_seconds) + " GPU seconds, but its pods had " + std::to_string(job->gpu_seconds);
  }
  if (!run.gpu_type.empty() && run.gpu_type != "A100") return "on " + run.gpu_type;
  if (run.usage == api::ResourceUsage()) return "nobody told anything of it";
  if (run.character && !prometheus.ToldOf(run.uid).has_series) return "nobody told what it does";
  return WrongNumbers(run.usage, *job);
}

std::string CheckProfile(const World& world, const Json& profile, UsageJudgement judgement) {
  const std::vector<WorkloadRun> runs = RunsIn(profile);
  if (runs.size() > static_cast<std::size_t>(api::kMaxProfileRuns)) {
    return "a profile has " + std::to_string(runs.size()) + " runs";
  }
  for (const WorkloadRun& run : runs) {
    const std::string wrong = WrongIn(world, run, judgement);
    if (!wrong.empty()) return "the run of " + run.job + ": " + wrong;
  }
  return {};
}

std::map<std::string, std::vector<WorkloadRun>> RunsByJob(const World& world) {
  std::map<std::string, std::vector<WorkloadRun>> runs;
  for (const auto& [key, profile] : world.All(kProfiles)) {
    for (const WorkloadRun& run : RunsIn(*profile)) runs[run.uid].push_back(run);
  }
  return runs;
}

std::string NoneTwice(const World& world) {
  for (const auto& [uid, runs] : RunsByJob(world)) {
    if (runs.size() > 1) return runs[0].job + " has " + std::to_string(runs.size()) + " runs";
  }
  return {};
}

// What is told of a name counts for neither job that had pods of it shortly one after the other.
bool HasNamesOfItsOwn(const UsageTruth& truth, const std::string& uid) {
  std::set<kube::ObjectKey> names;
  for (const UsageTruth::Pod& pod : truth.pods()) {
    if (pod.job_uid == uid) names.insert(pod.key);
  }
  return std::ranges::none_of(truth.pods(),
                              [&](const auto& pod) { return pod.job_uid != uid && names.contains(pod.key); });
}

// Whoever missed its end can read it in one of its pods.
bool IsStillThere(const World& world, const std::string& uid) {
  const auto job = PrometheusIn(world).truth().Find(uid);
  return std::ranges::any_of(PrometheusIn(world).truth().pods(), [&](const UsageTruth::Pod& pod) {
    const Json* there = world.Get("pods", pod.key);
    return pod.job_uid == uid && pod.ended == job->end && there && Text(*there, {"metadata", "uid"}) == pod.uid;
  });
}

// In favour of runs that ended later, or about when it did.
bool WasDropped(const World& world, const Job& job) {
  return std::ranges::any_of(world.All(kProfiles), [&](const auto& entry) {
    const std::vector<WorkloadRun> runs = RunsIn(*entry.second);
    const auto is_later = [&](const WorkloadRun& run) {
      return run.end && *job.end < kube::Time{run.end->value + kSweep};
    };
    return runs.size() == static_cast<std::size_t>(api::kMaxProfileRuns) && std::ranges::all_of(runs, is_later);
  });
}

// Runs without an end whose jobs have no pods.
std::map<std::string, std::string> Unended(const World& world) {
  std::map<std::string, std::string> unended;
  for (const auto& [uid, runs] : RunsByJob(world)) {
    const auto job = PrometheusIn(world).truth().Find(uid);
    for (const WorkloadRun& run : runs) {
      if (!run.end && job && job->end) unended["the run of " + run.job] = "has no end, and its pods are gone";
    }
  }
  return unended;
}

}  // namespace

std::vector<kube::testing::Invariant> UsageInvariants(UsageJudgement judgement) {
  return {[judgement](const World& world, const kube::testing::ServerChange& change) {
            if (change.resource != kProfiles || !change.after) return std::string();
            const std::string wrong = CheckProfile(world, *change.after, judgement);
            return wrong.empty() ? NoneTwice(world) : wrong;
          },
          [patience = Patience(SlackOf(judgement).unended)](const World& world,
                                                            const kube::testing::ServerChange& change) mutable {
            if (change.resource != kProfiles && change.resource != "pods") return std::string();
            return patience.Check(world.simulation.Now(), Unended(world));
          }};
}

void CheckUsage(const World& world, UsageJudgement judgement, std::vector<std::string>& complaints) {
  const FakePrometheus& prometheus = PrometheusIn(world);
  const auto runs = RunsByJob(world);
  for (const auto& [key, profile] : world.All(kProfiles)) {
    if (std::string wrong = CheckProfile(world, *profile, judgement); !wrong.empty()) complaints.push_back(wrong);
  }
  // A run whose writer died, and whose end could not be written then, is looked for again after an hour.
  const bool is_loose = judgement == UsageJudgement::kLoose;
  if (!is_loose) {
    for (const auto& [name, what] : Unended(world)) complaints.push_back(name + " " + what);
  }
  for (const std::string& uid : prometheus.truth().Jobs()) {
    const Job job = *prometheus.truth().Find(uid);
    const FakePrometheus::Told told = prometheus.ToldOf(uid);
    const auto complain = [&, load = std::to_string(job.load)](const std::string& what) {
      complaints.push_back("the job of load " + load + " " + what);
    };
    if (!runs.contains(uid)) {
      if (told.has_numbers && !WasDropped(world, job)) complain("has no run, but numbers of it were told");
      continue;
    }
    if (is_loose) continue;
    const WorkloadRun& run = runs.at(uid).front();
    if (run.end && IsStillThere(world, uid) && *job.end > kube::Time{run.end->value + kSweep}) {
      complain("says when it ended, which is " + ToText(job.end->value - run.end->value) + " after its run");
    }
    if (run.gpus != job.gpus) complain("had " + std::to_string(job.gpus) + " GPUs, not " + std::to_string(run.gpus));
    if (static_cast<double>(run.gpu_seconds) < job.gpu_seconds - SlackOf(judgement).less * job.gpus) {
      complain("had " + std::to_string(job.gpu_seconds) + " GPU seconds, not " + std::to_string(run.gpu_seconds));
    }
    const std::int64_t known = run.usage.max_gpu_memory_bytes.value_or(0);
    const bool is_all_known = judgement == UsageJudgement::kExact && HasNamesOfItsOwn(prometheus.truth(), uid);
    if (is_all_known && known < told.most_memory_mib << 20) {
      complain("used " + std::to_string(told.most_memory_mib << 20) + " bytes of memory, not " + std::to_string(known));
    }
  }
}

}  // namespace grus::testing
