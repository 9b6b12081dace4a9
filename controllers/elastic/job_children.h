// SPDX-License-Identifier: Apache-2.0
// The children of jobs as the caches have them, and the writes of a plan to them.
//
// A pass may stop after any write: the order lets the next pass come to the same end. Secret, PodGroup, pods of lost
// nodes, new workers (WriteWorkers()); the status; workers that go (DropWorkers()); Service, host list, launcher
// (WriteLauncher()). The status comes before the deletions: after a crash between them the next pass still sees workers
// that are to go; the other way round it would replace those that are gone.
// Thread-safe: many jobs at once.
#pragma once

#include <set>

#include "controllers/elastic/elastic_caches.h"
#include "controllers/elastic/elastic_plan.h"
#include "controllers/frame/child_writer.h"
#include "crds/types/pod_group.h"

namespace grus {

// `owner` may be null.
bool IsControlledBy(const kube::Object& child, const kube::Object* owner);

struct Children {
  std::shared_ptr<const kube::Service> service;
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
  JobChildren(kube::Client& client, const ElasticCaches& caches) : client_(client), caches_(caches) {}

  Children Find(const api::ElasticHorovodJob& job) const;
  ChildWriter WriterFor(const api::ElasticHorovodJob& job, kube::WriteTracker& writes, std::stop_token stop);

  kube::Status WriteWorkers(const JobPass& pass);
  // Makes the workers that are missing. Errors: see IsByAdmission().
  kube::Status MakeWorkers(const JobPass& pass);
  kube::Status DropWorkers(const JobPass& pass);
  kube::Status WriteLauncher(const JobPass& pass);
  // Workers that were deleted count as ending, although the cache may not show it yet: otherwise the next pass would
  // take them for workers that run.
  void MarkDropped(View& view);
  void Forget(const kube::ObjectKey& key);

 private:
  kube::Status WriteSecret(const JobPass& pass);
  // Ends a pod whose node is not in the cluster any more.
  kube::Status Bury(const std::string& name, const JobPass& pass);
  kube::Status WriteHosts(const JobPass& pass);
  kube::Status TellDeadline(const JobPass& pass);
  // Ends the pods of a launcher that is gone: two launchers would fight over the workers. An error until they are gone.
  kube::Status EndStrayLaunchers(const JobPass& pass);
  kube::Status WriteJob(const JobPass& pass);

  kube::Client& client_;
  const ElasticCaches caches_;
  ChildMarks marks_{kube::KeptFor::kSpec};
  kube::ObjectMemory<std::set<std::string>> dropped_;  // UIDs, while the cache has them.
  // Ordinals of workers whose create failed: the answer may have been lost, and the cache may not show the pod yet.
  // They are tried first, or one worker too many would be made when a lower ordinal comes free.
  kube::ObjectMemory<std::set<int>> unknown_;
};

}  // namespace grus
