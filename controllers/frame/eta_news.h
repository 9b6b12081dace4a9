// SPDX-License-Identifier: Apache-2.0
// When the end that a status foretells is worth another write. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "clientlib/model/time.h"

namespace grus {

// Whether a reader would notice the difference: there is an end or there is none, or it moves by 2 % of the time until
// then, and half a minute at least. `now`: when the later one was found.
inline bool IsEtaNews(const std::optional<kube::Time>& before, const std::optional<kube::Time>& after, kube::Time now) {
  using Seconds = std::chrono::duration<double>;
  constexpr double kLeastShift = 0.02;
  constexpr Seconds kLeastShiftTime{30};
  if (!before || !after) return before.has_value() != after.has_value();
  const Seconds shift = std::chrono::abs(after->value - before->value), left = after->value - now.value;
  return shift >= std::max(kLeastShiftTime, left * kLeastShift);
}

}  // namespace grus
