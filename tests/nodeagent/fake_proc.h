// SPDX-License-Identifier: Apache-2.0
// A made-up /proc, with the files that grus-node-agent reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/kit/temp_dir.h"

namespace grus::testing {

inline std::string ContainerId(char digit) { return std::string(64, digit); }

class FakeProc {
 public:
  std::string path() const { return folder_.path(); }

  // `start`: in ticks since the machine started.
  void Put(int pid, std::uint64_t start, const std::string& cgroups, const std::string& name = "python",
           char state = 'S') {
    const std::string folder = std::to_string(pid) + "/";
    folder_.Write(folder + "cgroup", cgroups);
    folder_.Write(folder + "stat", std::to_string(pid) + " (" + name + ") " + state +
                                       " 1 1 1 0 -1 4194560 10 0 0 0 1 2 0 0 20 0 1 0 " + std::to_string(start) +
                                       " 1000000 500 18446744073709551615 1 1 0 0 0\n");
  }
  void PutInPod(int pid, std::uint64_t start, const std::string& uid, const std::string& container) {
    Put(pid, start, "0::/kubepods/burstable/pod" + uid + "/" + container + "\n");
  }
  void End(int pid) { std::filesystem::remove_all(folder_.path(std::to_string(pid))); }

 private:
  kube::testing::TempDir folder_;
};

}  // namespace grus::testing
