// SPDX-License-Identifier: Apache-2.0
// A folder in which tests/nodeagent/mps/fake_mps_control plays the daemons of MPS.
#pragma once

#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "clientlib/base/clock.h"
#include "clientlib/base/wait.h"
#include "nodeagent/mps/mps_process.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/temp_dir.h"
#include "tests/kit/tree_file.h"

namespace grus::testing {

class MpsSetup {
 public:
  ~MpsSetup() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      SignalGroup(Mark(entry.path().filename()), SIGKILL);
    }
  }

  std::string program() const { return kit::TreePath("tests/nodeagent/mps/fake_mps_control"); }
  std::string folder(const std::string& gpu = {}) const { return folder_.path(gpu); }
  // Words as fake_mps_control has them.
  void Behave(const std::string& gpu, const std::string& words) const { folder_.Write(gpu + "/behaviour", words); }
  std::string Read(const std::string& path) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(path)).rdbuf();
    return text.str();
  }
  std::string ControlLog(const std::string& gpu) const { return Read(gpu + "/log/control.log"); }
  // Of the daemon; pid 0: none.
  ProcessMark Mark(const std::string& gpu) const {
    std::istringstream text(Read(gpu + "/daemon"));
    ProcessMark mark;
    text >> mark.pid >> mark.started;
    return text ? mark : ProcessMark();
  }
  kube::Status Command(const std::string& gpu, const std::string& command) const {
    return RunWithInput({program()}, {{"CUDA_MPS_PIPE_DIRECTORY", folder_.path(gpu + "/pipe")}}, command + "\n",
                        std::chrono::seconds(20));
  }
  // Looks again and again; false: it did not come true in twenty seconds.
  bool Until(const std::function<bool()>& is_true, const std::function<void()>& look) const {
    const kube::SystemClock system;
    const kube::TimePoint until = system.Now() + std::chrono::seconds(20);
    for (look(); !is_true(); look()) {
      if (system.Now() >= until) return false;
      kube::WaitFor(system, std::chrono::milliseconds(5), {});
    }
    return true;
  }

 private:
  const kube::testing::TempDir folder_;
};

}  // namespace grus::testing
