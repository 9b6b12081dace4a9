// SPDX-License-Identifier: Apache-2.0
// Reads from the API server what top_parts.h shows, and asks the agents.
#pragma once

#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/client/client.h"
#include "controllers/kubectl/agent_metrics.h"

namespace grus {

struct TopPartsOptions {
  std::string ns = {};                       // Empty: all of them.
  std::string system_ns = kSystemNamespace;  // Of the agents.
};

struct TopPartsAnswer {
  std::string table = {};
  std::vector<std::string> notes = {};  // What is not known, and why: a line each.
};

// `agents`: for AskAgents(). Who may not read nodes, or the pods of all namespaces, gets less. Error: no pods can be
// read at all.
kube::Result<TopPartsAnswer> TopParts(kube::Client& client, kube::Client& agents, const TopPartsOptions& options,
                                      const kube::Clock& clock);

}  // namespace grus
