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
  // The ledger knows these: see HoldingsObserver. The node's own label says its placement first.
  std::string pool;
  PoolPlacement placement = PoolPlacement::kBinPack;  // Among its GPUs, of parts of them.
};

// As the scheduler decides, and only in the pool of the shape, if it has one. A cordon is a taint: pods that tolerate
// it may still come. Resources do not count.
bool Accepts(const NodeState& node, const PodShape& shape);

// Pods that come find it closed, by a cordon or by a taint that Kubernetes itself sets (not ready, out of disk): what
// nobody holds there now is of no use.
bool IsClosed(const NodeState& node);

// The node without what closes it.
NodeState Opened(NodeState node);

// The part of Accepts() that decides which nodes count for topology spread: selector and affinity only.
bool IsSelected(const NodeState& node, const PodShape& shape);

}  // namespace grus
