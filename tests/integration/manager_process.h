// SPDX-License-Identifier: Apache-2.0
// grus-manager as a child process.
#pragma once

#include <string>
#include <vector>

#include "tests/kit/child_process.h"

namespace grus::testing {

// The program under test, from the environment: GRUS_MANAGER.
std::string ManagerPath();
class ManagerProcess : public kit::ChildProcess {
 public:
  explicit ManagerProcess(std::vector<std::string> arguments, const Variables& variables = {});
};

// The answer to a GET of http://127.0.0.1:PORT/PATH; status 0 if none came.
struct Answer {
  int status = 0;
  std::string body;
};
Answer HttpGet(int port, const std::string& path);

}  // namespace grus::testing
