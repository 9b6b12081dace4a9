// SPDX-License-Identifier: Apache-2.0
// Which workers Horovod may use: pure. Horovod's contract is in docs/horovod.md.
//
// - A worker is published when it is ready (its ssh server answers).
// - A worker that died, or whose pod is being deleted, leaves the list at once: the others go on without it, even if
//   they are fewer than the minimum. We tell Horovod a minimum of one, since below its minimum it never restarts lost
//   workers.
// - A worker whose node is silent stays while the nodes of all workers are, and until these have had time to come back:
//   that is an outage of the control plane, and the training goes on. If only some are silent, they are lost.
// - A worker that is to go leaves the list first, and its pod stays for the shrink grace. It stays listed while fewer
//   than the minimum would be left without it: its replacements may not be ready yet.
// - Two changes are at least two seconds apart: Horovod compares whole seconds and would miss the second one.
#pragma once

#include <optional>

#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

struct HostPlan {
  HostList list;
  std::vector<std::string> lost;  // Pods that leave the list although they were to stay.
  std::optional<kube::Duration> look_again;
};

// `leaving`: workers that are to go. REQUIRES: view.hosts.
HostPlan PlanHosts(const View& view, const Sizes& sizes, const WorkerSet& leaving);

// The list that a new launcher starts with: all ready workers that are to stay. Newer than any launcher's list so far.
HostList FirstHosts(const View& view, const Sizes& sizes, const WorkerSet& leaving);

}  // namespace grus
