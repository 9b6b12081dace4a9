// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_plot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "clientlib/base/printable.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/queues/wording.h"
#include "controllers/throughput/chart.h"

namespace grus {
namespace {

using api::TrialJob;

// The sizes of one GPU type and batch size, in ascending order.
struct Series {
  std::string gpu_type;
  std::int32_t batch_size = 0;
  std::vector<api::CurvePoint> points;
};

std::vector<Series> SeriesOf(const api::TrialJobStatus& status) {
  std::map<std::pair<std::string, std::int32_t>, std::vector<api::CurvePoint>> found;
  for (const api::CurvePoint& point : status.curve) found[{point.gpu_type, point.batch_size}].push_back(point);
  std::vector<Series> all;
  for (auto& [key, points] : found) {
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.gpus < b.gpus; });
    all.push_back({key.first, key.second, std::move(points)});
  }
  return all;
}

PredictionSource SourceOf(api::CurveSource source) {
  switch (source) {
    case api::CurveSource::kMeasured: return PredictionSource::kMeasured;
    case api::CurveSource::kInterpolated: return PredictionSource::kInterpolated;
    case api::CurveSource::kExtrapolated: return PredictionSource::kExtrapolated;
    case api::CurveSource::kUnknown: break;
  }
  return PredictionSource::kUnknown;
}

// The points that can be drawn. A size without a number is drawn in the middle of its band.
std::vector<CurvePoint> Drawn(const Series& series) {
  std::vector<CurvePoint> curve;
  for (const api::CurvePoint& point : series.points) {
    const auto low = ParseDecimal(point.throughput_low), high = ParseDecimal(point.throughput_high);
    std::optional<double> throughput = ParseDecimal(point.throughput);
    if (!throughput && low && high) throughput = std::sqrt(*low * *high);
    if (!throughput || (!curve.empty() && curve.back().size.replicas == point.gpus)) continue;
    CurvePoint& drawn = curve.emplace_back();
    drawn.size.replicas = point.gpus;
    drawn.source = SourceOf(point.source);
    drawn.throughput = *throughput;
    drawn.low = low.value_or(*throughput);
    drawn.high = high.value_or(*throughput);
  }
  return curve;
}

std::optional<int> KneeOf(const api::TrialJobStatus& status, const Series& series) {
  for (const api::Recommendation& r : status.recommendation) {
    if (r.goal == api::Goal::kKnee && r.gpu_type == series.gpu_type && r.batch_size == series.batch_size) return r.gpus;
  }
  return std::nullopt;
}

std::string TitleOf(const TrialJob& trial, const Series& series) {
  std::string title = trial.metadata.Key().ToString();
  if (!series.gpu_type.empty()) title += ", " + kube::Printable(series.gpu_type);
  if (series.batch_size > 0) title += ", batch size " + std::to_string(series.batch_size);
  return title;
}

ChartOptions OptionsOf(const TrialJob& trial, const Series& series, const PlotSize& size) {
  ChartOptions options;
  options.title = TitleOf(trial, series);
  options.unit = UnitText(trial.status.throughput_unit);
  options.knee = KneeOf(trial.status, series);
  options.width = size.width;
  options.height = size.height;
  return options;
}

using Row = std::vector<std::string>;

// Columns are aligned right, the last one left.
std::string TableOf(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += std::string(widths[i] - row[i].size(), ' ') + row[i] + "  ";
    text += row.back() + "\n";
  }
  return text;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : kube::Printable(text); }

std::string SizesOf(const Series& series, const std::string& unit) {
  std::vector<Row> rows = {{"GPUs", unit, "90 % band", "speed-up", "efficiency", "source"}};
  for (const api::CurvePoint& point : series.points) {
    const bool has_band = !point.throughput_low.empty() && !point.throughput_high.empty();
    rows.push_back({std::to_string(point.gpus), OrDash(point.throughput),
                    has_band ? kube::Printable(point.throughput_low + " to " + point.throughput_high) : "-",
                    OrDash(point.speed_up), OrDash(point.efficiency), std::string(ToString(SourceOf(point.source)))});
  }
  return TableOf(rows);
}

std::string RecommendationText(const api::Recommendation& r) {
  std::string text = std::string(api::EnumNames(r.goal)[static_cast<std::size_t>(r.goal)]) + ": ";
  if (!r.message.empty()) {
    text += r.message;
  } else if (r.gpus) {
    text += Count(*r.gpus, r.gpu_type.empty() ? "GPU" : r.gpu_type + " GPU");
    if (r.batch_size > 0) text += ", batch size " + std::to_string(r.batch_size);
    text += " (" + std::string(ToString(SourceOf(r.source))) + ")";
  } else {
    text += "not known";
  }
  return kube::Printable(text) + "\n";
}

kube::Error NothingYet(const TrialJob& trial) {
  const api::TrialJobStatus& status = trial.status;
  const std::string phase(api::EnumNames(status.phase)[static_cast<std::size_t>(status.phase)]);
  std::string text = "TrialJob " + trial.metadata.Key().ToString() + " has no curve yet: phase " + phase;
  if (!status.progress.empty()) text += ", " + status.progress + " trials ended";
  const auto* ready = kube::FindCondition(status.conditions, "Ready");
  if (!ready) ready = kube::FindCondition(status.conditions, "Reconciling");
  if (ready && !ready->message.empty()) text += "; " + ready->message;
  return {kube::ErrorCode::kNotFound, text};
}

bool HasAnythingToDraw(const std::vector<Series>& all) {
  return std::any_of(all.begin(), all.end(), [](const Series& series) { return !Drawn(series).empty(); });
}

}  // namespace

kube::Result<std::string> PlotAsText(const TrialJob& trial, const PlotSize& size) {
  const std::vector<Series> all = SeriesOf(trial.status);
  if (!HasAnythingToDraw(all)) return NothingYet(trial);
  std::string text;
  for (const Series& series : all) {
    const ChartOptions options = OptionsOf(trial, series, size);
    const std::string chart = ChartAsText(Drawn(series), options);
    text += (chart.empty() ? options.title + "\n" : chart) + "\n" + SizesOf(series, options.unit) + "\n";
  }
  for (const api::Recommendation& r : trial.status.recommendation) text += RecommendationText(r);
  return text;
}

kube::Result<std::string> PlotAsSvg(const TrialJob& trial) {
  const std::vector<Series> all = SeriesOf(trial.status);
  if (!HasAnythingToDraw(all)) return NothingYet(trial);
  std::string charts;
  int count = 0;
  for (const Series& series : all) {
    const std::string chart = ChartAsSvg(Drawn(series), OptionsOf(trial, series, {}));
    if (chart.empty()) continue;
    charts += "<g transform=\"translate(0," + std::to_string(kSvgHeight * count++) + ")\">\n" + chart + "</g>\n";
  }
  const std::string height = std::to_string(kSvgHeight * count), width = std::to_string(kSvgWidth);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height + "\" viewBox=\"0 0 " +
         width + " " + height + "\">\n" + charts + "</svg>\n";
}

}  // namespace grus
