// SPDX-License-Identifier: Apache-2.0
// The controller of ResourceQuotas: puts spec.hard into force, and counts again when a pod has gone or ended.
//
// What a new pod uses the API server has counted already (api_server/quota.h). Lacks: quotas on anything but pods, and
// that pods count no longer whose grace is over.
#pragma once

#include <map>
#include <set>
#include <string>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class QuotaController {
 public:
  explicit QuotaController(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Takes notes only.

 private:
  bool Reconcile(const ObjectKey& key);

  const ClusterContext& context_;
  WorkLoop loop_;
  std::map<std::string, std::set<ObjectKey>> quotas_;  // By namespace.
};

}  // namespace kube::testing
