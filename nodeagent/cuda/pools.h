// SPDX-License-Identifier: Apache-2.0
// Memory that the driver keeps for a process beyond what its programs have now: of pools and of graphs. What counts is
// what the driver has reserved for them. Thread-safe.
#pragma once

#include "nodeagent/cuda/driver_abi.h"
#include "nodeagent/cuda/live_allocations.h"

namespace grus::cuda {

// Makes the driver give back what no program uses; true: there was something. `gpu`: of limits.
bool ReleaseUnused(int gpu);
// The GPU's primary context has ended, and with it what was allocated from pools.
void ForgetPooledOf(int gpu);
// Counts what is reserved now.
void SettlePools();
// An allocation from a pool was freed.
void FreedFromPool(const LiveAllocation& freed);

// Of graphs.cc, for these.
bool ReleaseGraphMemory(int gpu);

}  // namespace grus::cuda
