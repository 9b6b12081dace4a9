// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_read.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "clientlib/model/json.h"
#include "clientlib/model/utf8.h"
#include "controllers/measure/measured_work.h"
#include "controllers/policy/decimal.h"

namespace grus {
namespace {

using kube::Json;

std::string_view MeasureName(const MeasuredSpeed& speed) {
  switch (speed.measure) {
    case Measure::kSamplesPerSecond: return "SamplesPerSecond";
    case Measure::kTokensPerSecond: return "TokensPerSecond";
    case Measure::kEpoch: return "EpochSeconds";
    default: return "StepSeconds";
  }
}

std::string_view ScopeName(Scope scope) {
  static constexpr std::string_view kNames[] = {"NotSaid", "PerProcess", "PerGpu", "PerJob"};
  return kNames[static_cast<std::size_t>(scope)];
}

Json Number(const std::string& decimal) { return ParseDecimal(decimal).value_or(0); }

Json JsonOf(const MeasuredSpeed& speed) {
  const SteadySpeed& steady = speed.steady;
  Json json = Json::MakeObject({{"measure", MeasureName(speed)},
                                {"value", Number(Decimal(speed.value()))},
                                {"scope", ScopeName(speed.scope)},
                                {"isCounted", speed.is_counted},
                                {"samples", steady.samples}});
  if (std::isfinite(steady.half_width_seconds)) {
    json["intervalPercent"] = Number(Decimal(100 * steady.relative_half_width()));
  }
  json["line"] = kube::RepairUtf8(speed.example.text);
  return json;
}

template <typename Enum>
std::optional<Enum> ValueOf(std::string_view name, Enum any) {
  const auto names = api::EnumNames(any);
  const auto found = std::find(names.begin(), names.end(), name);
  return found != names.end() && !name.empty() ? std::optional(static_cast<Enum>(found - names.begin())) : std::nullopt;
}

kube::Error WrongPattern(const std::string& text, const std::string& what) {
  return kube::Error(kube::ErrorCode::kInvalidArgument,
                     "--pattern " + text + ": " + what + "; write KIND[:SCOPE]=REGEX, as in measure.patterns");
}

}  // namespace

kube::Result<api::LogPattern> ParsePattern(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return WrongPattern(text, "it has no =");
  const std::string_view head = std::string_view(text).substr(0, equals);
  const std::size_t colon = head.find(':');
  const auto kind = ValueOf(head.substr(0, colon), api::SpeedKind::kStep);
  if (!kind) return WrongPattern(text, "no such kind");
  api::LogPattern pattern{text, text.substr(equals + 1), *kind, api::SpeedScope::kNotSaid};
  if (colon == std::string_view::npos) return pattern;
  const auto scope = ValueOf(head.substr(colon + 1), api::SpeedScope::kNotSaid);
  if (!scope) return WrongPattern(text, "no such scope");
  pattern.scope = *scope;
  return pattern;
}

kube::Result<std::string> ReadSpeeds(std::string_view log, const LogSetting& setting) {
  SpeedReaderOptions options;
  for (const api::LogPattern& pattern : setting.patterns) options.patterns.push_back(PatternOf(pattern));
  kube::Result<SpeedReader> reader = SpeedReader::Make(options);
  if (!reader) return std::move(reader).error();
  reader->Add(log);
  if (!log.ends_with('\n')) reader->Add("\n");
  const SpeedObservation seen = reader->Observe({});
  const MeasuredSetting measured{
      {"", setting.gpus, 0, setting.batch_size}, setting.batch_scope, setting.has_process_per_gpu};
  const auto work = MeasurementOf(seen, measured, api::ThroughputUnit::kNotKnown);

  Json answer = Json::MakeObject();
  std::string message;
  if (work) {
    answer["throughput"] = Number(work->measured.throughput);
    answer["throughputLow"] = Number(work->measured.throughput_low);
    answer["throughputHigh"] = Number(work->measured.throughput_high);
    answer["unit"] = api::EnumNames(work->unit)[static_cast<std::size_t>(work->unit)];
    const std::string& step = work->measured.step_milliseconds;
    if (!step.empty()) answer["stepMilliseconds"] = Number(step);
    if (work->measured.is_scope_unknown) {
      answer["scopeUnknown"] = true;
      message = ScopeQuestion(seen, work->unit);
    }
  } else {
    message = seen.counts.refused > 0 ? "every speed is zero, negative, infinite or NaN" : "no speed was found";
    message += "; set measure.patterns, and try them here with --pattern";
  }
  if (seen.samples_per_step > 0) answer["samplesPerStep"] = Number(Decimal(seen.samples_per_step));
  answer["lines"] = seen.counts.lines;
  answer["matchedLines"] = seen.counts.matched_lines;
  Json speeds = Json::MakeArray();
  for (const MeasuredSpeed* speed : seen.BestFirst()) speeds.Append(JsonOf(*speed));
  answer["speeds"] = std::move(speeds);
  if (!message.empty()) answer["message"] = kube::RepairUtf8(message);
  return kube::ToText(answer) + "\n";
}

}  // namespace grus
