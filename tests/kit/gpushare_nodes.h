// SPDX-License-Identifier: Apache-2.0
// Nodes whose GPUs are given in gpushare's way.
#pragma once

#include <memory>
#include <string>

#include "clientlib/model/core_v1.h"
#include "crds/types/sharing_names.h"

namespace grus::kit {

inline constexpr char kTwoGpus[] = R"([{"uuid":"GPU-z","memoryMiB":8191,"milli":1000,"mode":"gpushare"},
                                {"uuid":"GPU-a","memoryMiB":40000,"milli":1000,"mode":"gpushare","healthy":false}])";

inline std::shared_ptr<kube::Node> NodeWith(const std::string& name, const std::string& inventory) {
  auto node = std::make_shared<kube::Node>();
  node->metadata.name = name;
  if (!inventory.empty()) node->metadata.annotations[api::kGpuInventoryAnnotation] = inventory;
  return node;
}

}  // namespace grus::kit
