// SPDX-License-Identifier: Apache-2.0
// The labels of a node that say which GPUs it has, by the names of NVIDIA's gpu-feature-discovery. Pure.
//
// They are written only where no other tool does: which of them are grus' own, and with which values, stands in an
// annotation that is written together with them. A label nvidia.com/gpu.* that is not there, or has another value, is
// somebody else's; then grus gives up its own, as they are, and does not come back while there is one.
#pragma once

#include "clientlib/model/json.h"
#include "clientlib/model/meta.h"
#include "nodeagent/gpu_probe.h"

namespace grus {

inline constexpr char kGpuLabelsAnnotation[] = "ai.centauruscloud.io/gpu-labels";

// REQUIRES: `look` is complete. A label that would be wrong for one of several GPUs is left out.
kube::StringMap HardwareLabels(const NodeSample& look);

struct LabelChange {
  // Merge patches of the node's labels and annotations; without members: nothing is to be done.
  kube::Json labels = kube::Json::MakeObject(), annotations = kube::Json::MakeObject();
  bool is_others = false;  // Another tool labels this node.
};

// What makes the node's labels `wanted`.
LabelChange PlanLabels(const kube::ObjectMeta& node, const kube::StringMap& wanted);

}  // namespace grus
