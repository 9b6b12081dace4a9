// SPDX-License-Identifier: Apache-2.0
// The Job controller, and the controller that deletes finished ones after their TTL.
//
// Counts pods through their finalizer, replaces failed ones after 10 s, doubling to 10 min (job_controller.go; the
// documentation's six minutes are outdated), and handles changes of pods once a second. Lacks: indexed jobs, success
// policies, restarts in place (restartPolicy OnFailure), managedBy.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/cluster/cluster_context.h"
#include "clientlib/testing/cluster/controller_events.h"

namespace kube::testing {

class JobController {
 public:
  explicit JobController(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Only records the change.

 private:
  using ObjectPtr = FakeApiServer::ObjectPtr;
  struct Pass;
  struct Backoff {
    std::string uid;
    int failures = 0;  // Since the last success.
    TimePoint last_failure{};
  };

  bool Reconcile(const ObjectKey& key);
  void Sort(Pass& pass);    // Into active, terminating and newly ended pods.
  void Judge(Pass& pass);   // Whether the job is finished, and how.
  void Manage(Pass& pass);  // Makes and deletes pods.
  void Create(Pass& pass, std::int64_t count);
  void Remove(Pass& pass, std::size_t count);
  void Finish(Pass& pass);  // Ends the active pods.
  bool Track(Pass& pass);   // Writes the status, removes the finalizers, counts.
  bool WriteStatus(const Pass& pass);
  bool CleanUp(const Json& job);  // Of a finished job.
  bool RemoveTracking(const Json& pod);
  bool ReleaseOrphan(const ObjectKey& pod);

  const ClusterContext& context_;
  WorkLoop loop_, orphans_;
  ControllerEvents events_;
  std::map<ObjectKey, Backoff> backoffs_;
};

}  // namespace kube::testing
