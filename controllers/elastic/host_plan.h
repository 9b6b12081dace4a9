// SPDX-License-Identifier: Apache-2.0
// Which workers Horovod may use: pure. Horovod's contract is in docs/horovod.md.
//
// - A worker is published when it is ready (its ssh server answers). The launcher resolves its name itself before
//   it hands it on.
// - A worker that is to go leaves the list first, and its pod stays for the shrink grace.
// - A worker that is to go or that died stays listed while without it fewer than the minimum would be left: Horovod
//   handles a failure, while a graceful removal below the minimum can block it for ever.
// - Two changes are at least two seconds apart: Horovod compares whole seconds and would miss the second one.
#pragma once

#include <optional>

#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

struct HostPlan {
  HostList list;
  bool is_changed = false;
  std::optional<kube::Duration> look_again;
};

// `replicas`: ordinals from here on are on their way out. REQUIRES: view.hosts or ready workers.
HostPlan PlanHosts(const View& view, const Sizes& sizes, int replicas);

// The list a new launcher starts with: all ready workers that are to stay. Newer than what any launcher was given.
HostList FirstHosts(const View& view, const Sizes& sizes, int replicas);

}  // namespace grus
