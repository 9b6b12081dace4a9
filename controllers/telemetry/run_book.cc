// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/run_book.h"

#include <algorithm>
#include <cmath>
#include <iterator>
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
    const NodeGpus node = gpus_of(pod.node.str());
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
    if (const MaybeNumber used = pod.used.gpu_utilization) {
      busy += *used * pod.gpus;
      weight += pod.gpus;
    }
    if (const MaybeNumber used = pod.used.max_gpu_memory) use.max_memory = std::max(use.max_memory.value_or(0), *used);
  }
  if (weight > 0 && 2 * weight >= all) use.utilization = busy / weight;
  use.gpus = interval.running_gpus;
  if (interval.memories.size() == 1) use.memory = *interval.memories.begin();
  return use;
}

void RunBook::Job::End(const Interval& interval) {
  usage.Add(interval.pods, std::max(interval.seconds, 1.0));
  const Time began = WholeSeconds(*interval.began);
  start = std::min(start.value_or(began), began);
  // Of a job on several types it cannot be said what it does on one.
  gpu_type = kube::CompactString::Shared(interval.gpu_types.size() == 1 ? *interval.gpu_types.begin() : std::string());
  gpus = std::max(gpus, interval.gpus());
  gpu_seconds = std::llround(gone_gpu_seconds + interval.gpu_seconds);
  last = UseIn(interval);
  end = interval.is_running ? std::nullopt : std::optional(WholeSeconds(*interval.ended));
  outcome = interval.is_running ? api::RunOutcome::kNotKnown : interval.outcome;
}

WorkloadRun RunBook::Job::Run() const {
  return {.uid = ref.uid.str(),
          .job = ref.ToString(),
          .gpu_type = gpu_type.str(),
          .gpus = gpus,
          .gpu_seconds = gpu_seconds,
          .start = start.value_or(Time()),
          .end = end,
          .outcome = outcome,
          .usage = usage.Summary()};
}

void RunBook::See(GpuPod pod) {
  const auto [owner, is_new_owner] = owners_.try_emplace(pod.owner->Id(), pod.owner);
  if (is_new_owner) with_pods_.insert(RootOf(*owner->second).Id());
  pod.owner = owner->second;
  const auto known = pods_.Find(pod.key, pod.uid);
  if (known != pods_.end() && known->ended && !pod.ended) {  // Old news.
    pod.ended = known->ended;
    pod.outcome = known->outcome;
  }
  pods_.Put(std::move(pod));
}

void RunBook::Remove(const kube::CompactKey& pod, std::string_view uid, Time now) {
  const auto known = pods_.Find(pod, uid);
  if (known == pods_.end() || known->ended) return;
  GpuPod ended = *known;
  ended.ended = now;
  ended.outcome = api::RunOutcome::kDeleted;
  pods_.Put(std::move(ended));
}

std::optional<kube::CompactKey> RunBook::NameOf(const kube::ObjectKey& pod) const {
  if (const auto [first, last] = pods_.Named(pod); first != last) return first->key;
  const auto past = past_.find(pod);
  return past == past_.end() ? std::nullopt : std::optional(past->first);
}

const JobRef& RunBook::RootOf(const JobRef& owner) const {
  const auto at = roots_.find(owner.Id());
  return at == roots_.end() ? owner : *at->second;
}

void RunBook::SetRoot(const JobId& owner, const JobRef& root) {
  const auto known = owners_.find(owner);
  if (known != owners_.end() && *known->second == root) roots_.erase(owner);
  else roots_[owner] = std::make_shared<const JobRef>(root);
  if (known != owners_.end()) with_pods_.insert(root.Id());
  const auto own = jobs_.find(owner);
  if (owner == root.Id() || own == jobs_.end()) return;
  const Job part = std::move(own->second);
  jobs_.erase(own);
  const auto [at, is_new] = jobs_.try_emplace(root.Id(), part);
  Job& job = at->second;
  job.ref = root;
  if (is_new) return;
  job.usage.Merge(part.usage);
  job.gone_gpu_seconds += part.gone_gpu_seconds;
  job.start = std::min(job.start, part.start);
  job.gpus += part.gpus;
  job.gpu_seconds += part.gpu_seconds;
  job.gpu_type = part.gpu_type;
  job.outcome = part.outcome;
  job.end = job.end && part.end ? std::max(job.end, part.end) : std::nullopt;
}

void RunBook::Resume(const JobId& job_id, const WorkloadRun& before) {
  const auto at = jobs_.find(job_id);
  if (at == jobs_.end() || !at->second.start) return;
  Job& job = at->second;
  const auto gpu_seconds = static_cast<double>(before.gpu_seconds);
  job.usage.Merge(
      RunUsage(before.usage, std::max(gpu_seconds / std::max(before.gpus, 1), 1.0), std::max(gpu_seconds, 1.0)));
  // Pods that began since then are further ones. Those that ran before were counted, from their beginning, and what is
  // more was of pods that have gone. When it was recorded is not known, so what the living pods used since then is
  // taken off as well: that much of the gone ones is missing, all of it at most.
  const bool is_behind = before.end && *before.end <= *job.start;
  const std::int64_t gone = is_behind ? before.gpu_seconds : before.gpu_seconds - job.gpu_seconds;
  job.gone_gpu_seconds += static_cast<double>(std::max<std::int64_t>(gone, 0));
  job.gpu_seconds += std::max<std::int64_t>(gone, 0);
  job.start = std::min(*job.start, before.start);
  job.gpus = std::max(job.gpus, before.gpus);
  if (job.end && !before.end) job.end = std::max(*job.end, EarliestEndOf(before));
}

std::vector<RunBook::PodOfJob> RunBook::PodsByJob() {
  std::vector<PodOfJob> pods;
  pods.reserve(pods_.size());
  std::unordered_map<const JobRef*, Job*> jobs;  // By owner.
  for (const GpuPod& pod : pods_) {
    Job*& job = jobs[pod.owner.get()];
    if (job == nullptr) {
      const JobRef& root = RootOf(*pod.owner);
      job = &jobs_[root.Id()];
      job->ref = root;
    }
    pods.push_back({job, &pod});
  }
  std::ranges::sort(pods, {}, &PodOfJob::job);
  return pods;
}

RunBook::Names RunBook::ContestedNames() const {
  Names contested;
  const GpuPod* before = nullptr;
  const auto job_of = [this](const GpuPod& pod) { return RootOf(*pod.owner).Id(); };
  for (const GpuPod& pod : pods_) {
    if (before != nullptr && before->key == pod.key && job_of(*before) != job_of(pod)) contested.insert(pod.key);
    before = &pod;
  }
  for (const auto& [name, past] : past_) {
    const auto [first, last] = pods_.Named(name);
    const bool is_one = std::all_of(first, last, [&](const GpuPod& pod) { return job_of(pod) == past.job_id; });
    if (!is_one || past_.lower_bound(name)->second.job_id != past.job_id) contested.insert(name);
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
    const PodUsage* used = moment.usage.Find(pod.key);
    if (used != nullptr && !moment.contested.contains(pod.key)) part.used = *used;
    interval.pods.push_back(part);
  }
  return interval;
}

std::vector<JobNow> RunBook::EndInterval(const UsageByPod& usage, Time now, double window, double reach,
                                         const GpusOf& gpus_of) {
  const Time earliest = SecondsBefore(now, window);
  const Time start = std::max(interval_start_.value_or(earliest), earliest);
  interval_start_ = now;
  std::erase_if(past_, [&](const auto& past) { return SecondsBetween(past.second.ended, now) > kLongestLook; });
  const std::vector<PodOfJob> pods = PodsByJob();
  const Names contested = ContestedNames();
  for (auto first = pods.begin(); first != pods.end();) {
    const auto last = std::find_if(first, pods.end(), [&](const auto& of) { return of.job != first->job; });
    first->job->End(IntervalOf({first, last}, {start, now, gpus_of, usage, contested}));
    first = last;
  }
  // What is left of an owner whose pods turned out to be another job's.
  std::erase_if(jobs_, [&](auto& job) {
    return !job.second.end && !std::ranges::binary_search(pods, &job.second, {}, &PodOfJob::job);
  });
  AddLate(usage, SecondsBefore(now, reach), contested);
  DropEnded(now);
  std::vector<JobNow> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) jobs.push_back({job.ref, job.last, *job.start, job.end.has_value()});
  return jobs;
}

std::optional<JobRun> RunBook::RunOf(const JobId& job_id) const {
  const auto at = jobs_.find(job_id);
  if (at == jobs_.end()) return std::nullopt;
  return JobRun{at->second.ref, at->second.Run()};
}

Time EarliestEndOf(const WorkloadRun& run) {
  return {run.start.value + std::chrono::seconds(run.gpu_seconds / std::max(run.gpus, 1))};
}

std::vector<GpuPod> RunBook::PodsOf(const JobId& job_id) const {
  std::vector<GpuPod> pods;
  for (const GpuPod& pod : pods_) {
    if (!pod.ended && RootOf(*pod.owner).Id() == job_id) pods.push_back(pod);
  }
  return pods;
}

std::vector<RunBook::Running> RunBook::RunningPods(Time now, double reach) const {
  Names past_names;
  for (const auto& [name, past] : past_) {
    if (SecondsBetween(past.ended, now) <= reach) past_names.insert(name);
  }
  std::vector<Running> running;
  for (const GpuPod& pod : pods_) {
    const auto [first, last] = pods_.Named(pod.key);
    if (!pod.ended) running.push_back({pod, std::next(first) == last && !past_names.contains(pod.key)});
  }
  return running;
}

bool RunBook::Forget(const JobId& job_id) {
  if (with_pods_.contains(job_id)) return false;
  jobs_.erase(job_id);
  return true;
}

void RunBook::AddLate(const UsageByPod& usage, Time earliest, const Names& contested) {
  struct Late {
    std::vector<PodInterval> pods;
    Time from, to;
  };
  std::map<JobId, Late> late;
  for (const auto& [name, past] : past_) {
    const auto job = jobs_.find(past.job_id);
    if (job == jobs_.end() || !job->second.end || job->second.usage.Summary() != api::ResourceUsage()) continue;
    Late& its = late.try_emplace(past.job_id, Late{{}, past.started, past.ended}).first->second;
    its.from = std::min(its.from, past.started);
    its.to = std::max(its.to, past.ended);
    PodInterval& pod = its.pods.emplace_back();
    pod.seconds = SecondsBetween(past.started, past.ended);
    pod.gpus = past.gpus;
    const PodUsage* used = usage.Find(name);
    if (used != nullptr && !contested.contains(name)) pod.used = *used;
  }
  for (auto& [id, its] : late) {
    Job& job = jobs_.at(id);
    const Time began = std::min(its.from, *job.start);
    if (2 * SecondsBetween(std::max(began, earliest), its.to) < SecondsBetween(began, its.to)) {
      for (PodInterval& pod : its.pods) pod.used = MaximaOf(pod.used);
    }
    job.usage.Add(its.pods, std::max(SecondsBetween(its.from, its.to), 1.0));
  }
}

// Their intervals are over. A job that has none left stays until it is forgotten.
void RunBook::DropEnded(Time now) {
  std::set<const JobRef*> owners;
  for (auto at = pods_.begin(); at != pods_.end();) {
    const GpuPod& pod = *at;
    if (!pod.ended || *pod.ended > now) {
      owners.insert(pod.owner.get());
      ++at;
      continue;
    }
    const JobId job_id = RootOf(*pod.owner).Id();
    const auto job = jobs_.find(job_id);
    if (job != jobs_.end()) job->second.gone_gpu_seconds += pod.gpus * SecondsBetween(pod.started, *pod.ended);
    past_.emplace(pod.key, Past{job_id, pod.started, *pod.ended, pod.gpus});
    at = pods_.Erase(at);
  }
  std::erase_if(owners_, [&](const auto& owner) { return !owners.contains(owner.second.get()); });
  std::erase_if(roots_, [&](const auto& root) { return !owners_.contains(root.first); });
  with_pods_.clear();
  for (const auto& [id, owner] : owners_) with_pods_.insert(RootOf(*owner).Id());
}

}  // namespace grus
