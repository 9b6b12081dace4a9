// SPDX-License-Identifier: Apache-2.0
// Brings one TrialJob and its trials, which are jobs or pods, to what the plan says.
//
// A pass reads only caches and what was measured (of source Prometheus it asks for that), plans purely, and writes in
// this order, so that a stop after any write leaves a state from which the next pass goes on to the same end: the knee
// into the job that it is for; status; deletes of what has ended; what running trials lack; new trials; events. A trial
// is in the status before its child is made, and its end is there before its child is deleted. A pass on caches that
// have not seen our last writes waits for them.
// What is kept in memory is a cache: losing it costs reads and a second of accuracy.
// Thread-safe: many keys at once.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/frame/key_feed.h"
#include "controllers/frame/status_writer.h"
#include "controllers/trial/profile_store.h"
#include "controllers/trial/prometheus.h"
#include "controllers/trial/trial_holdings.h"
#include "controllers/trial/trial_measurements.h"
#include "controllers/trial/trial_objects.h"
#include "controllers/trial/trial_plan.h"

namespace grus {

class ChildWriter;

struct TrialCaches {
  kube::Informer& trial_jobs;
  kube::Informer& jobs;  // All ElasticHorovodJobs.
  kube::Informer& pods;
  kube::Informer& nodes;
  kube::Informer* groups = nullptr;  // All PodGroups; null: trials that are pods are no gangs.
};

class TrialReconciler final : public kube::Reconciler {
 public:
  // Adds the indexes that it needs to `caches`. REQUIRES: the informers are not started yet.
  TrialReconciler(kube::Client& client, TrialCaches caches, const ClusterAccount& account, ProfileStore& profiles,
                  Prometheus& prometheus, kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log);

  // Sends keys of changed TrialJobs to `queue`. Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  using Job = std::shared_ptr<const api::TrialJob>;
  // A trial's pods as read from the API server; used until the cache is as new. Empty version: not read yet.
  struct LivePods {
    kube::TimePoint next_look;
    std::string resource_version = {};
    TrialObjects::Pods pods = {};
  };
  struct Memory {
    TrialHoldings held;
    std::map<std::string, LivePods> live;                    // By trial, where the cache may be behind.
    std::map<std::string, kube::TimePoint> made;             // When this process made its child.
    std::map<std::string, kube::TimePoint> stalled;          // When its child was first seen refused.
    std::optional<kube::TimePoint> asked, unanswered_since;  // Of Prometheus.
    std::string source_error;                                // What view.source_error was after that.
  };
  struct Refusal {
    int times = 0;
    std::string message;
  };
  // What is kept until the spec changes.
  struct SpecMemory {
    std::map<std::string, Refusal> refusals;   // Of a trial's child, by the API server.
    std::optional<std::string> pattern_error;  // None: not tried yet.
  };

  // The TrialJob of a trial's job, or of one of its pods; nullopt: it is no trial.
  std::optional<kube::ObjectKey> TrialJobOf(const kube::ObjectKey& trial) const;
  void NoteGone(const kube::Change& pod);
  bool HasCaughtUp(const api::TrialJob& job);
  TrialView Observe(const Job& job, std::stop_token stop);
  void ReadWorkload(TrialView& view) const;
  const TrialObjects& ObjectsOf(const api::TrialJob& job) const;
  TrialRun RunOf(const api::TrialJob& job, const std::string& trial, Memory& memory);
  // Reads the pods of a run from the API server if they should have appeared or gone by now. Blocks for one read per
  // run, at most every kDoubt.
  void LookAtDoubtful(TrialView& view, std::stop_token stop);
  // Null: the cache is as new.
  const LivePods* NewerThanCache(const api::TrialJob& job, const std::string& trial, const Memory& memory) const;
  // The trial in the last status; null: it is not there.
  std::shared_ptr<const kube::Pod> NewestPod(const api::TrialJob& job, const std::string& trial,
                                             const std::string& name);
  std::map<std::string, TypeNodes> NodesFor(const api::TrialJob& job, const Workload& workload) const;
  // The measurements in its WorkloadProfile, with the GPU types as its space names them. REQUIRES: the view has the
  // nodes.
  std::vector<KnownTrial> KnownFor(const TrialView& view) const;
  bool DoOthersWait() const;
  void ReadPushed(const api::TrialJob& job, const std::string& trial, const TrialRun& run);
  // Blocks for a few seconds at most. Sets source_error while there has been no answer for some time.
  void AskPrometheus(TrialView& view, std::stop_token stop);
  GpuUse AskGpuUse(const std::string& url, const std::string& ns, const std::string& trial, kube::Duration since_start,
                   std::stop_token stop);
  std::vector<MeasureTarget> TargetsOf(const TrialView& view, const TrialPlan& plan) const;

  kube::Status Execute(const TrialView& view, const TrialPlan& plan, std::optional<kube::Duration>& deferred,
                       std::stop_token stop);
  kube::Status Apply(const TrialView& view, std::int32_t replicas, std::stop_token stop);
  // Saves new measurements to the profile. An error if a retry may help; other failures are only logged.
  kube::Status SaveToProfile(const TrialView& view, const TrialPlan& plan, std::stop_token stop);
  kube::Status WriteStatus(const TrialView& view, const TrialPlan& plan, std::optional<kube::Duration>& deferred,
                           std::stop_token stop);
  kube::Status StopTrials(const TrialView& view, const TrialPlan& plan, ChildWriter& writer);
  kube::Status MakeGroups(const TrialView& view, const TrialPlan& plan, ChildWriter& writer);
  kube::Status StartTrial(const TrialView& view, const TrialStart& start, ChildWriter& writer);
  // Reports a failed write, and says when to try again.
  kube::Result<kube::Action> Refused(const TrialView& view, kube::Error error, std::stop_token stop);
  void ForgetFreed(const TrialView& view);
  void Forget(const kube::ObjectKey& key);

  kube::Client& client_;
  const TrialCaches caches_;
  const ClusterAccount& account_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  ProfileStore& profiles_;
  Prometheus& prometheus_;
  const JobTrials job_trials_;
  const PodTrials pod_trials_;
  const kube::Store::IndexId trial_jobs_by_workload_;
  kube::WriteTracker writes_;
  KeyFeed feed_;
  StatusWriter statuses_;
  kube::ObjectMemory<Memory> memory_;
  kube::ObjectMemory<SpecMemory> spec_memory_{kube::KeptFor::kSpec};

  mutable std::mutex mutex_;                                     // Guards trial_jobs_.
  std::unordered_map<kube::ObjectKey, std::string> trial_jobs_;  // Of a trial's job: the TrialJob's name.

  TrialMeasurements measurements_;  // Last: it wakes keys until it is gone.
};

}  // namespace grus
