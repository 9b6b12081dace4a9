// SPDX-License-Identifier: Apache-2.0
// Draws a throughput curve with its band: as text for a terminal, and as SVG.
//
// Throughput over GPUs. Markers tell measured, interpolated and extrapolated sizes apart; a size without an answer has
// a question mark and its band, but no line. A dotted straight line shows perfect scaling, and the knee is marked.
//
// Pure functions, deterministic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controllers/throughput/curve.h"

namespace grus {

struct ChartOptions {
  std::string title;
  std::string unit = "samples/s";  // Of the throughput.
  std::optional<int> knee = {};    // Replicas; shown if the curve reaches so far.
  int width = 72, height = 20;     // Of the whole text, in characters. Raised to 68 x 10 if less.
};

// Lines of at most options.width characters in UTF-8 (braille patterns for lines), each ended by a newline; the title
// is not cut. Empty if the curve is.
std::string ChartAsText(const std::vector<CurvePoint>& curve, const ChartOptions& options);

constexpr int kSvgWidth = 720, kSvgHeight = 440;

// One <svg> element of that size, whatever options.width says, that a browser shows as it is. Empty if the curve is.
std::string ChartAsSvg(const std::vector<CurvePoint>& curve, const ChartOptions& options);

// The highest throughput that is drawn. Bands of sizes without an answer are cut off, or nothing else could be seen.
double HighestShown(const std::vector<CurvePoint>& curve);

// Round values from 0 to `largest` or just below, at most `most` + 1 of them, for the marks of an axis.
std::vector<double> AxisMarks(double largest, int most);

// "1.5k" for 1500: at most four characters and a unit.
std::string ShortNumber(double value);

}  // namespace grus
