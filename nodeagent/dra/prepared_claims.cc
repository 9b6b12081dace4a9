// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/prepared_claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace grus {
namespace {

namespace fs = std::filesystem;
using kube::Error;
using kube::ErrorCode;

constexpr std::string_view kPrefix = "grus-claim-", kSuffix = ".json", kNewSuffix = ".new";

// It becomes the name of a file.
bool IsUid(const std::string& uid) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !uid.empty() && uid.size() <= 64 && std::ranges::all_of(uid, is_plain);
}

Error Failed(const char* what, const std::string& path) {
  return Error(ErrorCode::kUnavailable, std::string(what) + " " + path + ": " + std::strerror(errno) +
                                            "; the agent must be able to write where the container runtime reads CDI "
                                            "files");
}

kube::Status WriteFile(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return Failed("create", path);
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t size = write(file, text.data() + at, text.size() - at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    at += static_cast<std::size_t>(size);
  }
  const bool is_whole = at == text.size() && fsync(file) == 0;
  const int error = errno;
  close(file);
  errno = error;
  return is_whole ? kube::Status() : Failed("write", path);
}

}  // namespace

PreparedClaims::PreparedClaims(std::string folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    if (name.ends_with(kNewSuffix)) fs::remove(entry.path(), ignored);  // A write that was cut off.
    if (!name.ends_with(kSuffix)) continue;
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) continue;  // It cannot be read now; its containers may run.
    std::optional<AllocatedClaim> claim = ReadCdiSpec(text.view());
    if (claim && PathOf(claim->claim.uid) == entry.path()) claims_[claim->claim.uid] = *std::move(claim);
    else fs::remove(entry.path(), ignored);  // No agent writes such a one.
  }
}

std::string PreparedClaims::PathOf(const std::string& uid) const {
  return folder_ + "/" + std::string(kPrefix) + uid + std::string(kSuffix);
}

std::vector<AllocatedClaim> PreparedClaims::List() const {
  const std::scoped_lock lock(mutex_);
  std::vector<AllocatedClaim> claims;
  for (const auto& [uid, claim] : claims_) claims.push_back(claim);
  return claims;
}

std::optional<AllocatedClaim> PreparedClaims::Find(const std::string& uid) const {
  const std::scoped_lock lock(mutex_);
  const auto found = claims_.find(uid);
  return found == claims_.end() ? std::nullopt : std::optional(found->second);
}

kube::Status PreparedClaims::Write(const AllocatedClaim& claim) {
  if (!IsUid(claim.claim.uid)) {
    return Error(ErrorCode::kInvalidArgument, TextOf(claim.claim) + ": metadata.uid is no UID");
  }
  const std::string path = PathOf(claim.claim.uid), made = path + std::string(kNewSuffix);
  const std::scoped_lock lock(mutex_);
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  if (kube::Status written = WriteFile(made, CdiSpecOf(claim)); !written) return written;
  if (rename(made.c_str(), path.c_str()) != 0) return Failed("rename", made);
  claims_[claim.claim.uid] = claim;
  return {};
}

kube::Status PreparedClaims::Remove(const std::string& uid) {
  const std::scoped_lock lock(mutex_);
  if (!IsUid(uid)) return {};
  const std::string path = PathOf(uid);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Failed("remove", path);
  claims_.erase(uid);
  return {};
}

std::vector<GpuPart> PreparedClaims::PartsOf(const std::string& cdi_id) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [uid, claim] : claims_) {
    if (cdi_id.find(uid) == std::string::npos) continue;
    for (const AllocatedPart& part : claim.parts) {
      if (CdiIdOf(claim.claim, part.request) == cdi_id) return PartsOfRequest(claim, part.request);
    }
  }
  return {};
}

std::map<std::string, std::string> PreparedClaims::Holders() const {
  const std::scoped_lock lock(mutex_);
  std::map<std::string, std::string> holders;
  for (const auto& [uid, claim] : claims_) {
    for (const AllocatedPart& part : claim.parts) holders.emplace(part.gpu, TextOf(claim.claim));
  }
  return holders;
}

}  // namespace grus
