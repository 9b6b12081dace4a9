// SPDX-License-Identifier: Apache-2.0
// The runs of a cluster's jobs: which pods with GPUs each has, and what they use, interval by interval.
//
// A job is the object at the root of its pods' controllers. A pod that vanishes before the interval ends still counts
// in it. Pure: no I/O, clock or thread. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "controllers/telemetry/gpu_pods.h"
#include "controllers/telemetry/run_usage.h"

namespace grus {

// Of the GPUs of a job in one interval.
struct GpuInterval {
  std::int32_t gpus = 0;                   // Of the pods that run.
  std::optional<double> utilization = {};  // 0 to 1, the mean; none: fewer than half of the GPUs have one.
  std::optional<double> max_memory = {};   // Bytes, of one GPU.
  double memory = 0;                       // Bytes that each of its GPUs has; 0: not known, or not the same.
};

// Of the GPUs of a node.
struct NodeGpus {
  std::string type = {};  // Empty: not known.
  double memory = 0;      // Bytes of each; 0: not known.
};

// What a job did in the last interval.
struct JobNow {
  JobRef ref = {};
  GpuInterval use = {};
  kube::Time start = {};
  bool is_over = false;
};

struct JobRun {
  JobRef job = {};
  api::WorkloadRun run = {};
  bool is_over() const { return run.end.has_value(); }
};

// Of a run that was recorded while it ran, and not since: it held its GPUs so long at least.
kube::Time EarliestEndOf(const api::WorkloadRun& run);

class RunBook {
 public:
  // A pod that began, or what has changed about it.
  void See(GpuPod pod);
  // It was deleted at `now`, if it had not ended before.
  void Remove(const kube::CompactKey& pod, std::string_view uid, kube::Time now);

  // `owner` belongs to `root`: its pods are that job's.
  void SetRoot(const JobId& owner, const JobRef& root);
  // What was recorded of the job before this process began. If only some of its pods have gone, the GPU seconds are too
  // low by what the others used since it was recorded.
  void Resume(const JobId& job_id, const api::WorkloadRun& before);

  // Ends the interval that began with the last call, or `window` seconds ago: `usage` is of all of it, and of `window`
  // seconds at most, but of `reach` seconds for jobs that had ended before. All jobs that have a run. `gpus_of`: those
  // of a node.
  using GpusOf = std::function<NodeGpus(const std::string& node)>;
  std::vector<JobNow> EndInterval(const UsageByPod& usage, kube::Time now, double window, double reach,
                                  const GpusOf& gpus_of);
  // As of the last interval; nullopt: there is none.
  std::optional<JobRun> RunOf(const JobId& job_id) const;
  // Of a run that is over. False: it has pods again. Fast beside many pods: of a flood each is a run.
  bool Forget(const JobId& job_id);

  // Those of the job that run.
  std::vector<GpuPod> PodsOf(const JobId& job_id) const;
  bool Has(const GpuPod& pod) const { return pods_.Find(pod.key, pod.uid) != pods_.end(); }
  // Of a pod that runs or ended lately, as it is kept here; nullopt: there is none.
  std::optional<kube::CompactKey> NameOf(const kube::ObjectKey& pod) const;
  // All that run. `reach`: how many seconds numbers by names of pods may lie back.
  struct Running {
    GpuPod pod;
    bool is_alone = false;  // No other pod had its name in that time, as far as was seen.
  };
  std::vector<Running> RunningPods(kube::Time now, double reach) const;
  std::size_t pod_count() const { return pods_.size(); }
  std::size_t job_count() const { return jobs_.size(); }

 private:
  struct Interval;
  struct Job {
    void End(const Interval& interval);
    static GpuInterval UseIn(const Interval& interval);
    api::WorkloadRun Run() const;

    JobRef ref;
    RunUsage usage;
    std::optional<kube::Time> start, end;  // No start: it has no run yet.
    api::RunOutcome outcome = api::RunOutcome::kNotKnown;
    std::int32_t gpus = 0;
    std::int64_t gpu_seconds = 0;
    kube::CompactString gpu_type;
    GpuInterval last;
    double gone_gpu_seconds = 0;  // Of pods that have gone.
  };
  const JobRef& RootOf(const JobRef& owner) const;
  struct PodOfJob {
    Job* job = nullptr;
    const GpuPod* pod = nullptr;
  };
  // All pods, those of a job one after another. Makes jobs that are new.
  std::vector<PodOfJob> PodsByJob();
  // The names that pods of two jobs had, in this interval or shortly before: numbers may be of either.
  using Names = std::set<kube::CompactKey>;
  Names ContestedNames() const;
  struct Moment;
  static Interval IntervalOf(std::span<const PodOfJob> pods, const Moment& moment);  // Of one job.
  // What is told only now, of the time since `earliest`, of jobs that have ended: no source answered while they ran. If
  // that is less than half of the run, only maxima count.
  void AddLate(const UsageByPod& usage, kube::Time earliest, const Names& contested);
  void DropEnded(kube::Time now);

  GpuPods pods_;
  using ById = std::unordered_map<JobId, std::shared_ptr<const JobRef>, kube::HashOfKey, kube::SameKey>;
  ById owners_;  // Pods share them.
  ById roots_;   // By the owner's ID; of owners that have pods, and are not jobs themselves.
  std::map<JobId, Job> jobs_;
  std::set<JobId> with_pods_;  // IDs of jobs that have pods.
  std::optional<kube::Time> interval_start_;
  struct Past {
    JobId job_id;
    kube::Time started, ended;
    std::int32_t gpus = 0;
  };
  // By name: pods that ended shortly before the interval. Queries look back further.
  std::multimap<kube::CompactKey, Past> past_;
};

}  // namespace grus
