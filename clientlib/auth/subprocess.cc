// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "clientlib/auth/files.h"
#include "clientlib/base/spawn_words.h"

namespace kube {
namespace {

using SteadyTime =
    std::chrono::steady_clock::time_point;  // Not by a Clock: the program runs in real time, also in tests.

// Starts the program with its standard output to `out`, in a process group of its own, so that its children can be
// killed with it. Returns the error number; 0: it runs as `pid`.
int Spawn(const ProgramCall& call, int out, pid_t& pid) {
  std::vector<std::string> args = {call.program};
  args.insert(args.end(), call.args.begin(), call.args.end());
  std::vector<std::string> env = EnvironmentWith(call.env);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawnp(&pid, call.program.c_str(), &files, &attributes, PointersTo(args).data(), PointersTo(env).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// A file descriptor that is closed at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

// What the program prints until it exits. Returns by the deadline, or with a stop, even if the program closes its
// output early, or a child of it keeps the output open. If the kernel has no pidfd (`exited` is -1), reads until the
// pipe ends instead.
Result<std::string> ReadUntilExit(const ProgramCall& call, Descriptor& in, int exited, SteadyTime deadline) {
  const Descriptor stopped(eventfd(0, EFD_CLOEXEC));
  const std::stop_callback on_stop(call.stop, [&] { eventfd_write(stopped.get(), 1); });
  std::string output;
  for (bool has_exited = false;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return Error(ErrorCode::kTimeout, "did not end within " + std::to_string(call.time_limit.count()) + " ms");
    }
    pollfd events[] = {{in.get(), POLLIN, 0}, {exited, POLLIN, 0}, {stopped.get(), POLLIN, 0}};
    if (poll(events, 3, static_cast<int>(left.count())) <= 0) continue;
    if (call.stop.stop_requested()) return Error(ErrorCode::kCancelled, "was stopped");
    if (events[0].revents == 0) {
      // poll() looks at the pipe first: what the program printed right before it exited shows in a second poll().
      if (std::exchange(has_exited, true)) return output;
      continue;
    }
    char bytes[4096];
    const ssize_t got = read(in.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error(ErrorCode::kUnavailable, "reading its output failed: " + SystemMessage(errno));
    if (got == 0) {
      if (exited < 0) return output;
      in.Close();
      continue;
    }
    output.append(bytes, static_cast<std::size_t>(got));
    if (output.size() > call.output_limit) {
      return Error(ErrorCode::kTooLarge, "printed more than " + std::to_string(call.output_limit) + " bytes");
    }
  }
}

// REQUIRES: the process has exited or is being killed, so that the wait is short.
Status CollectExit(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return Error(ErrorCode::kUnavailable, "waiting for its end failed: " + SystemMessage(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status)) {
    return Error(ErrorCode::kUnavailable, "failed with exit status " + std::to_string(WEXITSTATUS(status)));
  }
  return Error(ErrorCode::kUnavailable, "was ended by signal " + std::to_string(WTERMSIG(status)));
}

Result<std::string> Run(const ProgramCall& call) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + call.time_limit;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error(ErrorCode::kUnavailable, "no pipe: " + SystemMessage(errno));
  Descriptor in(ends[0]);
  Descriptor out(ends[1]);
  pid_t pid = 0;
  if (const int error = Spawn(call, out.get(), pid); error != 0) {
    return Error(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                 "cannot start: " + SystemMessage(error));
  }
  out.Close();
  // By the number of the system call: glibc 2.36 declares pidfd_open() for C only.
  const Descriptor exited(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  Result<std::string> output = ReadUntilExit(call, in, exited.get(), deadline);
  if (!output) kill(-pid, SIGKILL);
  Status exit = CollectExit(pid);
  if (output && !exit) return std::move(exit).error();
  return output;
}

}  // namespace

Result<std::string> RunProgram(const ProgramCall& call) {
  Result<std::string> output = Run(call);
  if (!output) return std::move(output).error().with(call.program);
  return output;
}

}  // namespace kube
