// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "controllers/throughput/chart.h"

namespace grus {
namespace {

constexpr double kWidth = kSvgWidth, kHeight = kSvgHeight;
constexpr double kLeft = 72, kRight = 24, kTop = 48, kBottom = 88;
constexpr const char* kBlue = "#1f5fa8";
constexpr const char* kGrey = "#6b7280";
constexpr const char* kRed = "#b91c1c";

[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

struct Scale {
  double most_gpus = 1, most_throughput = 1;

  double X(double gpus) const { return kLeft + gpus / most_gpus * (kWidth - kLeft - kRight); }
  double Y(double throughput) const {
    return kHeight - kBottom - std::min(throughput / most_throughput, 1.0) * (kHeight - kTop - kBottom);
  }
  std::string At(double gpus, double throughput) const { return Format("%.1f,%.1f", X(gpus), Y(throughput)); }
};

bool IsKnown(const CurvePoint& point) { return point.source != PredictionSource::kUnknown; }
bool IsWithin(const CurvePoint& point) { return IsKnown(point) && point.source != PredictionSource::kExtrapolated; }

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + Escaped(text) + "</text>\n";
}

std::string Axes(const Scale& scale, const std::string& unit) {
  std::string svg;
  for (const double mark : AxisMarks(scale.most_throughput, 6)) {
    const double y = scale.Y(mark);
    svg += Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e5e7eb\"/>\n", kLeft, y,
                  kWidth - kRight, y);
    svg += Text(kLeft - 8, y + 4, "end", ShortNumber(mark));
  }
  const double bottom = scale.Y(0);
  for (const double mark : AxisMarks(scale.most_gpus, 10)) {
    svg += Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", scale.X(mark), bottom,
                  scale.X(mark), bottom + 5, kGrey);
    svg += Text(scale.X(mark), bottom + 20, "middle", ShortNumber(mark));
  }
  svg += Format("<path d=\"M%.1f,%.1fV%.1fH%.1f\" fill=\"none\" stroke=\"%s\"/>\n", kLeft, kTop, bottom,
                kWidth - kRight, kGrey);
  svg += Text((kLeft + kWidth - kRight) / 2, bottom + 40, "middle", "GPUs");
  svg += Format("<text transform=\"translate(20,%.1f) rotate(-90)\" text-anchor=\"middle\">", (kTop + bottom) / 2) +
         "throughput (" + Escaped(unit) + ")</text>\n";
  return svg;
}

std::string Band(const std::vector<CurvePoint>& curve, const Scale& scale) {
  std::string points;
  for (const CurvePoint& point : curve) points += scale.At(point.size.replicas, point.high) + " ";
  for (auto point = curve.rbegin(); point != curve.rend(); ++point) {
    points += scale.At(point->size.replicas, point->low) + " ";
  }
  points.pop_back();
  return "<polygon points=\"" + points + "\" fill=\"" + kBlue + "\" fill-opacity=\"0.15\"/>\n";
}

// A full circle for measured sizes, an empty one for interpolated, a diamond for extrapolated ones.
std::string Marker(double x, double y, PredictionSource source) {
  if (source == PredictionSource::kUnknown) {
    return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"%s\">?</text>\n", x, y + 4, kBlue);
  }
  if (source == PredictionSource::kExtrapolated) {
    return Format("<path d=\"M%.1f,%.1fl5,5l-5,5l-5,-5z\" fill=\"white\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", x,
                  y - 5, kBlue);
  }
  const bool is_measured = source == PredictionSource::kMeasured;
  return Format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", x, y,
                is_measured ? kBlue : "white", kBlue);
}

// Solid up to the largest size measured, dashed beyond, none where there is no answer.
std::string Lines(const std::vector<CurvePoint>& curve, const Scale& scale) {
  std::string svg;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const CurvePoint &from = curve[i - 1], &to = curve[i];
    if (!IsKnown(from) || !IsKnown(to)) continue;
    svg += Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"2\"%s/>\n",
                  scale.X(from.size.replicas), scale.Y(from.throughput), scale.X(to.size.replicas),
                  scale.Y(to.throughput), kBlue, IsWithin(to) ? "" : " stroke-dasharray=\"6 4\"");
  }
  return svg;
}

std::string Perfect(const std::vector<CurvePoint>& curve, const Scale& scale) {
  const double per_gpu = curve.front().throughput / curve.front().size.replicas;
  const double gpus = std::min(scale.most_gpus, scale.most_throughput / per_gpu);
  return Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"2 4\"/>\n",
                scale.X(0), scale.Y(0), scale.X(gpus), scale.Y(gpus * per_gpu), kGrey);
}

std::string Knee(int gpus, const Scale& scale) {
  const double x = scale.X(gpus);
  std::string svg =
      Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"4 3\"/>\n", x,
             kTop, x, scale.Y(0), kRed);
  const bool is_left = x > kWidth / 2;  // Where the curve leaves room below itself, or beyond.
  return svg + Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">knee: %d GPU%s</text>\n",
                      is_left ? x - 6 : x + 6, scale.Y(0) - 8, is_left ? "end" : "start", kRed, gpus,
                      gpus == 1 ? "" : "s");
}

std::string Legend() {
  constexpr double kY = kHeight - 20;
  const auto entry = [](double x, PredictionSource source, const char* text) {
    return Marker(x + 6, kY, source) + Text(x + 18, kY + 4, "start", text);
  };
  std::string svg = entry(kLeft, PredictionSource::kMeasured, "measured") +
                    entry(kLeft + 88, PredictionSource::kInterpolated, "interpolated") +
                    entry(kLeft + 190, PredictionSource::kExtrapolated, "extrapolated") +
                    entry(kLeft + 294, PredictionSource::kUnknown, "unknown");
  svg += Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"20\" height=\"12\" fill=\"%s\" fill-opacity=\"0.15\"/>\n",
                kLeft + 382, kY - 6, kBlue) +
         Text(kLeft + 408, kY + 4, "start", "90 % band");
  svg += Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"2 4\"/>\n",
                kLeft + 484, kY, kLeft + 508, kY, kGrey) +
         Text(kLeft + 514, kY + 4, "start", "perfect scaling");
  return svg;
}

}  // namespace

std::string ChartAsSvg(const std::vector<CurvePoint>& curve, const ChartOptions& options) {
  if (curve.empty()) return "";
  Scale scale;
  scale.most_gpus = curve.back().size.replicas;
  scale.most_throughput = HighestShown(curve) * 1.05;

  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1f2937\">\n",
      kWidth, kHeight, kWidth, kHeight);
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += Format("<text x=\"%.1f\" y=\"28\" font-size=\"16\" font-weight=\"600\">", kLeft);
  svg += Escaped(options.title) + "</text>\n";
  svg += Axes(scale, options.unit) + Band(curve, scale) + Perfect(curve, scale) + Lines(curve, scale);
  if (options.knee && *options.knee >= 1 && *options.knee <= scale.most_gpus) svg += Knee(*options.knee, scale);
  for (const CurvePoint& point : curve) {
    svg += Marker(scale.X(point.size.replicas), scale.Y(point.throughput), point.source);
  }
  return svg + Legend() + "</svg>\n";
}

}  // namespace grus
