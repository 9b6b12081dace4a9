// SPDX-License-Identifier: Apache-2.0
// A cluster (tests/cluster) for tests that need one to themselves. Our CRDs are there; it has no nodes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/kit/child_process.h"

namespace grus::testing {

class OwnCluster {
 public:
  // `flags` are those of `cluster up`. Until its end, $KUBECONFIG names this cluster, and
  // $GRUS_MANAGER_KUBECONFIG the chart's account in it. Throws if it does not come up.
  OwnCluster(std::string name, const std::string& flags);
  ~OwnCluster();
  OwnCluster(const OwnCluster&) = delete;
  OwnCluster& operator=(const OwnCluster&) = delete;

  kit::CommandResult Kubectl(const std::string& words) const;
  // Kills the scheduler and starts it anew; returns when it answers, which may be before it leads. Throws.
  void RestartScheduler() const;

 private:
  const std::string name_;
  std::vector<std::pair<const char*, std::string>> before_;  // The variables that it sets.
};

}  // namespace grus::testing
