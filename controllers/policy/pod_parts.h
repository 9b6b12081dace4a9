// SPDX-License-Identifier: Apache-2.0
// What a pod says of its thousandths of GPUs beside their sum (gpu_parts.h). Pure.
#pragma once

#include "clientlib/model/core_v1.h"
#include "controllers/policy/resources.h"

namespace grus {

// MiB of each container with thousandths, by the annotation; 0: it says nothing. One that makes no sense is more than
// any GPU has.
std::int64_t SaidMemoryOf(const kube::ObjectMeta& pod);

// Adds to the request the memory that the pod says for its parts (kSaidMemory), and kMixedParts.
void AddSaidOfParts(const kube::Pod& pod, Resources& request);

}  // namespace grus
