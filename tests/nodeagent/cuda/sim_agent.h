// SPDX-License-Identifier: Apache-2.0
// The agent of a node in virtual time: the real one's lending (nodeagent/limits/lending.h), on what the containers of a
// GPU say of themselves.
#pragma once

#include "tests/nodeagent/cuda/gpu_time_sim.h"

namespace grus::cuda {

SimNode::Agent LendingAgent();

}  // namespace grus::cuda
