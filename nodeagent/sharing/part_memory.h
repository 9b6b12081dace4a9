// SPDX-License-Identifier: Apache-2.0
// How much memory a pod says that its thousandths of a GPU shall bring, where that is not in proportion. Pure.
#pragma once

#include <cstdint>
#include <limits>

#include "clientlib/model/meta.h"

namespace grus {

// Set by users when they create the pod: MiB of each of its containers that asks for thousandths.
inline constexpr char kMemoryMiBAnnotation[] = "sharing.ai.centauruscloud.io/memory-mib";

inline constexpr std::int64_t kSenselessMemory = std::numeric_limits<std::int64_t>::max();

// 0: the pod says nothing, so it is in proportion. kSenselessMemory: not a whole number from 1 to 99999999.
std::int64_t MemoryMiBSaidBy(const kube::ObjectMeta& pod);

}  // namespace grus
