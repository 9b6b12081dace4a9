// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/namespace_pids.h"

#include <fstream>
#include <sstream>

namespace grus {

std::vector<int> NamespacePids(const std::string& proc, int pid) {
  constexpr char kKey[] = "NSpid:";
  std::ifstream status(proc + "/" + std::to_string(pid) + "/status");
  std::vector<int> pids;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    std::istringstream numbers(line.substr(sizeof(kKey) - 1));
    for (int number = 0; numbers >> number;) pids.push_back(number);
    break;
  }
  return pids;
}

}  // namespace grus
