// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "clientlib/base/spawn_words.h"

namespace kit {

ChildProcess::ChildProcess(std::vector<std::string> words, const Variables& variables, std::string log_path) {
  std::vector<std::string> environment = kube::EnvironmentWith(variables);
  const std::vector<char*> argv = kube::PointersTo(words), envp = kube::PointersTo(environment);
  int ends[2];  // With a log, only the end of the pipe is read.
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));

  pid_ = fork();
  if (pid_ == 0) {  // Other threads run: nothing here but system calls.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = log_path.empty() ? ends[1] : open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(out, 1);
    dup2(out, 2);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  if (pid_ < 0) {
    close(ends[0]);
    throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  }
  reader_ = std::jthread([this, fd = ends[0]] { Read(fd); });
}

ChildProcess::~ChildProcess() { Signal(SIGKILL); }

void ChildProcess::Read(int fd) {
  char buffer[8192];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    std::lock_guard lock(mutex_);
    output_.append(buffer, static_cast<std::size_t>(count));
    changed_.notify_all();
  }
  close(fd);
  // Wait first without reaping, then reap under the lock: the pid stays ours while Signal() may use it.
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  std::lock_guard lock(mutex_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  changed_.notify_all();
}

void ChildProcess::Signal(int number) {
  std::lock_guard lock(mutex_);
  if (!exit_status_) kill(pid_, number);
}

bool ChildProcess::IsRunning() const {
  std::lock_guard lock(mutex_);
  return !exit_status_;
}

std::optional<int> ChildProcess::WaitForExit(std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return exit_status_.has_value(); });
  return exit_status_;
}

std::optional<int> ChildProcess::Terminate() {
  Signal(SIGTERM);
  return WaitForExit();
}

bool ChildProcess::AwaitOutput(std::string_view text, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return output_.find(text) != std::string::npos; };
  changed_.wait_for(lock, limit, [&] { return is_there() || exit_status_; });
  return is_there();
}

std::string ChildProcess::output() const {
  std::lock_guard lock(mutex_);
  return output_;
}

std::string ChildProcess::Tail(int lines) const {
  std::lock_guard lock(mutex_);
  std::size_t start = output_.size();
  for (int i = 0; i <= lines && start != std::string::npos && start > 0; ++i) start = output_.rfind('\n', start - 1);
  return start == std::string::npos || start == 0 ? output_ : output_.substr(start + 1);
}

int ChildProcess::NumberAfter(std::string_view field) const {
  std::lock_guard lock(mutex_);
  const std::size_t at = output_.find(field);
  return at == std::string::npos ? 0 : std::atoi(output_.c_str() + at + field.size());
}

double ChildProcess::CpuSeconds() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(end_of_name + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;  // state is field 3; utime and stime are 14 and 15.
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ChildProcess::PeakMemoryMib() const { return MemoryField("VmHWM:"); }
double ChildProcess::MemoryMib() const { return MemoryField("VmRSS:"); }

double ChildProcess::MemoryField(const char* name) const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::atof(line.c_str() + std::strlen(name)) / 1024;
  }
  return 0;
}

CommandResult RunCommand(const std::string& line) {
  std::FILE* const pipe = popen(line.c_str(), "re");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + line);
  CommandResult result;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

std::string MustRun(const std::string& line) {
  CommandResult result = RunCommand(line);
  if (result.status != 0) throw std::runtime_error(line + ": " + result.output);
  if (result.output.ends_with('\n')) result.output.pop_back();
  return std::move(result.output);
}

}  // namespace kit
