// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/own_cluster.h"

#include <signal.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/kit/local_cluster.h"

namespace grus::testing {
namespace {

std::string MustRun(const std::string& words) { return kit::MustRun(kit::ClusterCommand(words)); }

}  // namespace

OwnCluster::OwnCluster(std::string name, const std::string& flags) : name_(std::move(name)) {
  MustRun("up " + flags + " --name " + name_);
  const std::string crds =
      "-f \"" + kit::FileOfTree("crds/generated") + "\" -f \"" + kit::FileOfTree("crds/older") + "\"";
  MustRun("kubectl --name " + name_ + " -- apply --server-side " + crds);
  MustRun("kubectl --name " + name_ + " -- wait --for=condition=Established --timeout=30s " + crds);
  const std::string kubeconfig = MustRun("kubeconfig --name " + name_);
  const std::string account =
      kit::MustRun("'" + kit::FileOfTree("tests/charts/manager-account") + "' " + name_ + " 2>/dev/null");
  for (const auto& [variable, value] : {std::pair("KUBECONFIG", kubeconfig), {"GRUS_MANAGER_KUBECONFIG", account}}) {
    const char* before = std::getenv(variable);
    before_.emplace_back(variable, before ? before : "");
    setenv(variable, value.c_str(), 1);
  }
}

OwnCluster::~OwnCluster() {
  for (const auto& [variable, value] : before_) setenv(variable, value.c_str(), 1);
  kit::RunCommand(kit::ClusterCommand("down --name " + name_));
}

kit::CommandResult OwnCluster::Kubectl(const std::string& words) const {
  return kit::RunCommand(kit::ClusterCommand("kubectl --name " + name_ + " -- " + words));
}

void OwnCluster::RestartScheduler() const {
  // "  kube-scheduler   running  pid 1234   50 MiB  LOG"
  const std::string processes = MustRun("status --name " + name_);
  const std::size_t line = processes.find("kube-scheduler");
  const std::size_t pid = line == std::string::npos ? line : processes.find("pid ", line);
  if (pid == std::string::npos) throw std::runtime_error("no scheduler in: " + processes);
  const int number = std::atoi(processes.c_str() + pid + 4);
  if (kill(number, SIGKILL) != 0) throw std::runtime_error("the scheduler is gone already");
  // A process that is just dying may still count as alive.
  const auto is_dead = [&] {
    return kit::RunCommand(kit::ClusterCommand("status --name " + name_)).output.find("kube-scheduler is dead") !=
           std::string::npos;
  };
  for (int tries = 0; !is_dead(); ++tries) {
    if (tries == 1000) throw std::runtime_error("the scheduler does not end");
  }
  MustRun("up --name " + name_);
}

}  // namespace grus::testing
