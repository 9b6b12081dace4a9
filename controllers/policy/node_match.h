// SPDX-License-Identifier: Apache-2.0
// Whether a node, looked at alone and empty, may hold a pod: cordon, taints, node selector, node affinity, and where
// its volumes can be used.
#pragma once

#include <string>
#include <vector>

#include "controllers/policy/pod_shape.h"

namespace grus {

inline constexpr char kHostnameLabel[] = "kubernetes.io/hostname";

struct NodeState {
  std::string name;
  Resources allocatable;
  kube::StringMap labels;
  std::vector<kube::Taint> taints;
  bool is_cordoned = false;
};

// As the scheduler decides it. A cordon is a taint: pods that tolerate it may still come. Resources are not looked at.
bool Accepts(const NodeState& node, const PodShape& shape);

// The part of it that says which nodes count for a pod's topology spread: selector and affinity, no taints, no volumes.
bool IsSelected(const NodeState& node, const PodShape& shape);

}  // namespace grus
