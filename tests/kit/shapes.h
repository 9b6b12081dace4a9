// SPDX-License-Identifier: Apache-2.0
// Nodes, shapes and gangs, as the ledger and the planner know them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controllers/policy/gang_planner.h"

namespace grus {

inline NodeState GpuNode(std::string name, std::int64_t gpus) {
  NodeState node;
  node.labels = {{"kubernetes.io/hostname", name}};
  node.name = std::move(name);
  node.allocatable.milli_cpu = 64'000;
  node.allocatable.memory_bytes = 512LL << 30;
  node.allocatable.pods = 110;
  if (gpus > 0) node.allocatable.AddExtended(kGpuResource, gpus);
  return node;
}

inline PodShape GpuPod(std::int64_t gpus) {
  PodShape shape;
  shape.request.milli_cpu = 1000;
  shape.request.pods = 1;
  if (gpus > 0) shape.request.AddExtended(kGpuResource, gpus);
  return shape;
}

// Of a pod that asks for that many GPUs and nothing else.
inline ShapePtr GpuShape(int gpus) {
  PodShape shape;
  if (gpus > 0) shape.request.AddExtended(kGpuResource, gpus);
  shape.request.pods = 1;
  return std::make_shared<const PodShape>(std::move(shape));
}

inline ShapePtr Shared(PodShape shape) { return std::make_shared<const PodShape>(std::move(shape)); }

inline GangDemand Gang(std::string key, int members, ShapePtr shape) {
  GangDemand gang;
  gang.key = std::move(key);
  gang.needed = members;
  gang.members.assign(static_cast<std::size_t>(members), std::move(shape));
  return gang;
}

inline GangDemand Gang(std::string key, int members, std::int64_t gpus) {
  return Gang(std::move(key), members, Shared(GpuPod(gpus)));
}

// "a", "b", ... with that many GPUs each.
inline void PutNodes(ClusterLedger& ledger, int count, std::int64_t gpus = 8) {
  for (int i = 0; i < count; ++i) ledger.PutNode(GpuNode(std::string(1, static_cast<char>('a' + i)), gpus));
}

// The nodes of an owner's places, in the order in which they were made.
inline std::string NodesOf(const ClusterLedger& ledger, const std::string& owner) {
  std::string nodes;
  for (const Place& place : ledger.PlacesOf(owner)) nodes += place.node;
  return nodes;
}

}  // namespace grus
