// SPDX-License-Identifier: Apache-2.0
// What the fake driver knows of its own process: contexts, and what was allocated in them.
//
// As NVIDIA's, it is dead in a child of fork() once its parent has called cuInit(): each call there is "not
// initialized". Its memory is charged to the world's file first, and given back there last.
#pragma once

#include <atomic>
#include <concepts>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/nodeagent/cuda/fake/driver_calls.h"
#include "tests/nodeagent/cuda/fake/world_file.h"

namespace grus::cuda::fake {

inline constexpr CUresult kNoDevice = 100, kContextIsDestroyed = 709, kPrimaryContextActive = 708;

// Handles of contexts are pointers to these. They are kept when they are destroyed, so that a stale handle is known.
struct Context {
  int gpu = 0;
  bool is_primary = false, is_alive = false;
  unsigned uses = 0;  // Of a primary one.
};

class Driver;

// What cuMemFree() and the like give back; arrays too, under the number of their handle.
struct Block {
  int gpu = 0;
  std::uint64_t charged = 0, bytes = 0;
  Context* owner = nullptr;                   // Whose end is its end.
  bool is_array = false, is_managed = false;  // Managed: it may lie in the host's memory.
  std::uint64_t ipc_id = 0;                   // In WorldState::shared, if it was handed to others.
  void* from = nullptr;                       // A pool, or a GPU's memory of graphs, which `release` gives it back to.
  void (*release)(Driver& driver, const Block& block) = nullptr;
};

class Driver {
 public:
  static Driver& Get();

  // What a call finds before it does anything: a fault that was asked for, or a driver that is not initialised.
  CUresult Begin(const char* function, bool needs_init);
  void End(const char* function);  // Without the lock.
  CUresult Init();
  // If cuGetProcAddress() is to say that there is no such name.
  bool Lacks(const std::string& function);

  WorldFile* world() { return world_.get(); }
  WorldState& state() { return world_->state(); }
  std::int32_t place() const { return place_; }
  bool HasGpu(int gpu) const { return gpu >= 0 && gpu < static_cast<int>(world_->state().gpu_count); }

  bool Charge(int gpu, std::uint64_t bytes);
  void GiveBack(int gpu, std::uint64_t bytes);

  std::mutex mutex;  // Guards all that follows.
  std::unordered_set<Context*> contexts;
  std::vector<Context*> primary;
  std::unordered_map<CUdeviceptr, Block> blocks;

  // The thread's, or why it has none.
  CUresult Current(Context** context);
  CUresult Check(CUcontext handle, Context** context);
  CUresult NewContext(int gpu, Context* context);  // Charged; not yet known by `contexts`.
  void EndContext(Context* context);
  CUresult Allocate(Context* context, std::uint64_t bytes, CUdeviceptr* pointer);
  CUresult AllocateManaged(Context* context, std::uint64_t bytes, CUdeviceptr* pointer);
  CUresult FreeBlock(CUdeviceptr pointer, bool is_array = false);
  // Addresses are never used again, so that one that was freed is known to be wrong; but see WorldSetup.
  CUdeviceptr NewAddress(std::uint64_t bytes);
  CUdeviceptr_v1 NewSmallAddress();  // For functions that know 32 bits only.

 private:
  Driver();
  bool IsForked() const;
  void Release(const Block& block);

  std::unique_ptr<WorldFile> world_;
  std::int32_t place_ = kNobody;
  std::atomic<bool> is_initialised_ = false;
  char* wiped_by_fork_ = nullptr;
  static constexpr CUdeviceptr kFirstAddress = CUdeviceptr{1} << 48;
  CUdeviceptr next_address_ = kFirstAddress;
  CUdeviceptr_v1 next_small_address_ = 1 << 20;
};

// The contexts that a thread has made current, the last one on top. May have null ones.
std::vector<Context*>& ContextStack();

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t to);

// A call that needs cuInit(): `body` runs with the driver's lock held and gives its result.
template <std::invocable<Driver&> Body>
CUresult Enter(const char* function, Body&& body) {
  Driver& driver = Driver::Get();
  if (const CUresult refused = driver.Begin(function, true); refused != kSuccess) return refused;
  CUresult result = kSuccess;
  {
    const std::scoped_lock held(driver.mutex);
    result = body(driver);
  }
  driver.End(function);
  return result;
}

// The same, for calls that also need a current context, which `body` gets.
template <std::invocable<Driver&, Context&> Body>
CUresult EnterInContext(const char* function, Body&& body) {
  return Enter(function, [&](Driver& driver) {
    Context* context = nullptr;
    const CUresult found = driver.Current(&context);
    return found == kSuccess ? body(driver, *context) : found;
  });
}

}  // namespace grus::cuda::fake
