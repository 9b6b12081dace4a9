// SPDX-License-Identifier: Apache-2.0
// Plain memory of one process, opened in another: its owner pays. It goes when the owner frees it or dies, as NVIDIA's
// does not promise; only what says so can be opened.
#include <cstring>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {

struct Ticket {
  std::uint64_t magic, id;
};
constexpr std::uint64_t kTicket = 0x636970656b616675;

std::unordered_set<CUdeviceptr>& opened() {
  static auto* const instance = new std::unordered_set<CUdeviceptr>;
  return *instance;
}

CUresult Open(const char* function, CUdeviceptr* pointer, const CUipcMemHandle& handle, unsigned flags) {
  return EnterInContext(function, [&](Driver& driver, Context&) -> CUresult {
    Ticket ticket = {};
    std::memcpy(&ticket, handle.bytes, sizeof(ticket));
    if (flags > 1 || ticket.magic != kTicket || ticket.id == 0) return kInvalidValue;
    const std::scoped_lock held(*driver.world());
    driver.world()->Sweep();
    for (const SharedMemory& shared : driver.state().shared) {
      if (shared.id != ticket.id) continue;
      if (shared.owner == driver.place()) return kInvalidContext;
      *pointer = driver.NewAddress(1);
      opened().insert(*pointer);
      return kSuccess;
    }
    return kInvalidHandle;
  });
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    const auto found = driver.blocks.find(pointer);
    if (found == driver.blocks.end() || found->second.is_array || found->second.is_managed ||
        found->second.release != nullptr) {
      return kInvalidValue;
    }
    Block& block = found->second;
    const std::scoped_lock held(*driver.world());
    for (SharedMemory& shared : driver.state().shared) {
      if (block.ipc_id != 0) break;
      if (shared.id != 0) continue;
      block.ipc_id = ~driver.state().next_id++;  // Far from inodes, which are the other numbers here.
      shared = {.id = block.ipc_id, .gpu = block.gpu, .owner = driver.place(), .is_held = 1};
    }
    if (block.ipc_id == 0) return kOutOfMemory;  // Too many for this fake.
    const Ticket ticket = {kTicket, block.ipc_id};
    *handle = {};
    std::memcpy(handle->bytes, &ticket, sizeof(ticket));
    return kSuccess;
  });
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  return Open(__func__, pointer, handle, flags);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  return Open(__func__, pointer, handle, flags);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return Enter(__func__, [&](Driver&) -> CUresult { return opened().erase(pointer) == 1 ? kSuccess : kInvalidValue; });
}

}  // extern "C"

}  // namespace grus::cuda::fake
