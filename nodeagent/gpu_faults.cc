// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_faults.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace grus {
namespace {

namespace fs = std::filesystem;

constexpr char kVersion[] = "grus-gpu-faults-1";
constexpr std::size_t kMostGpus = 256, kLongestName = 128;  // More are not read.

std::optional<std::uint64_t> NumberOf(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

bool IsName(const std::string& text) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f'; };
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, is_plain);
}

}  // namespace

GpuFaults::GpuFaults(GpuFaultsOptions options, const kube::Log& log)
    : options_(std::move(options)), log_(log), epoch_(Epoch()) {
  Read();
}

std::optional<std::uint64_t> GpuFaults::Of(const std::string& uuid) const {
  const auto found = xids_.find(uuid);
  return found == xids_.end() ? std::nullopt : std::optional(found->second);
}

void GpuFaults::Put(const std::string& uuid, std::uint64_t xid) {
  if (!IsName(uuid) || Of(uuid) == xid) return;
  xids_[uuid] = xid;
  Write();
}

void GpuFaults::Forget(const std::string& uuid) {
  if (xids_.erase(uuid) > 0) Write();
}

bool GpuFaults::ForgetIfDriverIsNew() {
  std::string now = Epoch();
  if (now.empty() || now == epoch_) return false;
  epoch_ = std::move(now);
  if (std::exchange(xids_, {}).empty()) return false;
  Write();
  return true;
}

// "BOOT-ID INODE"; without a driver's folder the inode is 0.
std::string GpuFaults::Epoch() const {
  std::ifstream file(options_.proc + "/sys/kernel/random/boot_id");
  std::string boot;
  if (!(file >> boot) || !IsName(boot)) return {};
  struct stat driver = {};
  const bool is_there = stat(options_.driver.c_str(), &driver) == 0;
  return boot + " " + std::to_string(is_there ? driver.st_ino : 0);
}

// "VERSION BOOT-ID INODE", then a line "UUID XID" for each GPU.
void GpuFaults::Read() {
  if (options_.path.empty() || epoch_.empty()) return;
  std::ifstream file(options_.path);
  std::string line;
  if (!std::getline(file, line) || line != std::string(kVersion) + " " + epoch_) return;
  std::map<std::string, std::uint64_t> xids;
  while (std::getline(file, line) && xids.size() < kMostGpus) {
    const std::size_t space = line.find(' ');
    const std::string uuid = line.substr(0, space);
    const auto xid = space == std::string::npos ? std::nullopt : NumberOf(line.substr(space + 1));
    if (!xid || !IsName(uuid)) {
      log_.Warn("the file of sick GPUs makes no sense: it counts as none", {{"file", options_.path}});
      return;
    }
    xids[uuid] = *xid;
  }
  xids_ = std::move(xids);
}

void GpuFaults::Write() {
  if (options_.path.empty() || epoch_.empty()) return;
  const fs::path path(options_.path), next(options_.path + ".new");
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  {
    std::ofstream file(next, std::ios::trunc);
    file << kVersion << ' ' << epoch_ << '\n';
    for (const auto& [uuid, xid] : xids_) file << uuid << ' ' << xid << '\n';
    file.close();
    if (!file) error = std::make_error_code(std::errc::io_error);
    else error.clear();
  }
  if (!error) fs::rename(next, path, error);
  if (!error) is_told_ = false;
  else if (!std::exchange(is_told_, true)) {
    log_.Warn("which GPUs are sick cannot be written: the next agent will not know",
              {{"file", options_.path}, {"reason", error.message()}});
  }
}

}  // namespace grus
