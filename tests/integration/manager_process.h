// SPDX-License-Identifier: Apache-2.0
// grus-manager as a child process, whose output is read while it runs.
//
// A thread reads the output to its end and then takes the exit status, so that a test waits for a line or for
// the end on a condition variable. Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace grus::testing {

// The program under test, from the environment: GRUS_MANAGER.
std::string ManagerPath();
// The absolute path of a file of the source tree, which $GRUS_CLUSTER (tests/cluster/cluster) lies in.
std::string FileOfTree(const std::string& path);

class ManagerProcess {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // Starts the manager with these arguments. `variables` are laid over our own environment. Throws if it
  // cannot be started. The child ends with this process.
  explicit ManagerProcess(const std::vector<std::string>& arguments, const Variables& variables = {});
  ~ManagerProcess();  // SIGKILL if it still runs.
  ManagerProcess(const ManagerProcess&) = delete;
  ManagerProcess& operator=(const ManagerProcess&) = delete;

  void Signal(int number);
  // The exit status, 128 + signal if it was killed; nullopt: it still runs.
  std::optional<int> WaitForExit(std::chrono::seconds limit = std::chrono::seconds(60));
  // SIGTERM, and the exit status.
  std::optional<int> Terminate();

  // True once the output holds `text`; false at the limit, or when the process ended without it.
  bool AwaitOutput(std::string_view text, std::chrono::seconds limit = std::chrono::seconds(60));
  std::string output() const;
  std::string Tail(int lines) const;
  // The number that stands after `field` in the output ("health_port="); 0 if it is not there.
  int NumberAfter(std::string_view field) const;

 private:
  void Read(int fd);

  pid_t pid_ = -1;
  mutable std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::string output_;
  std::optional<int> exit_status_;
  std::jthread reader_;
};

// The answer to a GET of http://127.0.0.1:PORT/PATH; status 0 if none came.
struct Answer {
  int status = 0;
  std::string body;
};
Answer HttpGet(int port, const std::string& path);

}  // namespace grus::testing
