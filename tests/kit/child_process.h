// SPDX-License-Identifier: Apache-2.0
// A program as a child of a test or a bench: its output, its exit status, its CPU time and memory.
//
// A thread reads the output to its end and then takes the exit status, so that a test can wait for a line or for the
// end on a condition variable. The child is killed with this process. Thread-safe.
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

namespace kit {

class ChildProcess {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // The first of `words` is the program's path. `variables` override our own environment. With a log path the output
  // goes there, and cannot be read here. Throws if the program cannot be started.
  explicit ChildProcess(std::vector<std::string> words, const Variables& variables = {}, std::string log_path = {});
  ~ChildProcess();  // SIGKILL if it still runs.
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void Signal(int number);
  bool IsRunning() const;
  // The exit status, 128 + signal if it was killed; nullopt: it still runs.
  std::optional<int> WaitForExit(std::chrono::seconds limit = std::chrono::seconds(60));
  // SIGTERM, and the exit status.
  std::optional<int> Terminate();

  // True once the output holds `text`; false at the limit, or when the process ended without it.
  bool AwaitOutput(std::string_view text, std::chrono::seconds limit = std::chrono::seconds(60));
  std::string output() const;
  std::string Tail(int lines) const;
  // The number after `field` in the output ("health_port="); 0 if the output lacks it.
  int NumberAfter(std::string_view field) const;

  double CpuSeconds() const;     // User and system, so far.
  double PeakMemoryMib() const;  // VmHWM.
  double MemoryMib() const;      // VmRSS.

 private:
  void Read(int fd);
  double MemoryField(const char* name) const;

  pid_t pid_ = -1;
  mutable std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::string output_;
  std::optional<int> exit_status_;
  std::jthread reader_;
};

// A shell command, run to its end: its output and exit status, 128 if it was killed. Throws if there is no shell.
struct CommandResult {
  int status = 0;
  std::string output;
};
CommandResult RunCommand(const std::string& line);
// Its output without the last line's end. Throws unless it succeeds.
std::string MustRun(const std::string& line);

}  // namespace kit
