// SPDX-License-Identifier: Apache-2.0
// NodePool (npool): a named set of nodes with GPUs. GpuQueues have their quotas in pools.
//
// A node is in one pool: of several that select it, in the one that was created first; if none does, in kDefaultPool.
// GPUs are counted in whole devices. What pods hold in parts is added up and rounded up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/string_map.h"

namespace api {

// The pool of the nodes that no NodePool selects. No NodePool may have this name.
inline constexpr char kDefaultPool[] = "default";

// Labels and metrics carry the names of pools and queues.
inline constexpr std::int64_t kMaxPoolName = 63;

enum class PoolPlacement { kBinPack, kSpread, kUtilSched, kInterference };
std::span<const std::string_view> EnumNames(PoolPlacement);

struct NodePoolSpec {
  kube::StringMap node_selector;
  std::string resource = "nvidia.com/gpu";
  PoolPlacement placement = PoolPlacement::kBinPack;
  // Of its speed alone, for each pod on a shared GPU, by the low end of what is predicted; 0: no pod is refused.
  std::int32_t least_speed_percent = 0;
  // Of the memory of a part of a GPU, what its container may have beside it: over-subscribed, in the node's memory
  // while the GPU has no room.
  std::int32_t paged_memory_percent = 0;
  static std::span<const kube::FieldInfo> Fields();
};

// Why a condition of a NodePool is as it is: a closed list, so that a dashboard or a script can rely on it.
enum class NodePoolReason {
  kPending,  // Not looked at yet.
  kReady,
  kNoNodes,       // No node has the labels.
  kNoGpus,        // Nodes have the labels, and none of them has the resource.
  kPoolsOverlap,  // Another pool, which was created first, has some of the nodes.
  kNotPermitted,  // grus itself lacks a permission.
};
std::span<const std::string_view> EnumNames(NodePoolReason);
std::string_view ToString(NodePoolReason reason);

struct NodePoolStatus {
  std::int64_t observed_generation = 0;
  std::vector<kube::Condition> conditions = {};
  // Where nodes take no pods, used + free is less than gpus.
  std::int32_t nodes = 0, gpus = 0, used = 0, free = 0;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodePoolStatus&, const NodePoolStatus&) = default;
};

struct NodePool : kube::Object {
  NodePoolSpec spec;
  NodePoolStatus status;
  static const kube::Kind& ResourceKind();
};

}  // namespace api
