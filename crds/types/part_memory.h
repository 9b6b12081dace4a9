// SPDX-License-Identifier: Apache-2.0
// How much memory a pod says that its thousandths of a GPU shall bring, where that is not in proportion. Pure.
#pragma once

#include <cstdint>
#include <limits>

#include "clientlib/model/meta.h"

namespace api {

inline constexpr std::int64_t kSenselessMemory = std::numeric_limits<std::int64_t>::max();

// By kMemoryMiBAnnotation (sharing_names.h). 0: the pod says nothing, so it is in proportion. kSenselessMemory: not a
// whole number from 1 to 99999999.
std::int64_t MemoryMiBSaidBy(const kube::ObjectMeta& pod);

}  // namespace api
