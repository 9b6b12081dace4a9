// SPDX-License-Identifier: Apache-2.0
// GpuQueues and NodePools in the fault campaign.
#pragma once

#include <string>
#include <string_view>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

inline constexpr char kQueues[] = "gpuqueues.ai.centauruscloud.io", kPools[] = "nodepools.ai.centauruscloud.io";

// Without a selector, so that jobs of any namespace may name it. Its notices are short.
void AddQueue(World& world, const std::string& name, std::string_view spec);
// Of the nodes with the label pool=NAME. `spec` is a merge patch.
void AddPool(World& world, const std::string& name, std::string_view spec = "{}");
void AddNodeIn(World& world, const std::string& pool, const std::string& name, int gpus);

}  // namespace grus::testing
