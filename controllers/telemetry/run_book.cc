// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/run_book.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace grus {
namespace {

using api::WorkloadRun;
using kube::Time;

double SecondsBetween(Time from, Time to) {
  return std::max(0.0, std::chrono::duration<double>(to.value - from.value).count());
}

// Without the fraction, as the API keeps times.
Time WholeSeconds(Time time) { return {std::chrono::floor<std::chrono::seconds>(time.value)}; }

}  // namespace

// What pods of one job were in an interval.
struct RunBook::Interval {
  std::vector<PodUsage> used;
  double seconds = 0;      // Of the longest of them.
  double gpu_seconds = 0;  // Since each pod began.
  std::int32_t gpus = 0, gpus_running = 0;
  bool is_running = false;
  std::optional<Time> began, ended;
  api::RunOutcome outcome = api::RunOutcome::kNotKnown;  // Of the pod that ended last.
  std::string gpu_type;

  void Add(const GpuPod& pod, Time until, const TypeOf& type_of) {
    gpu_seconds += pod.gpus * SecondsBetween(pod.started, until);
    gpus += pod.gpus;
    began = std::min(began.value_or(pod.started), pod.started);
    gpu_type = std::max(gpu_type, type_of(pod.node));
    if (!pod.ended) {
      is_running = true;
      gpus_running += pod.gpus;
    } else if (!ended || *ended <= *pod.ended) {
      ended = pod.ended;
      outcome = pod.outcome;
    }
  }
};

void RunBook::Job::End(const Interval& interval) {
  usage.Add(interval.used, std::max(interval.seconds, 1.0));
  const Time began = WholeSeconds(*interval.began);
  run.start = run.uid.empty() ? began : std::min(run.start, began);
  run.uid = ref.uid;
  run.job = ref.ToString();
  if (!interval.gpu_type.empty()) run.gpu_type = interval.gpu_type;
  run.gpus = std::max(run.gpus, interval.is_running ? interval.gpus_running : interval.gpus);
  run.gpu_seconds = std::max<std::int64_t>(before, std::llround(gpu_seconds + interval.gpu_seconds));
  run.usage = usage.Summary();
  run.end = interval.is_running ? std::nullopt : std::optional(WholeSeconds(*interval.ended));
  run.outcome = interval.is_running ? api::RunOutcome::kNotKnown : interval.outcome;
}

void RunBook::See(const GpuPod& pod) {
  const auto [at, is_new] = pods_.try_emplace(pod.uid, pod);
  if (is_new) return;
  const std::optional<Time> ended = at->second.ended;
  const api::RunOutcome outcome = at->second.outcome;
  at->second = pod;
  if (!pod.ended && ended) {  // Old news.
    at->second.ended = ended;
    at->second.outcome = outcome;
  }
}

void RunBook::Remove(const std::string& pod_uid, Time now) {
  const auto at = pods_.find(pod_uid);
  if (at == pods_.end() || at->second.ended) return;
  at->second.ended = now;
  at->second.outcome = api::RunOutcome::kDeleted;
}

const JobRef& RunBook::RootOf(const JobRef& owner) const {
  const auto at = roots_.find(owner.Id());
  return at == roots_.end() ? owner : at->second;
}

void RunBook::SetRoot(const std::string& owner_id, const JobRef& root) {
  roots_[owner_id] = root;
  const auto own = jobs_.find(owner_id);
  if (owner_id == root.Id() || own == jobs_.end()) return;
  Job& job = jobs_[root.Id()];
  job.ref = root;
  job.usage.Merge(own->second.usage);
  job.gpu_seconds += own->second.gpu_seconds;
  jobs_.erase(own);
}

void RunBook::Resume(const std::string& job_id, const WorkloadRun& before) {
  const auto at = jobs_.find(job_id);
  if (at == jobs_.end()) return;
  Job& job = at->second;
  const double seconds = before.gpus > 0 ? static_cast<double>(before.gpu_seconds) / before.gpus : 0;
  job.usage.Merge(RunUsage(before.usage, std::max(seconds, 1.0)));
  job.before = before.gpu_seconds;
  job.run.start = std::min(job.run.start, before.start);
  job.run.gpus = std::max(job.run.gpus, before.gpus);
  job.run.gpu_seconds = std::max(job.run.gpu_seconds, before.gpu_seconds);
}

std::vector<JobRun> RunBook::EndInterval(const UsageByPod& usage, Time now, const TypeOf& type_of) {
  const std::optional<Time> start = std::exchange(interval_start_, now);
  std::unordered_map<kube::ObjectKey, std::set<std::string>> jobs_of_name;
  for (const auto& [uid, pod] : pods_) jobs_of_name[pod.key].insert(RootOf(pod.owner).Id());
  std::map<std::string, Interval> intervals;
  for (const auto& [uid, pod] : pods_) {
    const JobRef& root = RootOf(pod.owner);
    jobs_[root.Id()].ref = root;
    Interval& interval = intervals[root.Id()];
    interval.Add(pod, std::min(pod.ended.value_or(now), now), type_of);
    // The numbers of a name that two jobs had in this interval may be of either.
    const auto used = usage.find(pod.key);
    if (used == usage.end() || jobs_of_name[pod.key].size() > 1) continue;
    interval.used.push_back(used->second);
    const Time since = std::max(pod.started, start.value_or(pod.started));
    interval.seconds = std::max(interval.seconds, SecondsBetween(since, pod.ended.value_or(now)));
  }
  for (const auto& [id, interval] : intervals) jobs_[id].End(interval);
  DropEnded(now);
  std::vector<JobRun> runs;
  for (const auto& [id, job] : jobs_) runs.push_back({job.ref, job.run, job.run.end.has_value()});
  return runs;
}

// Their intervals are over. A job that has none left stays until it is forgotten.
void RunBook::DropEnded(Time now) {
  std::set<std::string> owners;
  for (auto at = pods_.begin(); at != pods_.end();) {
    const GpuPod& pod = at->second;
    if (!pod.ended || *pod.ended > now) {
      owners.insert(pod.owner.Id());
      ++at;
      continue;
    }
    const auto job = jobs_.find(RootOf(pod.owner).Id());
    if (job != jobs_.end()) job->second.gpu_seconds += pod.gpus * SecondsBetween(pod.started, *pod.ended);
    at = pods_.erase(at);
  }
  std::erase_if(roots_, [&](const auto& root) { return !owners.contains(root.first); });
}

}  // namespace grus
