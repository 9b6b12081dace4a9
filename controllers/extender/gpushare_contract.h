// SPDX-License-Identifier: Apache-2.0
// What gpushare's scheduler extender writes on a pod that it binds, and what it tells of nodes. Pure.
// Source: AliyunContainerService/gpushare-scheduler-extender, pkg/utils/pod.go and pkg/scheduler.
//
// What a user writes in these annotations is not read: the account says which pod is on which GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/json.h"
#include "controllers/cluster/pod_placer.h"

namespace grus {

std::int64_t GpuMemOf(const kube::Pod& pod);  // GiB that it asks for.

// Adds to `annotations` what the contract has for a pod that gets so many GiB of this GPU, as assumed `now`. Nothing,
// if the node does not offer it in this way.
void AddGpushareAnnotations(const kube::Node& node, std::string_view gpu, std::int64_t gib, kube::WallTime now,
                            kube::Json& annotations);

// Empties in `annotations` what the pod says of itself by the contract before it is bound.
void ClearGpushareAnnotations(const kube::Pod& pod, kube::Json& annotations);

struct InspectedPod {
  std::string name = {}, ns = {};
  std::int64_t used = 0;
  friend bool operator==(const InspectedPod&, const InspectedPod&) = default;
};

struct InspectedGpu {
  std::int64_t total = 0, used = 0;
  bool is_in_use = true;  // False: nothing of it is given to anybody, as it is sick, or somebody has said so.
  std::vector<InspectedPod> pods = {};
  friend bool operator==(const InspectedGpu&, const InspectedGpu&) = default;
};

struct InspectedNode {
  std::string name = {};
  std::vector<InspectedGpu> gpus = {};
  friend bool operator==(const InspectedNode&, const InspectedNode&) = default;
};

// `look`: at these nodes and pods. Pods that hold nothing of them are left out.
std::vector<InspectedNode> Inspected(std::span<const std::shared_ptr<const kube::Node>> nodes,
                                     std::span<const std::shared_ptr<const kube::Pod>> pods, const HoldingsLook& look);

// In JSON. `error`: empty, none.
std::string InspectAnswer(std::span<const InspectedNode> nodes, std::string_view error = {});

}  // namespace grus
