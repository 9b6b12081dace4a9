// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "controllers/throughput/chart.h"

namespace grus {

double HighestShown(const std::vector<CurvePoint>& curve) {
  double highest = 0;
  for (const CurvePoint& point : curve) {
    const bool is_known = point.source != PredictionSource::kUnknown;
    highest = std::max(highest, is_known ? point.high : std::min(point.high, 1.5 * point.throughput));
  }
  return std::isfinite(highest) && highest > 0 ? highest : 1;
}

std::vector<double> AxisMarks(double largest, int most) {
  if (!(largest > 0) || !std::isfinite(largest)) return {0};
  const double power = std::pow(10, std::floor(std::log10(largest / most)));
  double step = power;
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    step = times * power;
    if (largest / step <= most) break;
  }
  std::vector<double> marks;
  for (int i = 0; i <= most && i * step <= largest * (1 + 1e-9); ++i) marks.push_back(i * step);
  return marks;
}

std::string ShortNumber(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%s", value, kUnits[unit]);
  return text;
}

}  // namespace grus
