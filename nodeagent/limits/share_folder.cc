// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/share_folder.h"

#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "nodeagent/cuda/share_files.h"
#include "nodeagent/limits/cuda_library.h"
#include "nodeagent/limits/own_fd.h"

namespace grus {
namespace {

using std::chrono::nanoseconds;

// More than any GPU, node or container can have.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50, kMostCount = std::uint64_t{1} << 53;
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 60;
constexpr int kMostPid = 1 << 22;  // Linux' own limit.

kube::Error Failure(const std::string& action, const std::string& path, const std::string& reason) {
  return kube::Error(kube::ErrorCode::kUnavailable, action + " " + path + ": " + reason);
}
std::string Reason(int number) { return std::generic_category().message(number); }

std::optional<std::array<unsigned char, 16>> ParseUuid(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::array<unsigned char, 16> bytes = {};
  std::size_t digits = 0;
  for (const char c : text.substr(dash + 1)) {
    if (c == '-') continue;
    const bool is_digit = c >= '0' && c <= '9', is_low = c >= 'a' && c <= 'f', is_high = c >= 'A' && c <= 'F';
    if (digits >= 32 || !(is_digit || is_low || is_high)) return std::nullopt;
    const int value = is_digit ? c - '0' : (is_low ? c - 'a' : c - 'A') + 10;
    bytes[digits / 2] = static_cast<unsigned char>(bytes[digits / 2] * 16 + value);
    ++digits;
  }
  return digits == 32 ? std::optional(bytes) : std::nullopt;
}

kube::Result<std::unique_ptr<cuda::Limits>> ToLimits(std::span<const ShareLimits> parts, nanoseconds now) {
  using kube::ErrorCode;
  const std::size_t entries = EntriesOf(parts);
  if (entries > cuda::kMostGpus) {
    return kube::Error(ErrorCode::kInvalidArgument, "a container cannot have parts of " + std::to_string(parts.size()) +
                                                        " GPUs, paged memory counted once more; " +
                                                        std::to_string(cuda::kMostGpus) + " are possible");
  }
  auto limits = std::make_unique<cuda::Limits>();
  limits->magic = cuda::kLimitsMagic;
  limits->version = cuda::kVersion;
  limits->gpu_count = static_cast<std::uint32_t>(entries);
  limits->beat = static_cast<std::uint64_t>(now.count());
  std::size_t paged = parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto uuid = ParseUuid(parts[i].gpu);
    if (!uuid) return kube::Error(ErrorCode::kInvalidArgument, "\"" + parts[i].gpu + "\" is not the UUID of a GPU");
    cuda::GpuLimits& gpu = limits->gpus[i];
    std::ranges::copy(*uuid, gpu.uuid);
    gpu.memory = parts[i].memory_bytes;
    gpu.context = parts[i].context_bytes;
    gpu.beside = parts[i].beside_bytes;
    gpu.milli = parts[i].milli;
    gpu.rate = parts[i].rate_milli;
    if (parts[i].paged_bytes == 0) continue;
    std::ranges::copy(*uuid, limits->gpus[paged].uuid);
    limits->gpus[paged].memory = parts[i].paged_bytes;
    gpu.paged = static_cast<std::uint32_t>(++paged);
  }
  return limits;
}

// Empty: written. Whoever opens `name` meanwhile finds the old file or the new one. `folder`: of `path`.
std::string Replace(int folder, const std::string& path, const std::string& name, const void* content, std::size_t size,
                    mode_t mode) {
  const std::string next = name + ".new";
  unlinkat(folder, next.c_str(), 0);
  const auto write = [&]() -> int {
    const OwnFd file(folder, next.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file.fd() < 0) return errno;
    // A page that the disk has no room for would end whoever writes to it in memory.
    if (const int failed = posix_fallocate(file.fd(), 0, static_cast<off_t>(size)); failed != 0) return failed;
    const ssize_t written = pwrite(file.fd(), content, size, 0);
    if (written < 0) return errno;
    if (static_cast<std::size_t>(written) != size) return ENOSPC;
    return fchmod(file.fd(), mode) == 0 ? 0 : errno;  // Whatever the umask is.
  };
  const auto rename = [&] { return renameat(folder, next.c_str(), folder, name.c_str()) == 0 ? 0 : errno; };
  int failed = write();
  if (failed == 0) failed = rename();
  if (failed == EISDIR) {
    std::error_code error;
    std::filesystem::remove_all(path + "/" + name, error);
    failed = error ? error.value() : rename();
  }
  if (failed == 0) return {};
  unlinkat(folder, next.c_str(), 0);
  return Reason(failed);
}

// Reads the beginning of it. Empty: `content` is filled. `least`: how long the file is to be.
std::string ReadBegin(int file, void* content, std::size_t size, std::size_t least) {
  if (file < 0) return Reason(errno);
  struct stat status = {};
  if (fstat(file, &status) != 0) return Reason(errno);
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  if (status.st_size < static_cast<off_t>(least)) return "is too short";
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = pread(file, static_cast<char*>(content) + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Reason(errno);
    if (got == 0) return "is too short";
    done += static_cast<std::size_t>(got);
  }
  return {};
}

std::uint64_t Bytes(std::uint64_t value) { return std::min(value, kMostBytes); }
nanoseconds Time(std::uint64_t value) {
  return nanoseconds(std::min(value, static_cast<std::uint64_t>(kMostNanoseconds)));
}

// Not made zeroes first, as an account would be.
struct AccountBytes {
  const cuda::Account& account() const { return *reinterpret_cast<const cuda::Account*>(bytes); }
  alignas(cuda::Account) std::byte bytes[sizeof(cuda::Account)];
};

// The first `size` bytes, of an account that is there whole.
kube::Result<std::unique_ptr<AccountBytes>> ReadBytes(const std::string& folder, std::size_t size) {
  const std::string path = folder + "/" + cuda::kAccountFile;
  const OwnFd file(AT_FDCWD, path.c_str(), O_RDONLY);
  auto bytes = std::make_unique_for_overwrite<AccountBytes>();
  if (const std::string why = ReadBegin(file.fd(), bytes->bytes, size, sizeof(cuda::Account)); !why.empty()) {
    return Failure("read", path, why);
  }
  if (bytes->account().magic != cuda::kAccountMagic || bytes->account().version != cuda::kVersion) {
    return kube::Error(kube::ErrorCode::kDecode, "read " + path + ": it was overwritten, or is of another version");
  }
  return bytes;
}

AccountCopy::Gpu GpuOf(const cuda::Account& account, std::size_t index) {
  const cuda::GpuTime& time = account.time[index];
  AccountCopy::Gpu gpu;
  gpu.memory_bytes = Bytes(account.memory[index]);
  gpu.most_memory_bytes = Bytes(account.most_memory[index]);
  gpu.refused = std::min(account.refused[index], kMostCount);
  gpu.balance = nanoseconds(std::clamp(time.balance.load(), -kMostNanoseconds, kMostNanoseconds));
  gpu.filled = Time(time.filled);
  gpu.charged = Time(time.charged);
  gpu.waited = Time(time.waited);
  gpu.busy.assign(std::begin(time.busy), std::end(time.busy));
  return gpu;
}

}  // namespace

std::size_t EntriesOf(std::span<const ShareLimits> parts) {
  const auto may_page = [](const ShareLimits& part) { return part.paged_bytes > 0; };
  return parts.size() + static_cast<std::size_t>(std::ranges::count_if(parts, may_page));
}

kube::Status ShareFolder::Make(std::span<const ShareLimits> parts, nanoseconds monotonic_now) const {
  const auto limits = ToLimits(parts, monotonic_now);
  if (!limits) return kube::Error(limits.error()).with("make " + path_);
  const auto account = std::make_unique<cuda::Account>();
  account->magic = cuda::kAccountMagic;
  account->version = cuda::kVersion;
  for (cuda::GpuTime& time : account->time) time.filled = static_cast<std::uint64_t>(monotonic_now.count());
  // Nobody has locked it, so it holds no address, and a copy of it is as good.
  pthread_mutexattr_t kind = {};
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  const int failed = pthread_mutex_init(&account->mutex, &kind);
  pthread_mutexattr_destroy(&kind);
  if (failed != 0) return Failure("make a lock for", path_, Reason(failed));

  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) return Failure("make", path_, error.message());
  const OwnFd folder(AT_FDCWD, path_.c_str(), O_RDONLY | O_DIRECTORY);
  if (folder.fd() < 0) return Failure("open", path_, Reason(errno));
  // Its files alone are mounted: nobody else on the node is to reach them.
  if (fchmod(folder.fd(), 0700) != 0) return Failure("set the mode of", path_, Reason(errno));
  const auto replace = [&](const char* name, const void* content, std::size_t size, mode_t mode) -> kube::Status {
    const std::string why = Replace(folder.fd(), path_, name, content, size, mode);
    constexpr char kRemedy[] =
        "; the agent must be able to write to --cuda-shares (nodeAgent.sharing.cooperative.sharesFolder), 1 MiB for "
        "each container";
    return why.empty() ? kube::Status() : Failure("write", path_ + "/" + name, why + kRemedy);
  };
  // Programs of the container run as any user.
  constexpr mode_t kRead = 0644, kWrite = 0666;
  const std::string preload = std::string(kCudaLibraryInContainer) + "\n";
  kube::Status made = replace(cuda::kAccountFile, account.get(), sizeof(cuda::Account), kWrite);
  if (made) made = replace(kPreloadFile, preload.data(), preload.size(), kRead);
  return made ? replace(cuda::kLimitsFile, limits->get(), sizeof(cuda::Limits), kRead) : made;
}

kube::Status ShareFolder::WriteLimits(std::span<const ShareLimits> parts, nanoseconds monotonic_now) const {
  const auto wanted = ToLimits(parts, monotonic_now);
  const std::string path = path_ + "/" + cuda::kLimitsFile;
  if (!wanted) return kube::Error(wanted.error()).with("write " + path);
  const OwnFd file(AT_FDCWD, path.c_str(), O_RDWR);
  const auto present = std::make_unique<cuda::Limits>();
  if (const std::string why = ReadBegin(file.fd(), present.get(), sizeof(cuda::Limits), sizeof(cuda::Limits));
      !why.empty()) {
    return Failure("read", path, why);
  }
  const cuda::Limits &before = *present, &after = **wanted;
  bool is_same = before.magic == after.magic && before.version == after.version && before.gpu_count == after.gpu_count;
  for (std::size_t i = 0; is_same && i < after.gpu_count; ++i) {
    is_same =
        std::ranges::equal(before.gpus[i].uuid, after.gpus[i].uuid) && before.gpus[i].paged == after.gpus[i].paged;
  }
  if (!is_same) return Failure("write", path, "it was made for other GPUs, or by another version of grus");

  // One aligned number a write, so that no reader in the container sees half of it. Mapped memory would end the agent
  // if the file were cut short.
  bool is_written = true;
  const auto write = [&](const auto& from, const auto& to) {
    static_assert(std::is_same_v<decltype(from), decltype(to)> && sizeof(from) <= 8);
    const off_t at = reinterpret_cast<const std::byte*>(&from) - reinterpret_cast<const std::byte*>(&before);
    is_written = is_written && pwrite(file.fd(), &to, sizeof(to), at) == static_cast<ssize_t>(sizeof(to));
  };
  const auto write_changed = [&](const auto& from, const auto& to) {
    if (from != to) write(from, to);
  };
  errno = 0;
  for (std::size_t i = 0; i < after.gpu_count; ++i) {
    write_changed(before.gpus[i].memory, after.gpus[i].memory);
    write_changed(before.gpus[i].context, after.gpus[i].context);
    write_changed(before.gpus[i].beside, after.gpus[i].beside);
    write_changed(before.gpus[i].milli, after.gpus[i].milli);
    write_changed(before.gpus[i].rate, after.gpus[i].rate);
  }
  write(before.beat, after.beat);
  return is_written ? kube::Status() : Failure("write", path, Reason(errno));
}

kube::Result<ShareLimits> ShareFolder::ReadLimits(const std::string& gpu) const {
  const std::string path = path_ + "/" + cuda::kLimitsFile;
  const auto limits = std::make_unique<cuda::Limits>();
  const OwnFd file(AT_FDCWD, path.c_str(), O_RDONLY);
  if (const std::string why = ReadBegin(file.fd(), limits.get(), sizeof(cuda::Limits), sizeof(cuda::Limits));
      !why.empty()) {
    return Failure("read", path, why);
  }
  const cuda::GpuLimits& one = limits->gpus[0];
  const auto uuid = ParseUuid(gpu);
  const bool is_ours = limits->magic == cuda::kLimitsMagic && limits->version == cuda::kVersion;
  const bool is_paged = one.paged == 2;
  if (!is_ours || limits->gpu_count != (is_paged ? 2 : 1) || !uuid || !std::ranges::equal(*uuid, one.uuid)) {
    return kube::Error(kube::ErrorCode::kDecode,
                       "read " + path + ": it is of another version of grus, or of another GPU");
  }
  return ShareLimits{.gpu = gpu,
                     .memory_bytes = one.memory,
                     .context_bytes = one.context,
                     .beside_bytes = one.beside,
                     .paged_bytes = is_paged ? limits->gpus[1].memory : 0,
                     .milli = one.milli,
                     .rate_milli = one.milli == 0 ? cuda::kWholeGpu : one.milli};
}

bool ShareFolder::HasLimits() const {
  const OwnFd file(AT_FDCWD, (path_ + "/" + cuda::kLimitsFile).c_str(), O_RDONLY);
  std::uint64_t magic = 0;
  return ReadBegin(file.fd(), &magic, sizeof(magic), sizeof(magic)).empty() && magic == cuda::kLimitsMagic;
}

bool ShareFolder::HasAccount() const {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path_ + "/" + cuda::kAccountFile, ignored));
}

void ShareFolder::RemoveAccount() const {
  std::error_code ignored;
  std::filesystem::remove(path_ + "/" + cuda::kAccountFile, ignored);
}

kube::Result<AccountCopy> ShareFolder::ReadAccount(std::size_t entries) const {
  entries = std::min(entries, cuda::kMostGpus);
  const kube::Result<std::unique_ptr<AccountBytes>> bytes = ReadBytes(path_, sizeof(cuda::Account));
  if (!bytes) return bytes.error();
  const cuda::Account& account = (*bytes)->account();
  AccountCopy copy;
  for (std::size_t i = 0; i < entries; ++i) copy.gpus.push_back(GpuOf(account, i));
  for (AccountCopy::Gpu& gpu : copy.gpus) gpu.memory_bytes = 0;
  std::set<std::pair<int, std::uint64_t>> seen;
  for (const cuda::ProcessAccount& place : account.processes) {
    if (place.pid <= 0 || place.pid > kMostPid || !seen.emplace(place.pid, place.started).second) continue;
    AccountCopy::Process& process = copy.processes.emplace_back();
    process.pid = place.pid;
    process.started = place.started;
    for (std::size_t i = 0; i < entries; ++i) {
      process.memory_bytes.push_back(Bytes(place.memory[i]));
      copy.gpus[i].memory_bytes += process.memory_bytes.back();
    }
  }
  for (AccountCopy::Gpu& gpu : copy.gpus) gpu.most_memory_bytes = std::max(gpu.most_memory_bytes, gpu.memory_bytes);
  return copy;
}

kube::Result<std::vector<AccountCopy::Gpu>> ShareFolder::ReadSums(std::size_t entries) const {
  entries = std::min(entries, cuda::kMostGpus);
  const auto bytes = ReadBytes(path_, offsetof(cuda::Account, time) + entries * sizeof(cuda::GpuTime));
  if (!bytes) return bytes.error();
  std::vector<AccountCopy::Gpu> gpus;
  for (std::size_t i = 0; i < entries; ++i) gpus.push_back(GpuOf((*bytes)->account(), i));
  return gpus;
}

}  // namespace grus
