// SPDX-License-Identifier: Apache-2.0
// The controller of ResourceQuotas: copies spec.hard to the status, and counts again when a pod is gone or has ended.
//
// The API server has already counted what a new pod uses (api_server/quota.h). Lacks: quotas on anything but pods; pods
// whose grace is over still count.
#pragma once

#include <map>
#include <set>
#include <string>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class QuotaController {
 public:
  explicit QuotaController(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Only records the change.

 private:
  bool Reconcile(const ObjectKey& key);

  const ClusterContext& context_;
  WorkLoop loop_;
  std::map<std::string, std::set<ObjectKey>> quotas_;  // By namespace.
};

}  // namespace kube::testing
