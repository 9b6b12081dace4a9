// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nodeagent/cuda/driver_abi.h"

namespace grus::cuda {

// Launches a graph, or uploads it, and counts the memory that it allocates. Thread-safe.
CUresult CountedLaunch(CUgraphExec graph, CUresult (*real)(CUgraphExec, CUstream), CUstream stream);

}  // namespace grus::cuda
