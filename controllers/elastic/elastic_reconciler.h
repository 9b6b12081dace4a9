// SPDX-License-Identifier: Apache-2.0
// Brings one ElasticHorovodJob and its children to what the plan says.
//
// A pass reads only caches, plans purely, and writes in this order, so that a stop after any write leaves a
// state from which the next pass goes on to the same end: Secret, PodGroup, StatefulSet; pods of lost nodes, parked
// pods, lifted gates; status; Service; host list; launcher; events. (A worker's pod goes in a later pass than the one
// that took it off the host list.) A pass on caches that have not seen our last writes waits for them. Thread-safe:
// many keys at once.
#pragma once

#include <optional>

#include "clientlib/base/log.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/elastic/child_writer.h"
#include "controllers/elastic/elastic_caches.h"
#include "controllers/elastic/elastic_planning.h"
#include "controllers/elastic/missing_pods.h"
#include "controllers/elastic/training_output.h"
#include "controllers/frame/status_writer.h"
#include "crds/types/pod_group.h"

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
  // The cached children that the writes are about.
  struct Children {
    std::shared_ptr<const kube::Service> service;
    std::shared_ptr<const kube::StatefulSet> workers;
    std::shared_ptr<const kube::ConfigMap> hosts;
    std::shared_ptr<const kube::Job> launcher;
    std::shared_ptr<const api::PodGroup> group;
  };
  // What was last compared with the wanted children and found equal.
  struct Verified {
    std::string service_version, hosts_version;
    std::int64_t workers_generation = 0, launcher_generation = 0;
    int failed_tries = 0;              // See View.
    bool is_namespace_ending = false;  // And the job with it.
  };

  bool HasCaughtUp(const api::ElasticHorovodJob& job);
  Children FindChildren(const api::ElasticHorovodJob& job) const;
  template <typename T>
  std::shared_ptr<const T> OwnedChild(const kube::Informer& informer, const api::ElasticHorovodJob& job,
                                      const std::string& name) const;
  View Observe(const Job& job, const Children& children) const;
  void ReadPods(const Children& children, View& view) const;
  bool ArePodsCurrent(const api::ElasticHorovodJob& job);
  kube::Status Execute(const View& view, const Plan& plan, const Children& children, ChildWriter& writer,
                       std::optional<kube::Duration>& deferred, std::stop_token stop);
  kube::Status WriteService(const View& view, const Plan& plan, const Children& children, ChildWriter& writer);
  kube::Status WriteSecret(const View& view, const Plan& plan, const Children& children, ChildWriter& writer);
  // Puts our labels back on the StatefulSet if that is why our cache does not have it. True if it was there.
  kube::Result<bool> RestoreHiddenWorkers(const api::ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop);
  kube::Status WriteGroup(const View& view, const Plan& plan, const Children& children, ChildWriter& writer);
  kube::Status WriteWorkers(const View& view, const Plan& plan, const Children& children, ChildWriter& writer);
  kube::Status WriteStatefulSet(const View& view, const Plan& plan, const Children& children, ChildWriter& writer);
  kube::Status WritePods(const View& view, const Plan& plan, ChildWriter& writer, std::stop_token stop);
  // Ends a pod whose node is not in the cluster any more.
  kube::Status Bury(const kube::ObjectKey& key, const View& view, ChildWriter& writer, std::stop_token stop);
  kube::Status WriteHosts(const View& view, const Plan& plan, const Children& children, ChildWriter& writer);
  // Ends pods that a launcher left behind which is not there any more: two launchers would fight over the workers. An
  // error until they are gone.
  kube::Status EndStrayLaunchers(const View& view, ChildWriter& writer, std::stop_token stop);
  kube::Status WriteLauncher(const View& view, const Plan& plan, const Children& children, ChildWriter& writer,
                             std::stop_token stop);
  // Sets `deferred` if the change is put off: look again after that time.
  kube::Status WriteStatus(const View& view, const api::ElasticHorovodJobStatus& status,
                           std::optional<kube::Duration>& deferred, std::stop_token stop);
  Verified VerifiedOf(const api::ElasticHorovodJob& job) const { return verified_.Get(job.metadata); }
  void SetVerified(const api::ElasticHorovodJob& job, const Children& children);
  void NoteTry(const View& view, const Plan& plan);
  // How a failed write is told, and when it is tried again.
  kube::Result<kube::Action> Refused(const View& view, const Plan& plan, kube::Error error, std::stop_token stop);
  void Forget(const kube::ObjectKey& key);

  kube::Client& client_;
  const ElasticCaches caches_;
  ClusterAccount& account_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_job_;
  kube::Store::IndexId jobs_by_profile_ = 0;  // If there are profiles: by the name that spec.profile means.
  kube::WriteTracker writes_;
  KeyFeed feed_;
  StatusWriter statuses_;
  ElasticPlanning planning_;
  MissingPods missing_pods_;
  TrainingOutput training_output_;
  kube::ObjectMemory<Verified> verified_{kube::KeptFor::kSpec};
  // The version of the StatefulSet when we last gave it its first workers. An older view of the pods shows those from
  // before, which were ready then.
  kube::ObjectMemory<std::string> started_version_;
};

}  // namespace grus
