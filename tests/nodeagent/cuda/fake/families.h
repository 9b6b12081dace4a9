// SPDX-License-Identifier: Apache-2.0
// What the families of the fake driver's calls do for each other. All with the driver's lock held.
//
// Streams carry times only: when all that was put into them is done. Order between streams needs no more, as a GPU does
// one thing at a time (see WorldFile::Queue).
#pragma once

#include <deque>

#include "tests/nodeagent/cuda/fake/driver.h"

namespace grus::cuda::fake {

inline constexpr CUresult kCaptureUnsupported = 900, kCaptureUnmatched = 903, kCapturedEvent = 907;

struct Graph;

int& CaptureModeOfThread();
// What calls find first that could wait for a stream: those that the thread may not make while streams are captured are
// refused, and those captures are invalid from then on.
CUresult CheckCaptures();

inline constexpr std::size_t kMostQueued = 1024;  // Launches in a stream; one more waits.

struct Stream {
  Context* context = nullptr;
  bool is_legacy = false, waits_for_legacy = true;
  std::uint64_t end = 0;                  // When all of it is done.
  std::deque<std::uint64_t> queued = {};  // The ends of launches.
  Graph* capture = nullptr;               // What is launched is added to it and does not run.
};

// The stream that a handle means, 0 and the two special ones included. `has_own`: 0 is the thread's own.
CUresult FindStream(Driver& driver, CUstream handle, bool has_own, Stream** stream);
// When all is done that a wait for the stream waits for: for the legacy one, what is in the others too.
std::uint64_t EndOf(const Stream& stream);
void EndStreams(Context* context);
void EndEvents(Context* context);
void ForgetCapture(const Graph* graph);  // In all streams.

// Pools give back what they do not use, beyond their threshold; at each wait for a stream, event or context. If the
// context of a GPU has ended, without regard to it.
void ShrinkPools(Driver& driver, int gpu, bool context_has_ended);
void TrimGraphMemory(Driver& driver, int gpu);
// Memory of others that is no more in use: see vmm_calls.cc.
void DropUnusedExports(Driver& driver);

// How long a kernel runs, in nanoseconds. False: there is no such function.
bool FindKernel(CUfunction function, std::uint64_t* nanoseconds);

// Captured.
void AddKernel(Graph* graph, CUfunction function, std::uint64_t nanoseconds);
CUresult AddAllocation(Driver& driver, Graph* graph, int gpu, std::uint64_t bytes, CUdeviceptr* pointer);
CUresult AddFree(Graph* graph, CUdeviceptr pointer);

// Puts work into the stream behind what is there. *until is set if there is no room before that time. The function,
// null for a graph, is what a capture remembers.
CUresult Submit(Driver& driver, Stream* stream, CUfunction function, std::uint64_t nanoseconds, std::uint64_t* until);

// A call that may wait: `body` gives the time until which, and is then called again.
template <std::invocable<Driver&, std::uint64_t*> Body>
CUresult EnterAndWait(const char* function, Body&& body) {
  Driver& driver = Driver::Get();
  if (const CUresult refused = driver.Begin(function, true); refused != kSuccess) return refused;
  for (;;) {
    std::uint64_t until = 0;
    CUresult result = kSuccess;
    {
      const std::scoped_lock held(driver.mutex);
      result = body(driver, &until);
    }
    if (until == 0) {
      driver.End(function);
      return result;
    }
    driver.world()->WaitUntil(until);
  }
}

}  // namespace grus::cuda::fake
