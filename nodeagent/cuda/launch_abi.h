// SPDX-License-Identifier: Apache-2.0
// Like driver_abi.h: what launches of the CUDA driver take.
#pragma once

#include "nodeagent/cuda/driver_abi.h"

namespace grus::cuda {

struct CUlaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream stream;
  void* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, stream) == 32);
struct CUDA_LAUNCH_PARAMS {
  CUfunction function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream stream;
  void** parameters;
};

}  // namespace grus::cuda
