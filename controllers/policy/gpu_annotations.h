// SPDX-License-Identifier: Apache-2.0
// What annotations say of GPUs: of a node, which it has; of a pod, which it got. Pure.
#pragma once

#include <string>

#include "clientlib/model/core_v1.h"
#include "controllers/policy/resources.h"

namespace grus {

// Adds to what the node's kubelet offers what each GPU of the inventory does. A text that makes no sense adds nothing:
// pods then find their GPU without a plan.
void AddGpus(const kube::Node& node, Resources& allocatable);

// The GPUs of a bound pod, as for OnGpu(): by the agent, else by the plan; empty: not known.
std::string GpusOf(const kube::Pod& pod);

}  // namespace grus
