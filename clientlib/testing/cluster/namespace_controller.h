// SPDX-License-Identifier: Apache-2.0
// The namespace controller: empties namespaces that are being deleted, pods first (KEP-5080), then removes their
// finalizer.
#pragma once

#include <map>
#include <set>
#include <string>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class NamespaceController {
 public:
  explicit NamespaceController(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Only records the change.

 private:
  bool Reconcile(const std::string& name);
  // Deletes all objects of `resource`. `grace` becomes the longest of those left. False if the server refused.
  bool Empty(const std::string& resource, const std::string& ns, Duration& grace);

  const ClusterContext& context_;
  WorkLoop loop_;                                                                 // Keys without a namespace.
  std::map<std::string, std::map<std::string, std::set<std::string>>> contents_;  // Namespace, resource, names.
};

}  // namespace kube::testing
