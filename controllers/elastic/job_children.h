// SPDX-License-Identifier: Apache-2.0
// The children of jobs as the caches have them, and the writes of a plan to them.
//
// A pass may stop after any write: the order lets the next pass come to the same end. Secret, PodGroup, StatefulSet;
// pods of lost nodes, parked pods, lifted gates (WriteWorkers()); Service, host list, launcher (WriteLauncher()).
// Thread-safe: many jobs at once.
#pragma once

#include "controllers/elastic/elastic_caches.h"
#include "controllers/elastic/elastic_plan.h"
#include "controllers/frame/child_writer.h"
#include "crds/types/pod_group.h"

namespace grus {

// `owner` may be null.
bool IsControlledBy(const kube::Object& child, const kube::Object* owner);

struct Children {
  std::shared_ptr<const kube::Service> service;
  std::shared_ptr<const kube::StatefulSet> workers;
  std::shared_ptr<const kube::ConfigMap> hosts;
  std::shared_ptr<const kube::Job> launcher;
  std::shared_ptr<const api::PodGroup> group;
};

// What the writes of one pass over a job need.
struct JobPass {
  const View& view;
  const Plan& plan;
  const Children& children;
  ChildWriter& writer;
  std::stop_token stop;
};

class JobChildren {
 public:
  JobChildren(kube::Client& client, const ElasticCaches& caches, const kube::Clock& clock)
      : client_(client), caches_(caches), clock_(clock) {}

  Children Find(const api::ElasticHorovodJob& job) const;
  // Whether the cache of pods is newer than our write that started the workers. An older one shows the pods of the last
  // run, which were ready then.
  bool ArePodsCurrent(const api::ElasticHorovodJob& job);
  ChildWriter WriterFor(const api::ElasticHorovodJob& job, kube::WriteTracker& writes, std::stop_token stop);

  kube::Status WriteWorkers(const JobPass& pass);
  kube::Status WriteLauncher(const JobPass& pass);
  // Puts our labels back on the StatefulSet if that is why our cache does not have it. True if it was there.
  kube::Result<bool> RestoreHiddenWorkers(const api::ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop);
  void Forget(const kube::ObjectKey& key);

 private:
  kube::Status WriteSecret(const JobPass& pass);
  kube::Status WriteStatefulSet(const JobPass& pass);
  // Ends a pod whose node is not in the cluster any more.
  kube::Status Bury(const std::string& name, const JobPass& pass);
  kube::Status WritePods(const JobPass& pass);
  kube::Status WriteHosts(const JobPass& pass);
  // Ends the pods of a launcher that is gone: two launchers would fight over the workers. An error until they are gone.
  kube::Status EndStrayLaunchers(const JobPass& pass);
  kube::Status WriteJob(const JobPass& pass);

  kube::Client& client_;
  const ElasticCaches caches_;
  const kube::Clock& clock_;
  ChildMarks marks_{kube::KeptFor::kSpec};
  kube::ObjectMemory<std::string> started_version_;  // Of the StatefulSet when its workers were started.
};

}  // namespace grus
