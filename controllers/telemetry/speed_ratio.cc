// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/speed_ratio.h"

#include <algorithm>
#include <cmath>

namespace grus {

SpeedRatio RatioBetween(const SpeedPoint& from, const SpeedPoint& to) {
  const double usual = to.speed / from.speed;
  const double slower = std::hypot(std::log(to.speed / to.low), std::log(from.high / from.speed));
  const double faster = std::hypot(std::log(to.high / to.speed), std::log(from.speed / from.low));
  return {usual, usual * std::exp(-slower), usual * std::exp(faster)};
}

SpeedRatio RatioBetween(int from_workers, int to_workers) {
  const double ratio = static_cast<double>(to_workers) / from_workers;
  return {std::sqrt(ratio), std::min(ratio, 1.0), std::max(ratio, 1.0)};
}

}  // namespace grus
