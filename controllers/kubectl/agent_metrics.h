// SPDX-License-Identifier: Apache-2.0
// Asks grus-node-agent for its metrics, through the API server, which reaches pods as their proxy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/client/client.h"
#include "controllers/kubectl/part_objects.h"
#include "controllers/kubectl/part_uses.h"

namespace grus {

inline constexpr char kSystemNamespace[] = "grus-system";  // Where the chart is installed, by its README.
inline constexpr char kAgentNameSuffix[] = "-node-agent";  // Of the label app.kubernetes.io/name.
inline constexpr std::size_t kLongestMetrics = 8 << 20;    // Bytes of an answer.
inline constexpr kube::Duration kMetricsTimeout = std::chrono::seconds(5);  // Of one agent.

struct AgentAnswers {
  PartUses uses = {};
  std::string problem = {};  // Why some or all are not known; empty: they are.
};

// Of the agents among `pods` on these nodes, 32 at a time; those that are not asked within `limit` are left out. The
// client should have the timeout and the limit above.
AgentAnswers AskAgents(kube::Client& client, const std::vector<std::shared_ptr<const PartPod>>& pods,
                       const std::vector<std::string>& nodes, const kube::Clock& clock,
                       kube::Duration limit = std::chrono::seconds(10));

}  // namespace grus
