// SPDX-License-Identifier: Apache-2.0
// The client program (client.cc), started by a test: it is asked line by line.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace grus::cuda::fake {

class ClientProcess {
 public:
  // `environment` is added to that of the test: NAME=VALUE. The fake driver is found by the loader.
  explicit ClientProcess(std::vector<std::string> environment, std::vector<std::string> options = {},
                         const std::string& program = "fake-cuda-client");
  ~ClientProcess();  // By SIGKILL, if it has not ended.
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Its answer; "" if it has ended.
  std::string Ask(const std::string& command);
  // The answer's nth value, from 1, as a number. Fails the test's expectation by throwing if it is no "ok".
  std::uint64_t Get(const std::string& command, int nth = 1);
  void Tell(const std::string& command);  // Without waiting for the answer,
  std::string Hear();                     // which is here.
  void Kill();
  int Wait();  // For its end, after its input was closed; its status as of waitpid().

 private:
  pid_t pid_ = 0;
  int input_ = -1, output_ = -1;
  bool has_ended_ = false;
};

// The folder of the fake libcuda.so.1, beside the test's own binary, or $GRUS_FAKE_CUDA_FOLDER.
std::string FakeCudaFolder();

}  // namespace grus::cuda::fake
