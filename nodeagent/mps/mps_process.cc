// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "clientlib/base/spawn_words.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr std::size_t kMostLingering = 16;

// Processes that were told to end, and whose end nobody waits for. Thread-safe.
class Lingering {
 public:
  void Add(pid_t pid) {
    const std::scoped_lock lock(mutex_);
    pids_.push_back(pid);
  }
  std::size_t Count() {  // That have not ended.
    const std::scoped_lock lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    return pids_.size();
  }

 private:
  std::mutex mutex_;  // Guards pids_.
  std::vector<pid_t> pids_;
};

Error Failed(const std::string& what, int error) {
  const bool is_absent = error == ENOENT || error == ENOTDIR;
  return Error(is_absent ? ErrorCode::kNotFound : ErrorCode::kUnavailable, what + ": " + std::strerror(error));
}

// What a new process has as its standard files; `output` may be a path that is appended to.
struct StandardFiles {
  int input = -1;  // -1: empty.
  std::string output = "/dev/null";
};

// The error number; 0: it runs as `pid`.
int Spawn(std::vector<std::string> words, const Variables& variables, const StandardFiles& files, pid_t& pid) {
  std::vector<std::string> environment = kube::EnvironmentWith(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (files.input < 0) posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  else posix_spawn_file_actions_adddup2(&actions, files.input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, files.output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  const int error = posix_spawnp(&pid, words.front().c_str(), &actions, &attributes, kube::PointersTo(words).data(),
                                 kube::PointersTo(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

struct ProcessStat {
  char state = 0;
  std::uint64_t started = 0;
};

// See proc_pid_stat(5): the second field, the name, may contain spaces and brackets.
std::optional<ProcessStat> ReadStat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (!file || name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  ProcessStat stat;
  constexpr int kFieldsBetween = 18;  // State is the third field, the time of the start the 22nd.
  rest >> stat.state;
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> skipped;
  rest >> stat.started;
  return rest ? std::optional(stat) : std::nullopt;
}

}  // namespace

kube::Result<ProcessMark> StartProcess(const std::vector<std::string>& words, const Variables& variables,
                                       const std::string& output) {
  pid_t pid = 0;
  const int error = Spawn(words, variables, {.output = output}, pid);
  if (error != 0) return Failed("start " + words.front(), error);
  // It is there until its end is collected.
  const std::optional<ProcessStat> stat = ReadStat(pid);
  return ProcessMark{pid, stat ? stat->started : 0};
}

bool IsRunning(const ProcessMark& process) {
  if (process.pid <= 0) return false;
  int status = 0;
  if (waitpid(process.pid, &status, WNOHANG) == process.pid) return false;
  const std::optional<ProcessStat> stat = ReadStat(process.pid);
  return stat && stat->started == process.started && stat->state != 'Z' && stat->state != 'X';
}

void SignalGroup(const ProcessMark& process, int signal) {
  if (!IsRunning(process)) return;
  kill(process.pid, signal);
  kill(-process.pid, signal);
}

kube::Status RunWithInput(const std::vector<std::string>& words, const Variables& variables, const std::string& input,
                          std::chrono::milliseconds limit) {
  static Lingering lingering;
  if (const std::size_t count = lingering.Count(); count >= kMostLingering) {
    return Error(ErrorCode::kUnavailable, words.front() + ": " + std::to_string(count) +
                                              " that were told to end have not; see whether the driver hangs");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failed("no pipe", errno);
  pid_t pid = 0;
  // It is less than a pipe holds. A program that does not read is none of our business.
  const bool is_written = write(ends[1], input.data(), input.size()) == static_cast<ssize_t>(input.size());
  close(ends[1]);
  const int error = is_written ? Spawn(words, variables, {.input = ends[0]}, pid) : EIO;
  close(ends[0]);
  if (error != 0) return Failed("run " + words.front(), error);

  // By the number of the system call: glibc 2.36 declares pidfd_open() for C only.
  const int exited = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd event = {exited, POLLIN, 0};
  const auto until = std::chrono::steady_clock::now() + limit;
  bool has_ended = false;
  while (exited >= 0 && !has_ended) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    has_ended = poll(&event, 1, static_cast<int>(left.count())) > 0;
  }
  if (exited >= 0) close(exited);
  int status = 0;
  if (!has_ended) {
    kill(-pid, SIGKILL);
    // One that waits for a driver that hangs does not end even so.
    if (waitpid(pid, &status, WNOHANG) != pid) lingering.Add(pid);
    return Error(ErrorCode::kTimeout, words.front() + " did not end within " + std::to_string(limit.count()) + " ms");
  }
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error(ErrorCode::kUnavailable,
               words.front() + " failed" +
                   (WIFEXITED(status) ? " with exit status " + std::to_string(WEXITSTATUS(status))
                                      : " by signal " + std::to_string(WTERMSIG(status))));
}

}  // namespace grus
