// SPDX-License-Identifier: Apache-2.0
// What the scheduler extender of gpushare writes on a pod before it binds it: which GPU it has assumed for it. Pure.
//
// Anybody may write it, so it is a wish: a GPU without the room is not taken for it.
#pragma once

#include <cstdint>
#include <optional>

#include "clientlib/model/meta.h"

namespace grus {

struct GpushareAssumption {
  int gpu = 0;          // As the extender counts: from 0, of those that the node offers.
  std::int64_t at = 0;  // Nanoseconds since 1970; 0: not known.
  friend bool operator==(const GpushareAssumption&, const GpushareAssumption&) = default;
};

// nullopt: none, or one that makes no sense.
std::optional<GpushareAssumption> AssumptionOf(const kube::ObjectMeta& pod);

}  // namespace grus
