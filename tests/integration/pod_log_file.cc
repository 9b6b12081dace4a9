// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/pod_log_file.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace grus::testing {

std::string PodLogFile(const std::string& ns, const std::string& pod) {
  const std::string command = "'" + std::string(std::getenv("GRUS_CLUSTER")) + "' pod-log " + pod + " --namespace " +
                              ns + " --name " + std::getenv("GRUS_CLUSTER_NAME");
  FILE* const output = popen(command.c_str(), "re");
  char line[4096] = "";
  const bool is_read = output != nullptr && fgets(line, sizeof line, output) != nullptr;
  if (output == nullptr || pclose(output) != 0 || !is_read) throw std::runtime_error("failed: " + command);
  std::string path = line;
  path.pop_back();
  return path;
}

}  // namespace grus::testing
