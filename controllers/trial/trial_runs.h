// SPDX-License-Identifier: Apache-2.0
// The trials of TrialJobs as they are in the cluster: what is known of the child and the pods of each, for how long it
// holds GPUs, and whether the API server refuses it.
//
// Pods come from the cache, or from the API server where the cache may be behind. A watch may be silent for minutes
// without an error. Elsewhere that only delays; but each second of a trial costs GPUs, so pods that should have
// appeared or gone by now are read from the API server.
// What is kept in memory is a cache: losing it costs reads and a second of accuracy.
// Thread-safe, for one pass over each TrialJob at a time.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "clientlib/client/client.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/trial/trial_holdings.h"
#include "controllers/trial/trial_objects.h"

namespace grus {

class TrialSources;

class TrialRuns {
 public:
  // Adds indexes to `caches`. REQUIRES: the informers are not started yet.
  TrialRuns(kube::Client& client, const TrialCaches& caches, const kube::Clock& clock)
      : client_(client),
        pods_(caches.pods),
        clock_(clock),
        job_trials_(MakeJobTrials(caches)),
        pod_trials_(MakePodTrials(caches)) {}

  // For the kind of trials that `job` has.
  const TrialObjects& ObjectsOf(const api::TrialJob& job) const {
    return job.spec.workload.pod_template.is_null() ? *job_trials_ : *pod_trials_;
  }

  // By name, the trials in the status and those that have a child; without what `sources` tells of them. Blocks for one
  // request to the API server for each trial whose pods are in doubt, every few seconds at most.
  std::map<std::string, TrialRun> Read(const api::TrialJob& job, const TrialSources& sources, std::stop_token stop);
  // The TrialJob of a pod, and the name of its trial; nullopt: it is of none.
  using TrialKey = std::pair<kube::ObjectKey, std::string>;
  std::optional<TrialKey> TrialOf(const kube::ObjectMeta& pod) const;

  // Keeps what a worker that is gone said last. Call for each change of a pod.
  void NoteGone(const kube::Change& change);
  // Call before the child is created.
  void NoteStart(const api::TrialJob& job, const std::string& trial);
  // The API server refused a child that was made from this spec.
  void NoteRefusal(const api::TrialJob& job, const std::string& trial, const std::string& message);
  // The trial, or a part of it, could not be made. It is tried again after kRefusedRetry.
  void NoteStartRefused(const api::TrialJob& job, const std::string& trial, StartRefusal why);
  // REQUIRES: the status says what the trials of the view have held.
  void ForgetFreed(const TrialView& view);
  void Forget(const kube::ObjectKey& trial_job);

 private:
  // As read from the API server; used until the cache is as new.
  struct LivePods {
    std::optional<kube::TimePoint> next_look;  // None: they are not in doubt.
    std::string resource_version;              // Empty: not read yet.
    TrialObjects::Pods pods;
  };
  struct Kept {
    LivePods live;
    std::optional<kube::TimePoint> made;           // When this process made its child.
    std::optional<kube::TimePoint> refused_since;  // When its child was first seen refused.
    std::optional<StartRefusal> start_refused;
    kube::TimePoint start_refused_until{};
    bool IsEmpty() const {
      return !live.next_look && live.resource_version.empty() && !made && !refused_since && !start_refused;
    }
  };
  struct Memory {
    TrialHoldings held;
    std::map<std::string, Kept> trials;  // Most of which have not begun: of those there is nothing to keep.
  };
  struct Refusal {
    int count = 0;
    std::string last;  // The message of the API server.
  };
  using Refusals = std::map<std::string, Refusal>;  // By trial.

  TrialRun RunOf(const api::TrialJob& job, const std::string& trial, Memory& memory);
  // Reads its pods from the API server if they should have appeared or gone by now, and then the run anew.
  void LookIfDoubtful(const api::TrialJob& job, const std::string& trial, bool has_log_ended, TrialRun& run,
                      std::stop_token stop);
  // Null: the cache is as new.
  const TrialObjects::Pods* NewerThanCache(const std::string& ns, const LivePods& live) const;

  kube::Client& client_;
  const kube::Informer& pods_;
  const kube::Clock& clock_;
  const std::unique_ptr<const TrialObjects> job_trials_, pod_trials_;
  kube::ObjectMemory<Memory> memory_;
  kube::ObjectMemory<Refusals> refusals_{kube::KeptFor::kSpec};

  mutable std::mutex mutex_;                                     // Guards trial_jobs_.
  std::unordered_map<kube::ObjectKey, std::string> trial_jobs_;  // Of a trial's job: the TrialJob's name.
};

}  // namespace grus
