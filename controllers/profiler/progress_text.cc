// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/progress_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "controllers/frame/eta_news.h"

namespace grus {
namespace {

using std::chrono::seconds;

constexpr double kLeastGrowth = 1.2;  // Of a step.

std::int64_t Whole(double value) { return static_cast<std::int64_t>(std::floor(value)); }

std::string Of(std::string_view name, const std::optional<std::int64_t>& count,
               const std::optional<std::int64_t>& total) {
  std::string text = std::string(name) + " " + std::to_string(*count);
  if (total) text += "/" + std::to_string(*total);
  return text;
}

std::string Summary(const api::Progress& progress) {
  if (progress.percent) return std::to_string(*progress.percent) + "%";
  std::string text;
  if (progress.epoch) text = Of("epoch", progress.epoch, progress.total_epochs);
  if (progress.step) text += (text.empty() ? "" : ", ") + Of("step", progress.step, progress.total_steps);
  return text;
}

kube::Time Rounded(WallTime time) { return kube::Time{std::chrono::floor<seconds>(time)}; }

}  // namespace

api::Progress ProgressOf(const Position& where, const std::optional<Eta>& eta, const api::Progress& before) {
  api::Progress progress;
  progress.metric = before.metric;
  if (where.step) progress.step = Whole(*where.step);
  if (where.total_steps > 0) progress.total_steps = Whole(where.total_steps);
  if (where.epoch) progress.epoch = Whole(*where.epoch);
  if (where.total_epochs > 0) progress.total_epochs = Whole(where.total_epochs);
  if (where.done) progress.percent = static_cast<std::int32_t>(std::floor(100 * where.done->least + 1e-9));
  if (eta) {
    progress.eta = Rounded(eta->expected);
    progress.eta_earliest = Rounded(eta->earliest);
    progress.eta_latest = Rounded(eta->latest);
  }
  progress.time = Rounded(where.time);
  progress.summary = Summary(progress);
  return progress;
}

api::Progress EndedProgress(api::Progress progress, bool has_succeeded) {
  progress.eta = progress.eta_earliest = progress.eta_latest = std::nullopt;
  if (has_succeeded) {
    progress.percent = 100;
    progress.summary = Summary(progress);
  }
  return progress;
}

bool IsNews(const api::Progress& before, const api::Progress& now) {
  if (before.percent != now.percent || before.epoch != now.epoch || before.eta.has_value() != now.eta.has_value())
    return true;
  if (!now.percent && now.step) {  // Its end is not known: told ever more seldom, or each minute would be a write.
    return !before.step || *now.step < *before.step ||
           static_cast<double>(*now.step) > static_cast<double>(*before.step) * kLeastGrowth;
  }
  return now.eta && IsEtaNews(before.eta, now.eta, now.time.value_or(*now.eta));
}

}  // namespace grus
