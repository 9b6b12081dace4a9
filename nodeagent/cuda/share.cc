// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/share.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/old_glibc.h"
#include "nodeagent/cuda/pools.h"

namespace grus::cuda {
namespace {

pthread_once_t once = PTHREAD_ONCE_INIT;
SharedAccount* account = nullptr;
LiveAllocations* live = nullptr;
bool is_limited = false;

constexpr int kMostDevices = 64;
std::atomic<int> gpus[kMostDevices];  // Index + 2; 0: not known yet.

// In tests alone it is another one: a program that could name it would have no limit.
const char* Folder() {
#ifdef GRUS_FOLDER_VARIABLE
  const char* const folder = std::getenv(GRUS_FOLDER_VARIABLE);
  if (folder != nullptr) return folder;
#endif
  return kFolderInContainer;
}

void Open() {
  const char* why = nullptr;
  account = SharedAccount::Open(Folder(), &why);
  is_limited = account != nullptr || why != nullptr;
  if (!is_limited) return;
  live = LiveAllocations::Make();
  if (live == nullptr) {  // Nothing could be given back.
    account = nullptr;
    why = "there is no memory";
  }
  if (account == nullptr) TellRefused(why);
}

// What pools and graphs of this process no longer use, they give back before a program is refused.
bool ReserveIn(int gpu, std::uint64_t bytes, bool is_last) {
  return account->Reserve(gpu, bytes, is_last) || (ReleaseUnused(gpu) && account->Reserve(gpu, bytes, is_last));
}

}  // namespace

bool IsLimited() {
  pthread_once(&once, Open);
  return is_limited;
}

SharedAccount* TheAccount() {
  pthread_once(&once, Open);
  return account;
}

int GpuOf(CUdevice device) {
  if (!IsLimited() || device < 0 || device >= kMostDevices) return kNoGpu;
  const int known = gpus[device].load(std::memory_order_relaxed);
  if (known != 0) return known - 2;
  CUuuid uuid;
  if (account == nullptr || driver::DeviceGetUuid(&uuid, device) != kSuccess) return kNoGpu;
  const int gpu = account->IndexOf(uuid.bytes);
  gpus[device].store(gpu + 2, std::memory_order_relaxed);
  return gpu;
}

int CurrentGpu() {
  CUdevice device = 0;
  if (!IsLimited() || driver::CtxGetDevice(&device) != kSuccess) return kNoGpu;
  return GpuOf(device);
}

int PagedOf(int gpu) {
  const int paged = gpu == kNoGpu ? kNoGpu : account->PagedOf(gpu);
  if (paged == kNoGpu) return kNoGpu;
  for (CUdevice device = 0; device < kMostDevices; ++device) {
    if (gpus[device].load(std::memory_order_relaxed) != gpu + 2) continue;
    int can_move = 0;
    driver::DeviceGetAttribute(&can_move, kConcurrentManagedAccess, device);
    return can_move != 0 ? paged : kNoGpu;
  }
  return paged;
}

bool Reserve(int gpu, std::uint64_t bytes) {
  if (gpu == kNoGpu) return !IsLimited() || account != nullptr;
  return ReserveIn(gpu, bytes, true);
}

bool ReserveOrPage(int gpu, std::uint64_t bytes, int& from) {
  from = gpu;
  const int paged = PagedOf(gpu);
  if (paged == kNoGpu) return Reserve(gpu, bytes);
  if (ReserveIn(gpu, bytes, false)) return true;
  from = paged;
  return account->Reserve(paged, bytes);
}

void GiveBack(int gpu, std::uint64_t bytes) {
  if (gpu != kNoGpu) account->GiveBack(gpu, bytes);
}

void Settle(int gpu, std::uint64_t reserved, std::uint64_t taken) {
  if (gpu != kNoGpu) account->Settle(gpu, reserved, taken);
}

void Remember(std::uint64_t key, std::uint64_t bytes, int gpu, LiveKind kind, const void* context) {
  RememberAgain(
      {.key = key, .bytes = bytes, .context = KeyOf(context), .gpu = gpu, .kind = static_cast<std::uint32_t>(kind)});
}

void RememberAgain(const LiveAllocation& taken) {
  LiveAllocation replaced;
  if (live == nullptr) return;
  // It was freed in a way that nobody saw.
  if (live->Insert(taken, &replaced) && replaced.key != 0) GiveBackFreed(replaced);
}

void GiveBackFreed(const LiveAllocation& taken) {
  // What is of a pool is charged by what the pool has reserved.
  if (taken.kind == static_cast<std::uint32_t>(LiveKind::kPooled)) FreedFromPool(taken);
  else GiveBack(taken.gpu, taken.bytes);
}

bool Recall(std::uint64_t key, LiveAllocation* found) { return TheAccount() != nullptr && live->Find(key, found); }
bool TakeBack(std::uint64_t key, LiveAllocation* taken) { return TheAccount() != nullptr && live->Take(key, taken); }

void ForgetAllOf(const void* context) {
  const auto ignore = [](const LiveAllocation&, void*) {};
  if (TheAccount() != nullptr) live->EraseAllOf(KeyOf(context), ignore, nullptr);
}

const void* SetApartAllOf(const void* context) {
  static std::atomic<std::uint64_t> last;
  const std::uint64_t apart = std::uint64_t{1} << 63 | ++last;  // No handle, and no number of uses, is so large.
  if (TheAccount() != nullptr) live->Reassign(KeyOf(context), apart);
  return reinterpret_cast<const void*>(apart);
}

void ReturnAllOf(const void* apart, const void* context) {
  if (TheAccount() != nullptr) live->Reassign(KeyOf(apart), KeyOf(context));
}

void GiveBackAllOf(const void* context) {
  const auto give_back = [](const LiveAllocation& gone, void*) { GiveBack(gone.gpu, gone.bytes); };
  if (TheAccount() == nullptr) return;
  live->EraseAllOf(KeyOf(context), give_back, nullptr);
}

}  // namespace grus::cuda
