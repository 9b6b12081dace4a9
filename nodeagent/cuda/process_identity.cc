// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/process_identity.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

namespace grus::cuda {
namespace {

// Fields of /proc/PID/stat, counted as in proc(5).
constexpr int kState = 3, kThreads = 20, kStarted = 22;

struct Stat {
  std::int32_t pid;
  bool has_ended;
  std::uint64_t started;
};

// The number at the front; nullopt: there is none, or it is too large.
std::optional<std::uint64_t> NumberAtFront(std::string_view text) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 10 - 1;
  std::uint64_t number = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (number > kMost) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(text[digits] - '0');
  }
  return digits > 0 ? std::optional(number) : std::nullopt;
}

std::optional<Stat> Parse(std::string_view text) {
  const std::optional<std::uint64_t> pid = NumberAtFront(text);
  // The second field is the program's name in parentheses, which may hold blanks and parentheses itself.
  const std::size_t name_end = text.rfind(") ");
  if (!pid || *pid > std::numeric_limits<std::int32_t>::max() || name_end == std::string_view::npos)
    return std::nullopt;
  text.remove_prefix(name_end + 2);
  bool is_zombie = false;
  std::uint64_t threads = 0;
  for (int field = kState; field < kStarted; ++field) {
    if (field == kState) is_zombie = text.starts_with('Z') || text.starts_with('X');
    if (field == kThreads) threads = NumberAtFront(text).value_or(0);
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    text.remove_prefix(blank + 1);
  }
  const std::optional<std::uint64_t> started = NumberAtFront(text);
  if (!started) return std::nullopt;
  // A process whose first thread has ended before the others looks like a zombie, with more than one thread.
  return Stat{static_cast<std::int32_t>(*pid), is_zombie && threads <= 1, *started};
}

std::optional<Stat> ReadStat(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  char text[1024];
  std::size_t size = 0;
  while (size < sizeof(text)) {
    const ssize_t got = read(file, text + size, sizeof(text) - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  close(file);
  return Parse({text, size});
}

std::optional<Stat> ReadStat(std::int32_t pid) {
  char digits[16];
  std::size_t count = 0;
  for (std::int32_t rest = pid; rest > 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  char path[32] = "/proc/";
  std::size_t at = 6;
  while (count > 0) path[at++] = digits[--count];
  for (const char c : std::string_view("/stat")) path[at++] = c;
  path[at] = '\0';
  return ReadStat(path);
}

}  // namespace

ProcessIdentity ThisProcess() {
  const std::optional<Stat> stat = ReadStat("/proc/self/stat");
  return stat ? ProcessIdentity{stat->pid, stat->started} : ProcessIdentity{getpid(), 0};
}

bool IsAlive(const ProcessIdentity& process) {
  if (process.pid <= 0) return false;
  if (const std::optional<Stat> stat = ReadStat(process.pid)) {
    return !stat->has_ended && (process.started == 0 || stat->started == process.started);
  }
  // It is gone, or is hidden from this user, or this program has no file to spare.
  return kill(process.pid, 0) == 0 || errno != ESRCH;
}

}  // namespace grus::cuda
