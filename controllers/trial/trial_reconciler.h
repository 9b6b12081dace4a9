// SPDX-License-Identifier: Apache-2.0
// Brings one TrialJob and its trials, which are jobs or pods, to what the plan says.
//
// A pass reads only caches and what was measured (of source Prometheus it asks for that), plans purely, and writes in
// this order, so that a stop after any write leaves a state from which the next pass goes on to the same end: the knee
// into the job that it is for; status; deletes of what has ended; what running trials lack; new trials; events. A trial
// is in the status before its child is made, and its end is there before its child is deleted. A pass on caches that
// have not seen our last writes waits for them. Thread-safe: many keys at once.
#pragma once

#include <optional>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/frame/key_feed.h"
#include "controllers/frame/status_writer.h"
#include "controllers/profile/profile_store.h"
#include "controllers/trial/trial_runs.h"
#include "controllers/trial/trial_sources.h"
#include "controllers/trial/trial_writer.h"

namespace grus {

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

  TrialView Observe(const Job& job, std::stop_token stop);
  void ReadWorkload(TrialView& view) const;
  kube::Result<Deferred> Execute(const TrialView& view, const TrialPlan& plan, std::stop_token stop);
  // Saves new measurements to the profile. An error if a retry may help; other failures are only logged.
  kube::Status SaveToProfile(const TrialView& view, const TrialPlan& plan, std::stop_token stop);
  kube::Result<Deferred> WriteStatus(const TrialView& view, const api::TrialJobStatus& status, bool is_urgent,
                                     std::stop_token stop);
  // How a failed write is told, and when it is tried again.
  kube::Result<kube::Action> Refused(const TrialView& view, kube::Error error, std::stop_token stop);
  void Forget(const kube::ObjectKey& key);

  const TrialCaches caches_;
  const ClusterAccount& account_;
  ProfileStore& profiles_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId trial_jobs_by_workload_;
  kube::WriteTracker writes_;
  KeyFeed feed_;
  StatusWriter statuses_;
  TrialRuns runs_;
  TrialWriter trials_;
  TrialSources sources_;  // Last: it wakes keys until it is gone.
};

}  // namespace grus
