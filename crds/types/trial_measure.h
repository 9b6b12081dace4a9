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

enum class SpeedKind { kStep, kSamplesPerSecond, kStepSeconds, kEpoch };
std::span<const std::string_view> EnumNames(SpeedKind);

struct LogPattern {
  std::string name, regex;
  SpeedKind kind = SpeedKind::kStep;
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
  std::int32_t window_seconds = 60, precision_percent = 5;
  std::optional<PrometheusSource> prometheus;
  static std::span<const kube::FieldInfo> Fields();
};

}  // namespace api
