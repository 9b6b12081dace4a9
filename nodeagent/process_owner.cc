// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/process_owner.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

namespace grus {
namespace {

// Its first bytes, as many as fit; empty: it cannot be read.
template <std::size_t kSize>
std::string_view ReadFile(const std::string& path, char (&buffer)[kSize]) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0 && size<kSize; size += got> 0 ? static_cast<std::size_t>(got) : 0) {
    got = read(file, buffer + size, kSize - size);
  }
  close(file);
  return {buffer, size};
}

// When the process began, by /proc/PID/stat; nullopt: there is none, or it has ended and was not waited for yet.
std::optional<ProcessOwners::Ticks> StartOf(const std::string& folder) {
  constexpr int kState = 3, kStart = 22;  // Fields, counted as in proc(5).
  char buffer[1024];
  std::string_view text = ReadFile(folder + "/stat", buffer);
  // The second field is the program's name in parentheses, which may hold blanks and parentheses itself.
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 2);
  for (int field = kState; field < kStart; ++field) {
    if (field == kState && (text.starts_with('Z') || text.starts_with('X'))) return std::nullopt;
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    text.remove_prefix(blank + 1);
  }
  ProcessOwners::Ticks start = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), start);
  return error == std::errc() ? std::optional(start) : std::nullopt;
}

}  // namespace

ProcessOwners::Ticks ProcessOwners::NowTicks() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  static const Ticks kPerSecond = static_cast<Ticks>(sysconf(_SC_CLK_TCK));
  return static_cast<Ticks>(now.tv_sec) * kPerSecond + static_cast<Ticks>(now.tv_nsec) * kPerSecond / 1'000'000'000;
}

void ProcessOwners::BeginRound(Ticks asked_at) {
  ++round_;
  asked_at_ = asked_at;
}

void ProcessOwners::EndRound() {
  std::erase_if(processes_, [&](const auto& entry) { return entry.second.round != round_; });
}

ProcessOwners::Found ProcessOwners::Find(int pid) {
  const auto known = processes_.find(pid);
  if (known != processes_.end() && known->second.round == round_) return {known->second.owner, known->second.was_there};

  const std::string folder = proc_ + "/" + std::to_string(pid);
  const std::optional<Ticks> start = StartOf(folder);
  if (!start || *start >= asked_at_) return {};
  const bool is_known = known != processes_.end() && known->second.start == *start;
  Process process;
  if (is_known) {
    process = known->second;
    process.was_there = process.round + 1 == round_;
  } else {
    char buffer[16384];
    const std::string_view cgroups = ReadFile(folder + "/cgroup", buffer);
    const std::optional<PodOfProcess> pod = PodOfCgroups(cgroups);
    if (cgroups.empty() || StartOf(folder) != start) return {};  // It ended meanwhile.
    process = {*start, Name(pod.value_or(PodOfProcess{}))};
  }
  process.round = round_;
  const Owner& owner = *process.owner;
  const bool is_named = !owner.name.pod.empty() && (!owner.name.container.empty() || owner.pod.container_id.empty());
  // Names come later than pods. A name that was found stays, also when the pod is deleted by force and runs on.
  if (is_known && owner.is_pod() && !is_named) {
    std::shared_ptr<const Owner> named = Name(owner.pod);
    if (!named->name.pod.empty()) process.owner = std::move(named);
  }
  processes_.insert_or_assign(pid, process);
  return {process.owner, process.was_there};
}

std::shared_ptr<const Owner> ProcessOwners::Name(const PodOfProcess& pod) const {
  std::optional<PodName> name;
  if (!pod.pod_uid.empty()) name = names_.Find(pod);
  return std::make_shared<const Owner>(Owner{pod, std::move(name).value_or(PodName{})});
}

}  // namespace grus
