// SPDX-License-Identifier: Apache-2.0
// The policies that openb is replayed through: that of grus, and two published ones to compare it with.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "controllers/policy/fragmentation.h"

namespace grus {

// Which of the nodes with the best score a pod gets.
enum class Ties {
  kRandom,  // Each pod a random one of them, as kube-scheduler does.
  kName,    // Always the first by name, as in the published runs, which give the nodes random names for each seed.
};

struct OpenbPolicy {
  std::string_view name;
  // The best devices on one node; nullopt: no room. Nodes are compared by score.
  std::optional<GpuPlacement> (*place)(const FreeGpus& node, const GpuRequest& pod,
                                       std::span<const TypicalPod> typical);
  Ties ties;  // Unless told otherwise: those of the published runs, for the published policies.
};

std::span<const OpenbPolicy> OpenbPolicies();

}  // namespace grus
