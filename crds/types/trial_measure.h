// SPDX-License-Identifier: Apache-2.0
// Where a TrialJob gets the speed of a training: from its log, from Prometheus, or from what the training pushes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/field.h"

namespace api {

enum class MeasureSource { kLogs, kPrometheus, kPush };
std::span<const std::string_view> EnumNames(MeasureSource);

enum class SpeedKind { kStep, kSamplesPerSecond, kStepSeconds, kEpoch, kTokensPerSecond, kSamplesPerStep };
std::span<const std::string_view> EnumNames(SpeedKind);

// Whose a rate, or the samples of a step, are.
enum class SpeedScope { kNotSaid, kPerGpu, kPerProcess, kPerJob };
std::span<const std::string_view> EnumNames(SpeedScope);

struct LogPattern {
  std::string name, regex;
  SpeedKind kind = SpeedKind::kStep;
  SpeedScope scope = SpeedScope::kNotSaid;
  static std::span<const kube::FieldInfo> Fields();
};

struct PrometheusQuery {
  std::string query;
  SpeedKind kind = SpeedKind::kSamplesPerSecond;
  static std::span<const kube::FieldInfo> Fields();
};

struct PrometheusSource {
  std::string url;
  std::vector<PrometheusQuery> queries;
  static std::span<const kube::FieldInfo> Fields();
};

struct TrialMeasure {
  MeasureSource source = MeasureSource::kLogs;
  std::vector<LogPattern> patterns;
  std::optional<std::int32_t> warmup_seconds;
  std::int32_t startup_seconds = 600, window_seconds = 60, precision_percent = 5;
  std::optional<PrometheusSource> prometheus;
  static std::span<const kube::FieldInfo> Fields();
};

}  // namespace api
