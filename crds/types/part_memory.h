// SPDX-License-Identifier: Apache-2.0
// What a pod says of the memory of its parts of GPUs. Pure.
#pragma once

#include <cstdint>
#include <limits>

#include "clientlib/model/meta.h"

namespace api {

inline constexpr std::int64_t kSenselessMemory = std::numeric_limits<std::int64_t>::max();

// By kMemoryMiBAnnotation (sharing_names.h), of its thousandths. 0: the pod says nothing, so it is in proportion.
// kSenselessMemory: not a whole number from 1 to 99999999.
std::int64_t MemoryMiBSaidBy(const kube::ObjectMeta& pod);
// By kPagedMiBAnnotation. 0: the pod says nothing, so there is none. kSenselessMemory: as above.
std::int64_t PagedMiBSaidBy(const kube::ObjectMeta& pod);

}  // namespace api
