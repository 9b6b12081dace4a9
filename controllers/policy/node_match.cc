// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/node_match.h"

#include <algorithm>
#include <string_view>

namespace grus {
namespace {

bool IsTolerated(const kube::Taint& taint, const PodShape& shape) {
  return taint.effect == "PreferNoSchedule" ||
         std::ranges::any_of(shape.tolerations, [&](const auto& toleration) { return Tolerates(toleration, taint); });
}

bool Closes(const kube::Taint& taint) {
  return std::string_view(taint.key).starts_with("node.kubernetes.io/") && taint.effect != "PreferNoSchedule";
}

}  // namespace

bool IsClosed(const NodeState& node) { return node.is_cordoned || std::ranges::any_of(node.taints, Closes); }

NodeState Opened(NodeState node) {
  node.is_cordoned = false;
  std::erase_if(node.taints, Closes);
  return node;
}

bool IsSelected(const NodeState& node, const PodShape& shape) {
  for (const auto& [key, value] : shape.node_selector) {
    const auto it = node.labels.find(key);
    if (it == node.labels.end() || it->second != value) return false;
  }
  return !shape.node_affinity || shape.node_affinity->Matches(node.labels, node.name);
}

bool Accepts(const NodeState& node, const PodShape& shape) {
  static const kube::Taint kCordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (!shape.pool.empty() && shape.pool != node.pool) return false;
  if (node.is_cordoned && !IsTolerated(kCordon, shape)) return false;
  return std::ranges::all_of(node.taints, [&](const auto& taint) { return IsTolerated(taint, shape); }) &&
         IsSelected(node, shape) && std::ranges::all_of(shape.volume_affinity, [&](const auto& where) {
           return where.Matches(node.labels, node.name);
         });
}

}  // namespace grus
