// SPDX-License-Identifier: Apache-2.0
// What this process may take of the GPUs, as the hooks ask for it. Thread-safe.
//
// The folder of the container (share_files.h) is opened when the driver is first used. Without it nothing is limited
// and every call is passed on; if it is there and damaged, nothing more is allocated.
#pragma once

#include <cstdint>

#include "nodeagent/cuda/account.h"
#include "nodeagent/cuda/driver_abi.h"
#include "nodeagent/cuda/live_allocations.h"

namespace grus::cuda {

inline constexpr int kNoGpu = -1;  // None of which the container has a part: its memory is not counted.

bool IsLimited();
SharedAccount* TheAccount();  // Null: it is not limited, or damaged.
int GpuOf(CUdevice device);
int CurrentGpu();  // Of the thread's current context; kNoGpu too where there is none: the driver says so itself.
// Where memory past the limit of `gpu` counts, which may lie in the host's; kNoGpu: it may have none, or the device
// cannot move it while kernels run. What is known of no device of this process yet is taken for one that can.
int PagedOf(int gpu);

// False: there is no room, and none could be made. With kNoGpu these do nothing, and there is room.
bool Reserve(int gpu, std::uint64_t bytes);
// In `gpu` or, where it has no room, in PagedOf(gpu): `from` says in which.
bool ReserveOrPage(int gpu, std::uint64_t bytes, int& from);
void GiveBack(int gpu, std::uint64_t bytes);
void Settle(int gpu, std::uint64_t reserved, std::uint64_t taken);  // It was less, or more, than what was reserved.

// The driver hands out memory in pieces of this size at least.
inline constexpr std::uint64_t kPiece = 512;
constexpr std::uint64_t InPieces(std::uint64_t bytes) {
  return bytes > ~std::uint64_t{0} - kPiece ? bytes : (bytes + kPiece - 1) / kPiece * kPiece;
}

enum class LiveKind : std::uint32_t { kPlain, kArray, kContext, kPooled, kGraph, kCreated, kMapped, kSameAs };

// What was allocated and not yet freed, by its pointer or handle. `context`: with which it ends; null: with none. What
// cannot be remembered counts for as long as the process lives.
void Remember(std::uint64_t key, std::uint64_t bytes, int gpu, LiveKind kind, const void* context);
bool Recall(std::uint64_t key, LiveAllocation* found);    // It stays.
bool TakeBack(std::uint64_t key, LiveAllocation* taken);  // One caller alone gets it.
void RememberAgain(const LiveAllocation& taken);
void GiveBackFreed(const LiveAllocation& taken);  // The program has freed it.
void GiveBackAllOf(const void* context);
void ForgetAllOf(const void* context);  // Without giving back.
// Before a context ends: in the place of the context they have what is returned. Either it has ended, and
// GiveBackAllOf(that), or it has not, and they are returned to it.
const void* SetApartAllOf(const void* context);
void ReturnAllOf(const void* apart, const void* context);
inline std::uint64_t KeyOf(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

// Reserves, calls, and gives back again if the call fails.
template <typename F>
CUresult Counted(int gpu, std::uint64_t bytes, F&& call) {
  if (!Reserve(gpu, bytes)) return kOutOfMemory;
  const CUresult result = call();
  if (result != kSuccess) GiveBack(gpu, bytes);
  return result;
}

}  // namespace grus::cuda
