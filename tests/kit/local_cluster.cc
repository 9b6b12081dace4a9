// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/local_cluster.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "tests/kit/child_process.h"

namespace kit {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set: run scripts/integration-tests");
  return value;
}

}  // namespace

std::string ClusterCommand(const std::string& words) { return "'" + Variable("GRUS_CLUSTER") + "' " + words + " 2>&1"; }

std::string FileOfTree(const std::string& path) {
  const std::filesystem::path cluster = Variable("GRUS_CLUSTER");
  return (cluster.parent_path() / "../.." / path).lexically_normal().string();
}

std::string PodLogFile(const std::string& ns, const std::string& pod) {
  return MustRun(ClusterCommand("pod-log " + pod + " --namespace " + ns + " --name " + Variable("GRUS_CLUSTER_NAME")));
}

}  // namespace kit
