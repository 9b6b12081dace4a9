// SPDX-License-Identifier: Apache-2.0
// The kubelet's own device manager (main.go) as a child of a test.
#pragma once

#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "clientlib/model/json.h"
#include "tests/kit/child_process.h"
#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"

namespace grus::testing {

class DeviceManager {
 public:
  DeviceManager() {
    const char* program = std::getenv("GRUS_DEVICE_MANAGER");
    if (program == nullptr) throw std::runtime_error("run tests/nodeagent/device-manager/device_manager_test.sh");
    const std::string commands = folder_.path("commands");
    kit::MustRun("mkfifo " + commands);
    process_ = std::make_unique<kit::ChildProcess>(
        std::vector<std::string>{"/bin/sh", "-c", "exec \"$0\" <\"$1\"", program, commands});
    commands_.open(commands);
  }

  // The answer to a command; main.go lists them. Throws if there is none within a minute.
  kube::Json Ask(const std::string& command) {
    commands_ << command << std::endl;
    const std::string end = "\"answer\":" + std::to_string(++asked_) + "}\n";
    if (!process_->AwaitOutput(end)) throw std::runtime_error(command + ": no answer; " + process_->Tail(5));
    const std::string output = process_->output();
    const auto at = output.find(end);
    const auto begin = output.rfind('\n', at);
    return kit::FromText(output.substr(begin == std::string::npos ? 0 : begin + 1));
  }
  // Throws if it is refused.
  kube::Json Must(const std::string& command) {
    kube::Json answer = Ask(command);
    if (const std::string error = Error(answer); !error.empty()) throw std::runtime_error(command + ": " + error);
    return answer;
  }
  static std::string Error(const kube::Json& answer) {
    const kube::Json* error = answer.At({"error"});
    return error == nullptr ? "" : std::string(*error->AsString());
  }

 private:
  kube::testing::TempDir folder_;
  std::unique_ptr<kit::ChildProcess> process_;
  std::ofstream commands_;
  int asked_ = 0;
};

}  // namespace grus::testing
