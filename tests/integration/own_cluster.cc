// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/own_cluster.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/integration/manager_process.h"

namespace grus::testing {
namespace {

// tests/cluster/cluster with these words.
CommandResult RunCluster(const std::string& words) {
  const char* command = std::getenv("GRUS_CLUSTER");
  if (command == nullptr) throw std::runtime_error("GRUS_CLUSTER, the path of tests/cluster/cluster, is not set");
  const std::string line = "\"" + std::string(command) + "\" " + words + " 2>&1";
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + line);
  CommandResult result;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

std::string MustRun(const std::string& words) {
  const CommandResult result = RunCluster(words);
  if (result.status != 0) throw std::runtime_error("cluster " + words + ": " + result.output);
  return result.output;
}

}  // namespace

OwnCluster::OwnCluster(std::string name, const std::string& flags) : name_(std::move(name)) {
  MustRun("up " + flags + " --name " + name_);
  const std::string crds = "\"" + FileOfTree("crds/generated") + "\"";
  MustRun("kubectl --name " + name_ + " -- apply --server-side -f " + crds);
  MustRun("kubectl --name " + name_ + " -- wait --for=condition=Established --timeout=30s -f " + crds);
  std::string kubeconfig = MustRun("kubeconfig --name " + name_);
  kubeconfig.erase(kubeconfig.find_last_not_of('\n') + 1);
  const char* before = std::getenv("KUBECONFIG");
  kubeconfig_before_ = before ? before : "";
  setenv("KUBECONFIG", kubeconfig.c_str(), 1);
}

OwnCluster::~OwnCluster() {
  setenv("KUBECONFIG", kubeconfig_before_.c_str(), 1);
  RunCluster("down --name " + name_);
}

CommandResult OwnCluster::Kubectl(const std::string& words) const {
  return RunCluster("kubectl --name " + name_ + " -- " + words);
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
    return RunCluster("status --name " + name_).output.find("kube-scheduler is dead") != std::string::npos;
  };
  for (int tries = 0; !is_dead(); ++tries) {
    if (tries == 1000) throw std::runtime_error("the scheduler does not end");
  }
  MustRun("up --name " + name_);
}

}  // namespace grus::testing
