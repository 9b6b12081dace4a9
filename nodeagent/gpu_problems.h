// SPDX-License-Identifier: Apache-2.0
// What is wrong with the GPUs of a node, as far as its user should know. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/model/core_v1.h"
#include "nodeagent/gpu_probe.h"

namespace grus {

inline constexpr char kGpuSickReason[] = "GpuSick", kGpuCountReason[] = "GpuCountDiffers",
                      kGpuModelsReason[] = "GpuModelsMixed";
inline constexpr std::array<std::string_view, 3> kGpuProblemReasons = {kGpuSickReason, kGpuCountReason,
                                                                       kGpuModelsReason};

struct GpuProblem {
  std::string_view reason;
  std::string note;                // The same as long as the problem is.
  kube::Duration told_after = {};  // How long it must last until it is one.
};

// `node`: null if it is not known; then its allocatable GPUs are not compared.
std::vector<GpuProblem> FindGpuProblems(const NodeSample& look, const kube::Node* node);

}  // namespace grus
