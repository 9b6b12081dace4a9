// SPDX-License-Identifier: Apache-2.0
// Launches that are measured: an event before and one after each, in its stream, and what became of them. Nothing waits
// for the program's streams. Thread-safe.
//
// Events belong to a context: each context in which launches are measured has some of its own, sixteen contexts at
// most; in others nothing is measured, and what launches are thought to cost stands.
#pragma once

#include <cstdint>

#include "nodeagent/cuda/driver_abi.h"
#include "nodeagent/cuda/gpu_time.h"

namespace grus::cuda {

// The events of one launch.
struct MarkEvents {
  CUcontext context = nullptr;
  std::uint64_t number = 0;  // The context's, for this file alone.
  CUevent before = nullptr, after = nullptr;
};

// Records the first event, in a stream of the current context. False: this launch is not measured.
bool BeginMark(CUstream stream, std::uint64_t now, MarkEvents& events);
// Records the second. `is_launched`: else the events are put back, and `mark` means nothing.
void EndMark(CUstream stream, const MarkEvents& events, GpuTimeLaw& law, const Mark& mark, bool is_launched);
// Tells the laws of what is complete.
void LookAtMarks(std::uint64_t now);
// Before a context may end, and its events with it: then it has none. If it does not end, it gets others.
void LetGoOfMarks(CUcontext context);
void ForgetMarksOf(CUcontext context);  // It has ended without that.

}  // namespace grus::cuda
