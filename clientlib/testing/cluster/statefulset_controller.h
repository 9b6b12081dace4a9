// SPDX-License-Identifier: Apache-2.0
// The StatefulSet controller: Parallel and OrderedReady, RollingUpdate (with a partition) and OnDelete.
//
// Lacks: volume claims, maxUnavailable, ControllerRevision objects (this model keeps revisions in memory; a set that is
// first seen with several has only the latest).
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
  void Observe(const ServerChange& change);  // Only records the change.

 private:
  using ObjectPtr = FakeApiServer::ObjectPtr;
  struct Pass;

  bool Reconcile(const ObjectKey& key);
  // Pods of the set, by ordinal. The set adopts those without an owner.
  std::vector<std::pair<int, ObjectPtr>> ClaimPods(const Json& set);
  bool Scale(Pass& pass);
  // Creates the pod of a wanted ordinal, or deletes an ended one. False: it is not available yet; an ordered set stops
  // here in this pass.
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
