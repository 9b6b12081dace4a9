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

constexpr double kLongestLook = 600;  // Seconds that a query looks back, at most.

double SecondsBetween(Time from, Time to) {
  return std::max(0.0, std::chrono::duration<double>(to.value - from.value).count());
}

Time SecondsBefore(Time time, double seconds) {
  return {time.value - std::chrono::milliseconds(std::llround(seconds * 1000))};
}

PodUsage MaximaOf(const PodUsage& used) {
  return {.max_gpu_utilization = used.max_gpu_utilization,
          .max_gpu_memory = used.max_gpu_memory,
          .max_memory = used.max_memory};
}

// Without the fraction, as the API keeps times.
Time WholeSeconds(Time time) { return {std::chrono::floor<std::chrono::seconds>(time.value)}; }

}  // namespace

// What pods of one job were in an interval.
struct RunBook::Interval {
  struct Stay {
    Time from, to;
    std::int32_t gpus = 0;
  };
  std::vector<PodInterval> pods;
  std::vector<Stay> stays;
  double seconds = 0;      // From its first pod in the interval to its last.
  double gpu_seconds = 0;  // Since each pod began.
  bool is_running = false;
  std::optional<Time> began, ended;
  api::RunOutcome outcome = api::RunOutcome::kNotKnown;  // Of the pod that ended last.
  std::set<std::string> gpu_types;
  std::int32_t running_gpus = 0;
  std::set<double> memories;  // Of one GPU of each running pod.

  void Add(const GpuPod& pod, Time until, const GpusOf& gpus_of) {
    gpu_seconds += pod.gpus * SecondsBetween(pod.started, until);
    stays.push_back({pod.started, until, pod.gpus});
    began = std::min(began.value_or(pod.started), pod.started);
    const NodeGpus node = gpus_of(pod.node);
    gpu_types.insert(node.type);
    if (!pod.ended) {
      is_running = true;
      running_gpus += pod.gpus;
      memories.insert(node.memory);
    } else if (!ended || *ended <= *pod.ended) {
      ended = pod.ended;
      outcome = pod.outcome;
    }
  }

  // The most GPUs at a time: whenever one pod begins, those that run.
  std::int32_t gpus() const {
    std::map<Time, std::int64_t> changes;  // At the same time, ends and beginnings add up.
    for (const Stay& stay : stays) {
      changes[stay.from] += stay.gpus;
      changes[stay.to] -= stay.gpus;
    }
    std::int64_t now = 0, most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, now += change);
    return static_cast<std::int32_t>(most);
  }
};

GpuInterval RunBook::Job::UseIn(const Interval& interval) {
  GpuInterval use;
  double busy = 0, weight = 0, all = 0;
  for (const PodInterval& pod : interval.pods) {
    all += pod.gpus;
    if (const auto used = pod.used.gpu_utilization) {
      busy += *used * pod.gpus;
      weight += pod.gpus;
    }
    if (const auto used = pod.used.max_gpu_memory) use.max_memory = std::max(use.max_memory.value_or(0), *used);
  }
  if (weight > 0 && 2 * weight >= all) use.utilization = busy / weight;
  use.gpus = interval.running_gpus;
  if (interval.memories.size() == 1) use.memory = *interval.memories.begin();
  return use;
}

void RunBook::Job::End(const Interval& interval) {
  usage.Add(interval.pods, std::max(interval.seconds, 1.0));
  const Time start = WholeSeconds(*interval.began);
  run.start = run.uid.empty() ? start : std::min(run.start, start);
  run.uid = ref.uid;
  run.job = ref.ToString();
  // Of a job on several types it cannot be said what it does on one.
  run.gpu_type = interval.gpu_types.size() == 1 ? *interval.gpu_types.begin() : std::string();
  run.gpus = std::max(run.gpus, interval.gpus());
  run.gpu_seconds = std::llround(gpu_seconds + interval.gpu_seconds);
  run.usage = usage.Summary();
  last = UseIn(interval);
  run.end = interval.is_running ? std::nullopt : std::optional(WholeSeconds(*interval.ended));
  run.outcome = interval.is_running ? api::RunOutcome::kNotKnown : interval.outcome;
}

void RunBook::See(GpuPod pod) {
  const auto [owner, is_new_owner] = owners_.try_emplace(pod.owner->Id(), pod.owner);
  if (is_new_owner) with_pods_.insert(RootOf(*owner->second).Id());
  pod.owner = owner->second;
  const auto [at, is_new] = pods_.try_emplace(pod.uid, pod);
  if (is_new) return;
  if (at->second.ended && !pod.ended) {  // Old news.
    pod.ended = at->second.ended;
    pod.outcome = at->second.outcome;
  }
  at->second = std::move(pod);
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
  if (owners_.contains(owner_id)) with_pods_.insert(root.Id());
  const auto own = jobs_.find(owner_id);
  if (owner_id == root.Id() || own == jobs_.end()) return;
  Job& job = jobs_[root.Id()];
  const Job part = std::move(own->second);
  jobs_.erase(own);
  job.ref = root;
  job.usage.Merge(part.usage);
  job.gpu_seconds += part.gpu_seconds;
  const WorkloadRun so_far = std::exchange(job.run, part.run);
  job.run.uid = root.uid;
  job.run.job = root.ToString();
  if (so_far.uid.empty()) return;
  job.run.start = std::min(job.run.start, so_far.start);
  job.run.gpus += so_far.gpus;
  job.run.gpu_seconds += so_far.gpu_seconds;
  if (!so_far.end || !job.run.end) job.run.end = std::nullopt;
  else job.run.end = std::max(so_far.end, job.run.end);
}

void RunBook::Resume(const std::string& job_id, const WorkloadRun& before) {
  const auto at = jobs_.find(job_id);
  if (at == jobs_.end()) return;
  Job& job = at->second;
  const auto gpu_seconds = static_cast<double>(before.gpu_seconds);
  job.usage.Merge(
      RunUsage(before.usage, std::max(gpu_seconds / std::max(before.gpus, 1), 1.0), std::max(gpu_seconds, 1.0)));
  // Pods that began since then are further ones. Those that ran before were counted, from their beginning, and what is
  // more was of pods that have gone. When it was recorded is not known, so what the living pods used since then is
  // taken off as well: that much of the gone ones is missing, all of it at most.
  const bool is_behind = before.end && *before.end <= job.run.start;
  const std::int64_t gone = is_behind ? before.gpu_seconds : before.gpu_seconds - job.run.gpu_seconds;
  job.gpu_seconds += static_cast<double>(std::max<std::int64_t>(gone, 0));
  job.run.gpu_seconds += std::max<std::int64_t>(gone, 0);
  job.run.start = std::min(job.run.start, before.start);
  job.run.gpus = std::max(job.run.gpus, before.gpus);
  job.run.usage = job.usage.Summary();
  if (job.run.end && !before.end) job.run.end = std::max(*job.run.end, EarliestEndOf(before));
}

std::vector<RunBook::PodOfJob> RunBook::PodsByJob(Ids& ids) const {
  std::vector<PodOfJob> pods;
  pods.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) {
    const JobRef& root = RootOf(*pod.owner);
    const auto [id, is_new] = ids.try_emplace(&root);
    if (is_new) id->second = root.Id();
    pods.push_back({id->second, &root, &pod});
  }
  std::ranges::sort(pods, {}, &PodOfJob::job_id);
  return pods;
}

RunBook::Names RunBook::ContestedNames(const std::vector<PodOfJob>& pods) const {
  std::vector<std::pair<const kube::ObjectKey*, std::string_view>> names;
  names.reserve(pods.size() + past_.size());
  for (const PodOfJob& of : pods) names.emplace_back(&of.pod->key, of.job_id);
  for (const Past& past : past_) names.emplace_back(&past.pod, past.job_id);
  std::ranges::sort(names, {}, [](const auto& name) -> const kube::ObjectKey& { return *name.first; });
  Names contested;
  for (std::size_t at = 1; at < names.size(); ++at) {
    const auto &before = names[at - 1], &name = names[at];
    if (*before.first == *name.first && before.second != name.second) contested.insert(*name.first);
  }
  return contested;
}

struct RunBook::Moment {
  Time start, now;
  const GpusOf& gpus_of;
  const UsageByPod& usage;
  const Names& contested;
};

RunBook::Interval RunBook::IntervalOf(std::span<const PodOfJob> pods, const Moment& moment) {
  Interval interval;
  for (const PodOfJob& of : pods) {
    const GpuPod& pod = *of.pod;
    const Time until = std::min(pod.ended.value_or(moment.now), moment.now);
    interval.Add(pod, until, moment.gpus_of);
    PodInterval part{.seconds = SecondsBetween(std::max(pod.started, moment.start), until), .gpus = pod.gpus};
    interval.seconds = std::max(interval.seconds, SecondsBetween(std::max(*interval.began, moment.start), until));
    const auto used = moment.usage.find(pod.key);
    if (used != moment.usage.end() && !moment.contested.contains(pod.key)) part.used = used->second;
    interval.pods.push_back(part);
  }
  return interval;
}

std::vector<JobRun> RunBook::EndInterval(const UsageByPod& usage, Time now, double window, double reach,
                                         const GpusOf& gpus_of) {
  const Time earliest = SecondsBefore(now, window);
  const Time start = std::max(interval_start_.value_or(earliest), earliest);
  interval_start_ = now;
  std::erase_if(past_, [&](const Past& past) { return SecondsBetween(past.ended, now) > kLongestLook; });
  Ids ids;
  const std::vector<PodOfJob> pods = PodsByJob(ids);
  const Names contested = ContestedNames(pods);
  for (auto first = pods.begin(); first != pods.end();) {
    const auto last = std::find_if(first, pods.end(), [&](const auto& of) { return of.job_id != first->job_id; });
    Job& job = jobs_[std::string(first->job_id)];
    job.ref = *first->job;
    job.End(IntervalOf({first, last}, {start, now, gpus_of, usage, contested}));
    first = last;
  }
  // What is left of an owner whose pods turned out to be another job's.
  std::erase_if(jobs_, [&](const auto& job) {
    return !job.second.run.end && !std::ranges::binary_search(pods, job.first, {}, &PodOfJob::job_id);
  });
  AddLate(usage, SecondsBefore(now, reach), contested);
  DropEnded(now);
  std::vector<JobRun> runs;
  for (const auto& [id, job] : jobs_) runs.push_back({job.ref, job.run, job.last});
  return runs;
}

Time EarliestEndOf(const WorkloadRun& run) {
  return {run.start.value + std::chrono::seconds(run.gpu_seconds / std::max(run.gpus, 1))};
}

std::vector<GpuPod> RunBook::PodsOf(const std::string& job_id) const {
  std::vector<GpuPod> pods;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.ended && RootOf(*pod.owner).Id() == job_id) pods.push_back(pod);
  }
  return pods;
}

std::vector<RunBook::Running> RunBook::RunningPods(Time now, double reach) const {
  std::unordered_map<kube::ObjectKey, int> owners_of_name;
  for (const auto& [uid, pod] : pods_) ++owners_of_name[pod.key];
  for (const Past& past : past_) {
    if (SecondsBetween(past.ended, now) <= reach) ++owners_of_name[past.pod];
  }
  std::vector<Running> running;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.ended) running.push_back({pod, owners_of_name.at(pod.key) == 1});
  }
  return running;
}

bool RunBook::Forget(const std::string& job_id) {
  if (with_pods_.contains(job_id)) return false;
  jobs_.erase(job_id);
  return true;
}

void RunBook::AddLate(const UsageByPod& usage, Time earliest, const Names& contested) {
  struct Late {
    std::vector<PodInterval> pods;
    Time from, to;
  };
  std::map<std::string, Late> late;
  for (const Past& past : past_) {
    const auto job = jobs_.find(past.job_id);
    if (job == jobs_.end() || !job->second.run.end || job->second.run.usage != api::ResourceUsage()) continue;
    Late& its = late.try_emplace(past.job_id, Late{{}, past.started, past.ended}).first->second;
    its.from = std::min(its.from, past.started);
    its.to = std::max(its.to, past.ended);
    PodInterval& pod = its.pods.emplace_back();
    pod.seconds = SecondsBetween(past.started, past.ended);
    pod.gpus = past.gpus;
    const auto used = usage.find(past.pod);
    if (used != usage.end() && !contested.contains(past.pod)) pod.used = used->second;
  }
  for (auto& [id, its] : late) {
    Job& job = jobs_.at(id);
    const Time began = std::min(its.from, job.run.start);
    if (2 * SecondsBetween(std::max(began, earliest), its.to) < SecondsBetween(began, its.to)) {
      for (PodInterval& pod : its.pods) pod.used = MaximaOf(pod.used);
    }
    job.usage.Add(its.pods, std::max(SecondsBetween(its.from, its.to), 1.0));
    job.run.usage = job.usage.Summary();
  }
}

// Their intervals are over. A job that has none left stays until it is forgotten.
void RunBook::DropEnded(Time now) {
  std::set<std::string> owners;
  for (auto at = pods_.begin(); at != pods_.end();) {
    const GpuPod& pod = at->second;
    if (!pod.ended || *pod.ended > now) {
      owners.insert(pod.owner->Id());
      ++at;
      continue;
    }
    const auto job = jobs_.find(RootOf(*pod.owner).Id());
    if (job != jobs_.end()) job->second.gpu_seconds += pod.gpus * SecondsBetween(pod.started, *pod.ended);
    past_.push_back({pod.key, RootOf(*pod.owner).Id(), pod.started, *pod.ended, pod.gpus});
    at = pods_.erase(at);
  }
  std::erase_if(roots_, [&](const auto& root) { return !owners.contains(root.first); });
  std::erase_if(owners_, [&](const auto& owner) { return !owners.contains(owner.first); });
  with_pods_.clear();
  for (const auto& [id, owner] : owners_) with_pods_.insert(RootOf(*owner).Id());
}

}  // namespace grus
