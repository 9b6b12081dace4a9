// SPDX-License-Identifier: Apache-2.0
// The StatefulSet controller: Parallel and OrderedReady, RollingUpdate (with a partition) and OnDelete.
//
// Lacks: volume claims, maxUnavailable, ControllerRevision objects (revisions live here; a set that is first seen
// with several has only the latest).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "clientlib/testing/cluster/cluster_context.h"
#include "clientlib/testing/cluster/controller_events.h"

namespace kube::testing {

class StatefulSetController {
 public:
  explicit StatefulSetController(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Takes notes only.

 private:
  using ObjectPtr = FakeApiServer::ObjectPtr;
  struct Pass;

  bool Reconcile(const ObjectKey& key);
  // Pods of the set, by ordinal. Those without an owner become its own.
  std::vector<std::pair<int, ObjectPtr>> ClaimPods(const Json& set);
  bool Scale(Pass& pass);
  // What to do about the pod of a wanted ordinal; false if a set in order goes no further in this pass.
  bool KeepReplica(Pass& pass, int ordinal);
  bool RemoveCondemned(Pass& pass);
  void Roll(Pass& pass);
  bool CreatePod(Pass& pass, int ordinal);
  bool IsAvailable(const Json& pod, Pass& pass) const;
  bool WriteStatus(const Pass& pass);

  const ClusterContext& context_;
  WorkLoop loop_;
  ControllerEvents events_;
  std::set<ObjectKey> sets_;
  std::map<std::string, std::map<std::string, Json>> templates_;  // By the set's uid and the revision's name.
};

}  // namespace kube::testing
