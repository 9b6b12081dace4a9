// SPDX-License-Identifier: Apache-2.0
// Declares every function that the fake libcuda.so.1 exports, and the types that only it and its client need.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nodeagent/cuda/launch_abi.h"

namespace grus::cuda::fake {

using CUmodule = struct CUmod_st*;
struct CUipcMemHandle {
  char bytes[64];
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};
struct KernelNodeParams {  // The first version's; the second has two more fields.
  CUfunction function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** parameters;
  void** extra;
};
static_assert(sizeof(KernelNodeParams) == 56 && offsetof(KernelNodeParams, shared_bytes) == 32);
struct KernelNodeParamsV2 : KernelNodeParams {
  void* kernel;
  CUcontext context;
};
static_assert(sizeof(KernelNodeParamsV2) == 72);

extern "C" {
#define GRUS_FAKE_CALL(symbol, asked, since, stream, ...) CUresult symbol(__VA_ARGS__);
#include "tests/nodeagent/cuda/fake/driver_calls.inc"
#undef GRUS_FAKE_CALL
}

}  // namespace grus::cuda::fake
