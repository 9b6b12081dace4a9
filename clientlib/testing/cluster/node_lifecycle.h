// SPDX-License-Identifier: Apache-2.0
// What the control plane does about nodes: readiness and taints, eviction from nodes with NoExecute taints, and
// deletion of pods whose node is gone.
//
// A dark node is one whose heartbeats are missing for long enough: it is Unknown and tainted as unreachable. A node
// with the annotation grus.test/ready: "false" reports itself as not ready.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class NodeLifecycle {
 public:
  explicit NodeLifecycle(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Only records the change.
  void SetDark(const std::string& node, bool is_dark);

 private:
  bool ReconcileNode(const std::string& name);
  bool MarkPodsNotReady(const std::string& node);
  bool Evict(const ObjectKey& pod);
  void CollectAfterQuarantine(const std::string& node);
  void CollectPods(const std::string& node);

  const ClusterContext& context_;
  WorkLoop nodes_, pods_;
  std::set<std::string, std::less<>> known_, dark_, collecting_;
  // By node, and by the taint's key and value: when it was added.
  std::map<std::string, std::map<std::string, TimePoint>, std::less<>> taints_;
};

}  // namespace kube::testing
