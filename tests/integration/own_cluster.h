// SPDX-License-Identifier: Apache-2.0
// A cluster (tests/cluster) for tests that need one to themselves. Our CRDs are there; it has no nodes.
#pragma once

#include <string>

namespace grus::testing {

struct CommandResult {
  int status = 0;
  std::string output;
};

class OwnCluster {
 public:
  // `flags` are those of `cluster up`. Until its end, $KUBECONFIG names this cluster. Throws if it does not come up.
  OwnCluster(std::string name, const std::string& flags);
  ~OwnCluster();
  OwnCluster(const OwnCluster&) = delete;
  OwnCluster& operator=(const OwnCluster&) = delete;

  CommandResult Kubectl(const std::string& words) const;
  // Kills the scheduler and starts it anew; returns when it answers, which may be before it leads. Throws.
  void RestartScheduler() const;

 private:
  const std::string name_;
  std::string kubeconfig_before_;
};

}  // namespace grus::testing
