// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/cluster_ledger.h"

#include <algorithm>

namespace grus {

bool Toleration::Tolerates(const Taint& taint) const {
  if (!effect.empty() && effect != taint.effect) return false;
  if (key.empty()) return op == "Exists";
  if (key != taint.key) return false;
  return op == "Exists" || value == taint.value;
}

bool ClusterLedger::Accepts(const NodeEntry& node, const PodShape& shape) {
  if (!node.is_known || node.state.is_cordoned) return false;
  for (const auto& [key, value] : shape.node_selector) {
    const auto it = node.state.labels.find(key);
    if (it == node.state.labels.end() || it->second != value) return false;
  }
  return std::all_of(node.state.taints.begin(), node.state.taints.end(), [&](const Taint& taint) {
    return taint.effect == "PreferNoSchedule" ||
           std::any_of(shape.tolerations.begin(), shape.tolerations.end(),
                       [&](const Toleration& toleration) { return toleration.Tolerates(taint); });
  });
}

bool ClusterLedger::HasNode(const std::string& name) const {
  const auto it = nodes_.find(name);
  return it != nodes_.end() && it->second.is_known;
}

void ClusterLedger::PutNode(NodeState node) {
  NodeEntry& entry = nodes_[node.name];
  entry.state = std::move(node);
  entry.is_known = true;
}

void ClusterLedger::RemoveNode(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return;
  if (it->second.holders == 0) {
    nodes_.erase(it);
    return;
  }
  // Its pods are still bound to it until they are deleted; the entry keeps their sum.
  it->second.is_known = false;
  it->second.state = NodeState{};
  it->second.state.name = name;
}

void ClusterLedger::Take(NodeEntry& node, const Resources& request) {
  node.used += request;
  ++node.holders;
}

void ClusterLedger::GiveBack(const std::string& name, const Resources& request) {
  const auto it = nodes_.find(name);
  it->second.used -= request;
  if (--it->second.holders == 0 && !it->second.is_known) nodes_.erase(it);
}

void ClusterLedger::Bind(const std::string& pod_uid, const std::string& node, const Resources& request,
                         const std::string& owner) {
  const bool is_new = !bindings_.contains(pod_uid);
  Release(pod_uid);
  Take(nodes_[node], request);
  bindings_[pod_uid] = {node, request};
  const auto claim = claims_.find(owner);
  if (!is_new || owner.empty() || claim == claims_.end() || claim->second.nodes.empty()) return;

  std::vector<std::string>& places = claim->second.nodes;
  auto place = std::find(places.begin(), places.end(), node);
  if (place == places.end()) place = places.end() - 1;
  const Resources& claimed = claim->second.shape.request;
  nodes_.at(*place).claimed[owner] -= claimed;
  GiveBack(*place, claimed);
  places.erase(place);
}

void ClusterLedger::Release(const std::string& pod_uid) {
  const auto it = bindings_.find(pod_uid);
  if (it == bindings_.end()) return;
  GiveBack(it->second.node, it->second.request);
  bindings_.erase(it);
}

void ClusterLedger::DropClaim(const std::string& owner) {
  const auto it = claims_.find(owner);
  if (it == claims_.end()) return;
  const Resources& request = it->second.shape.request;
  for (const std::string& place : it->second.nodes) {
    nodes_.at(place).claimed.erase(owner);
    GiveBack(place, request);
  }
  claims_.erase(it);
}

int ClusterLedger::Claim(const std::string& owner, const PodShape& shape, int count) {
  const auto earlier = claims_.find(owner);
  if (earlier != claims_.end() && earlier->second.nodes.size() == static_cast<std::size_t>(std::max(0, count)) &&
      earlier->second.shape == shape) {
    return count;
  }
  DropClaim(owner);
  if (count <= 0) return 0;
  ClaimEntry& claim = claims_[owner];
  claim.shape = shape;
  std::vector<std::string>& places = claim.nodes;
  for (auto& [name, node] : nodes_) {
    const int wanted = count - static_cast<int>(places.size());
    if (wanted == 0) break;
    if (!Accepts(node, shape)) continue;
    const int copies = CopiesThatFit(node.state.allocatable, node.used, shape.request, wanted);
    for (int i = 0; i < copies; ++i) {
      Take(node, shape.request);
      node.claimed[owner] += shape.request;
      places.push_back(name);
    }
  }
  return static_cast<int>(places.size());
}

Room ClusterLedger::RoomFor(const std::string& owner, const PodShape& shape, int at_most) const {
  Room room;
  for (const auto& [name, node] : nodes_) {
    if (!Accepts(node, shape) || CopiesThatFit(node.state.allocatable, {}, shape.request, 1) == 0) continue;
    ++room.nodes;
    const Resources* used = &node.used;
    Resources without_own;
    if (const auto own = node.claimed.find(owner); own != node.claimed.end()) {
      without_own = node.used;
      without_own -= own->second;
      used = &without_own;
    }
    const std::int64_t gpus = node.state.allocatable.Extended(kGpuResource);
    room.gpus_total += gpus;
    room.gpus_free += std::max<std::int64_t>(0, gpus - used->Extended(kGpuResource));
    if (room.copies < at_most) {
      room.copies += CopiesThatFit(node.state.allocatable, *used, shape.request, at_most - room.copies);
    }
  }
  return room;
}

}  // namespace grus
