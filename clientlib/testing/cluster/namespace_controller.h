// SPDX-License-Identifier: Apache-2.0
// The namespace controller: empties namespaces that are being deleted, pods first (KEP-5080), then lets them go.
#pragma once

#include <map>
#include <set>
#include <string>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class NamespaceController {
 public:
  explicit NamespaceController(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Takes notes only.

 private:
  bool Reconcile(const std::string& name);
  // Deletes all of `resource`; the longest grace of what is left, nothing if nothing is.
  bool Empty(const std::string& resource, const std::string& ns, Duration& grace);

  const ClusterContext& context_;
  WorkLoop loop_;                                                                 // Keys without a namespace.
  std::map<std::string, std::map<std::string, std::set<std::string>>> contents_;  // Namespace, resource, names.
};

}  // namespace kube::testing
