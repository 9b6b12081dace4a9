// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cgroup_path.h"

#include <algorithm>

namespace grus {
namespace {

constexpr std::size_t kUuidLength = 36;       // 8-4-4-4-12 digits.
constexpr std::size_t kHashLength = 32;       // Of the UID of a static pod.
constexpr std::size_t kContainerLength = 64;  // Of a container id, in all runtimes.

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool IsUuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return true;
}

// Removes and returns what is before the first `end` of `text`, which is removed too; all of it if there is none.
std::string_view Take(std::string_view& text, char end) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

// The UID in the name of a pod's cgroup; empty: it is not one. By cgroupfs: "podUID". By systemd, with '_' in place of
// the UID's dashes: "PARENTS-podUID.slice".
std::string UidIn(std::string_view name) {
  constexpr std::string_view kSlice = ".slice", kPod = "pod";
  const bool is_slice = name.ends_with(kSlice);
  if (is_slice) {
    name.remove_suffix(kSlice.size());
    name.remove_prefix(name.rfind('-') + 1);  // The whole name stays if there is no dash.
  }
  if (!name.starts_with(kPod)) return {};
  std::string uid(name.substr(kPod.size()));
  if (is_slice) std::replace(uid.begin(), uid.end(), '_', '-');
  const bool is_hash = uid.size() == kHashLength && std::all_of(uid.begin(), uid.end(), IsHex);
  return is_hash || IsUuid(uid) ? uid : std::string();
}

// The id in the name of a container's cgroup; empty: it has none. "ID" or, by systemd, "RUNTIME-ID.scope".
std::string ContainerIn(std::string_view name) {
  constexpr std::string_view kDeleted = " (deleted)", kScope = ".scope";
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  if (name.ends_with(kScope)) name.remove_suffix(kScope.size());
  name.remove_prefix(name.rfind('-') + 1);
  const bool is_id = name.size() == kContainerLength && std::all_of(name.begin(), name.end(), IsHex);
  return is_id ? std::string(name) : std::string();
}

std::optional<PodOfProcess> PodOfPath(std::string_view path) {
  while (!path.empty()) {
    std::string_view name = Take(path, '/');
    // "SLICE:RUNTIME:ID" is one cgroup, if the kubelet names cgroups as systemd does and the runtime does not.
    std::string_view pod = Take(name, ':');
    std::string uid = UidIn(pod);
    if (uid.empty()) continue;
    const bool is_joined = !name.empty();
    if (is_joined) Take(name, ':');
    return PodOfProcess{std::move(uid), ContainerIn(is_joined ? name : Take(path, '/'))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<PodOfProcess> PodOfCgroups(std::string_view cgroups) {
  std::optional<PodOfProcess> best;  // In cgroup v1 a process may be in its container for some controllers only.
  while (!cgroups.empty()) {
    std::string_view line = Take(cgroups, '\n');  // "HIERARCHY:CONTROLLERS:PATH"
    Take(line, ':');
    Take(line, ':');
    std::optional<PodOfProcess> pod = PodOfPath(line);
    if (!pod) continue;
    if (!pod->container_id.empty()) return pod;
    if (!best) best = std::move(pod);
  }
  return best;
}

}  // namespace grus
