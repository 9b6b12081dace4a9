// SPDX-License-Identifier: Apache-2.0
// The time at which tests of reconcilers and plans begin.
#pragma once

#include <chrono>
#include <cstdint>

#include "clientlib/base/clock.h"
#include "clientlib/model/time.h"

namespace grus::testing {

// That many seconds after it.
inline kube::Time At(std::int64_t seconds) {
  return kube::Time{kube::WallTime(std::chrono::seconds(1'800'000'000 + seconds))};
}

}  // namespace grus::testing
