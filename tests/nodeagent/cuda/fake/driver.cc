// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/fake/driver.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/nodeagent/cuda/fake/fake_world.h"
#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {
constexpr std::uint64_t kMostManaged = std::uint64_t{1} << 46;  // Of one allocation.
}  // namespace

Driver& Driver::Get() {
  static Driver* const driver = new Driver();  // Programs call the driver from destructors.
  return *driver;
}

Driver::Driver() {
  const char* const path = std::getenv(kVariable);
  if (path != nullptr) world_ = WorldFile::Open(path);
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(page, 4096, MADV_WIPEONFORK);
  wiped_by_fork_ = static_cast<char*>(page);
}

// Also for children that were not made by fork() of the C library.
bool Driver::IsForked() const { return is_initialised_ && *wiped_by_fork_ == 0; }

namespace {

void Hold(FakeFault& fault) {
  if (++fault.calls != 1) return;
  fault.is_held = 1;
  for (int i = 0; i < 10'000 && fault.is_let_go == 0; ++i) usleep(1000);
  fault.is_held = 0;
}

}  // namespace

void Driver::End(const char* function) {
  WorldState& state = world_->state();
  for (std::uint32_t i = 0, count = state.fault_count; i < count; ++i) {
    FakeFault& fault = state.faults[i];
    if (fault.is_hold_after != 0 && std::strcmp(fault.name, function) == 0) Hold(fault);
  }
}

CUresult Driver::Begin(const char* function, bool needs_init) {
  if (world_ == nullptr) return kNoDevice;
  WorldState& state = world_->state();
  for (std::uint32_t i = 0, count = state.fault_count; i < count; ++i) {
    FakeFault& fault = state.faults[i];
    if (std::strcmp(fault.name, function) != 0) continue;
    if (fault.is_missing) return kNotSupported;
    if (fault.is_hold_before != 0) Hold(fault);
    if (fault.is_hold_before != 0 || fault.is_hold_after != 0) continue;
    if (const std::uint32_t call = ++fault.calls; fault.nth == 0 || fault.nth == call) return fault.code;
  }
  return needs_init && (!is_initialised_ || IsForked()) ? kNotInitialized : kSuccess;
}

bool Driver::Lacks(const std::string& function) {
  const WorldState& state = world_->state();
  for (std::uint32_t i = 0, count = state.fault_count; i < count; ++i) {
    if (state.faults[i].is_missing && function == state.faults[i].name) return true;
  }
  return false;
}

CUresult Driver::Init() {
  if (IsForked()) return kNotInitialized;
  if (world_->state().gpu_count == 0) return kNoDevice;
  const std::scoped_lock held(mutex);
  if (is_initialised_) return kSuccess;
  const std::scoped_lock world_held(*world_);
  place_ = world_->TakePlace();
  if (place_ == kNobody) return kOutOfMemory;
  for (std::uint32_t gpu = 0; gpu < state().gpu_count; ++gpu) {
    primary.push_back(new Context{.gpu = static_cast<int>(gpu), .is_primary = true});
  }
  *wiped_by_fork_ = 1;
  is_initialised_ = true;
  return kSuccess;
}

bool Driver::Charge(int gpu, std::uint64_t bytes) {
  DropUnusedExports(*this);
  const std::scoped_lock held(*world_);
  return world_->Charge(place_, gpu, bytes);
}

void Driver::GiveBack(int gpu, std::uint64_t bytes) {
  const std::scoped_lock held(*world_);
  world_->GiveBack(place_, gpu, bytes);
}

std::vector<Context*>& ContextStack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

CUresult Driver::Current(Context** context) {
  const std::vector<Context*>& stack = ContextStack();
  *context = stack.empty() ? nullptr : stack.back();
  if (*context == nullptr) return kInvalidContext;
  return (*context)->is_alive ? kSuccess : kContextIsDestroyed;
}

CUresult Driver::Check(CUcontext handle, Context** context) {
  *context = reinterpret_cast<Context*>(handle);
  if (!contexts.contains(*context)) return kInvalidContext;
  return (*context)->is_alive ? kSuccess : kContextIsDestroyed;
}

CUresult Driver::NewContext(int gpu, Context* context) {
  if (!Charge(gpu, state().context_bytes)) return kOutOfMemory;
  context->gpu = gpu;
  context->is_alive = true;
  contexts.insert(context);
  return kSuccess;
}

void Driver::EndContext(Context* context) {
  std::erase_if(blocks, [&](const auto& entry) {
    if (entry.second.owner != context) return false;
    Release(entry.second);
    return true;
  });
  EndStreams(context);
  EndEvents(context);
  ShrinkPools(*this, context->gpu, true);
  TrimGraphMemory(*this, context->gpu);
  context->is_alive = false;
  GiveBack(context->gpu, state().context_bytes);
}

void Driver::Release(const Block& block) {
  if (block.release != nullptr) block.release(*this, block);
  const std::scoped_lock held(*world_);
  if (block.is_managed) world_->TakeManaged(place_, block.gpu, block.charged);
  else world_->GiveBack(place_, block.gpu, block.charged);
  for (SharedMemory& shared : state().shared) {
    if (block.ipc_id != 0 && shared.id == block.ipc_id) shared = {};
  }
}

CUresult Driver::FreeBlock(CUdeviceptr pointer, bool is_array) {
  const auto found = blocks.find(pointer);
  if (found == blocks.end() || found->second.is_array != is_array) return is_array ? kInvalidHandle : kInvalidValue;
  const Block block = found->second;
  blocks.erase(found);
  Release(block);
  return kSuccess;
}

CUresult Driver::Allocate(Context* context, std::uint64_t bytes, CUdeviceptr* pointer) {
  if (bytes == 0) return kInvalidValue;
  if (bytes > state().gpus[context->gpu].total) return kOutOfMemory;
  const std::uint64_t charged = RoundUp(bytes, state().rounding);
  if (!Charge(context->gpu, charged)) return kOutOfMemory;
  if (*pointer == 0) *pointer = NewAddress(bytes);
  blocks[*pointer] = {.gpu = context->gpu, .charged = charged, .bytes = bytes, .owner = context};
  return kSuccess;
}

CUresult Driver::AllocateManaged(Context* context, std::uint64_t bytes, CUdeviceptr* pointer) {
  if (state().can_move_managed == 0) return Allocate(context, bytes, pointer);
  if (bytes == 0) return kInvalidValue;
  if (bytes > kMostManaged) return kOutOfMemory;
  const std::uint64_t charged = RoundUp(bytes, state().rounding);
  const std::scoped_lock held(*world_);
  world_->AddManaged(place_, context->gpu, charged);
  *pointer = NewAddress(bytes);
  blocks[*pointer] = {.gpu = context->gpu, .charged = charged, .bytes = bytes, .owner = context, .is_managed = true};
  return kSuccess;
}

CUdeviceptr Driver::NewAddress(std::uint64_t bytes) {
  if (state().reuses_addresses != 0 && blocks.empty()) next_address_ = kFirstAddress;
  const CUdeviceptr address = next_address_;
  next_address_ += RoundUp(bytes, 2 * kMiB);
  return address;
}

CUdeviceptr_v1 Driver::NewSmallAddress() { return next_small_address_ += 256; }

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace grus::cuda::fake
