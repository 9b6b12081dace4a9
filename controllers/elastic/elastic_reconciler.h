// SPDX-License-Identifier: Apache-2.0
// Brings one ElasticHorovodJob and its children to what the plan says.
//
// A pass reads the caches, asks the API server for what they do not hold, plans purely, and writes: workers, status,
// launcher (see JobChildren), events. A worker leaves the host list in one pass, and its pod is deleted in a later one.
// A pass waits until the caches have seen our last writes. Thread-safe: many keys at once.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "clientlib/base/log.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/elastic/elastic_planning.h"
#include "controllers/elastic/job_children.h"
#include "controllers/elastic/missing_pods.h"
#include "controllers/elastic/training_output.h"
#include "controllers/elastic/worker_adoption.h"
#include "controllers/frame/status_writer.h"

namespace grus {

class ElasticReconciler final : public kube::Reconciler {
 public:
  // Adds the indexes and handlers that it needs to `caches`. REQUIRES: the informers are not started yet.
  ElasticReconciler(kube::Client& client, ElasticCaches caches, ClusterAccount& account, kube::EventRecorder& events,
                    const kube::Clock& clock, const kube::Log& log);

  // Sends keys of changed jobs to `queue`. Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  using Job = std::shared_ptr<const api::ElasticHorovodJob>;
  // Kept until the spec changes.
  struct Kept {
    int failed_tries = 0;  // See View.
    // By UID, workers that had another controller's gate: when it was first seen without; nullopt: it has it.
    std::map<std::string, std::optional<kube::Time>> gated_by_others = {};
    bool is_namespace_ending = false;  // The job ends with it.
    bool had_launcher = false;         // See View.
    // What the API server had of the profile that the job names when the cache lacked it; nullopt: not asked.
    std::optional<std::shared_ptr<const api::WorkloadProfile>> profile_ahead = {};
  };

  kube::Result<View> Observe(const Job& job, const Children& children, std::stop_token stop);
  // A profile that the job names may be newer than the cache: asks once, so that it counts from the start.
  kube::Status ReadProfile(View& view, std::stop_token stop);
  kube::Status ReadPods(const Children& children, View& view, std::stop_token stop);
  // A pod does not tell when others let it go: the scheduler's time begins there.
  void NoteGatesOfOthers(View& view);
  // Returns when to look again, if something waits.
  kube::Result<std::optional<kube::Duration>> Execute(const JobPass& pass);
  kube::Result<Deferred> WriteStatus(const View& view, const api::ElasticHorovodJobStatus& status,
                                     kube::Duration patience, std::stop_token stop);
  void NoteTry(const View& view, const Plan& plan);
  // Reports a failed write in the status, and decides when to retry.
  kube::Result<kube::Action> Refused(const View& view, const Plan& plan, kube::Error error, std::stop_token stop);
  void Forget(const kube::ObjectKey& key);

  kube::Client& client_;
  const ElasticCaches caches_;
  ClusterAccount& account_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_job_;
  kube::Store::IndexId jobs_by_profile_ = 0;  // Set if there are profiles: by the name that spec.profile means.
  kube::WriteTracker writes_;
  KeyFeed feed_;
  StatusWriter statuses_;
  ElasticPlanning planning_;
  MissingPods missing_pods_;
  TrainingOutput training_output_;
  JobChildren children_;
  WorkerAdoption adoption_;
  kube::ObjectMemory<Kept> kept_{kube::KeptFor::kSpec};
};

}  // namespace grus
