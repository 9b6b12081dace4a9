// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/node_match.h"

#include <algorithm>

namespace grus {
namespace {

bool IsTolerated(const kube::Taint& taint, const PodShape& shape) {
  return taint.effect == "PreferNoSchedule" ||
         std::any_of(shape.tolerations.begin(), shape.tolerations.end(),
                     [&](const kube::Toleration& toleration) { return Tolerates(toleration, taint); });
}

}  // namespace

bool IsSelected(const NodeState& node, const PodShape& shape) {
  for (const auto& [key, value] : shape.node_selector) {
    const auto it = node.labels.find(key);
    if (it == node.labels.end() || it->second != value) return false;
  }
  return !shape.node_affinity || shape.node_affinity->Matches(node.labels, node.name);
}

bool Accepts(const NodeState& node, const PodShape& shape) {
  static const kube::Taint kCordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (node.is_cordoned && !IsTolerated(kCordon, shape)) return false;
  return std::all_of(node.taints.begin(), node.taints.end(),
                     [&](const kube::Taint& taint) { return IsTolerated(taint, shape); }) &&
         IsSelected(node, shape) &&
         std::all_of(shape.volume_affinity.begin(), shape.volume_affinity.end(),
                     [&](const kube::NodeSelector& where) { return where.Matches(node.labels, node.name); });
}

}  // namespace grus
