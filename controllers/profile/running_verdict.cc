// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/running_verdict.h"

#include "controllers/measure/measured_work.h"
#include "controllers/policy/decimal.h"

namespace grus {
namespace {

// Whether the status already says `drift`.
bool IsSaid(const std::optional<api::ProfileDrift>& said, const api::ProfileDrift& drift) {
  return said && said->job == drift.job && said->config == drift.config &&
         DoAgree(said->observed, drift.observed).value_or(false);
}

// 0: the profile does not say.
double SamplesInStep(const api::WorkloadProfileSpec& profile, const api::TrialConfig& config) {
  const api::ProfilePoint* point = FindPoint(profile, config);
  if (point == nullptr || profile.throughput_unit != api::ThroughputUnit::kSamplesPerSecond) return 0;
  const auto rate = ThroughputOf(point->measured);
  return rate ? rate->mean * ParseDecimal(point->measured.step_milliseconds).value_or(0) / 1000 : 0;
}

}  // namespace

std::optional<api::Measurement> MeasurementOfRunning(SpeedObservation seen, const api::TrialConfig& config,
                                                     const api::WorkloadProfileSpec& profile) {
  const api::ThroughputUnit unit = profile.throughput_unit;
  if (unit == api::ThroughputUnit::kNotKnown) return std::nullopt;
  if (seen.samples_per_step == 0) {
    seen.samples_per_step = SamplesInStep(profile, config);
    seen.batch_scope = Scope::kJob;
  }
  const api::BatchSizeScope scope =
      unit == api::ThroughputUnit::kStepsPerSecond ? api::BatchSizeScope::kPerJob : api::BatchSizeScope::kPerGpu;
  const std::optional<MeasuredWork> work = MeasurementOf(seen, {config, scope}, unit);
  // A speed that includes evaluations is not the time of a step.
  const bool is_usable = work && work->speed->trust != Trust::kMixed && !work->measured.is_scope_unknown &&
                         work->speed->steady.has_precision(kUsablePrecision);
  return is_usable ? std::optional(work->measured) : std::nullopt;
}

const api::ProfilePoint* PointFor(const api::WorkloadProfileSpec& profile, const api::TrialConfig& config,
                                  bool may_be_untyped) {
  const api::ProfilePoint* point = FindPoint(profile, config);
  if (point != nullptr || !may_be_untyped) return point;
  api::TrialConfig untyped = config;
  untyped.gpu_type.clear();
  return FindPoint(profile, untyped);
}

JudgedSpeed JudgeSpeed(const api::WorkloadProfile& profile, ObservedSpeed seen, api::ThroughputUnit unit,
                       const DriftContext& context) {
  JudgedSpeed judged;
  const std::optional<api::ProfileDrift>& said = profile.status.drift;
  judged.edit.drift = said;
  if (profile.spec.throughput_unit != unit || unit == api::ThroughputUnit::kNotKnown) return judged;
  const api::ProfilePoint* point = PointFor(profile.spec, seen.config, context.may_be_untyped);
  if (point) seen.config.gpu_type = point->config.gpu_type;
  const api::ProfilePoint measured{.config = seen.config,
                                   .measured = seen.measured,
                                   .measured_by = "elastichorovodjob/" + seen.job,
                                   .time = seen.time};
  if (!point) {
    judged.verdict = SpeedVerdict::kNew;
    judged.edit.points = {measured};
    return judged;
  }
  if (point->time > seen.time || !DoAgree(point->measured, seen.measured)) return judged;
  judged.drift = FindDrift(profile.spec, seen);
  if (!judged.drift) {
    judged.verdict = SpeedVerdict::kAgrees;
    const bool is_about_it = said && FindPoint(profile.spec, said->config) == point;
    if (is_about_it && point->time > said->time) {
      // The point is newer than the drift, but the status still has the drift: a write of ours may have been
      // interrupted.
      if (point->measured == seen.measured && point->measured_by == measured.measured_by) {
        judged.verdict = SpeedVerdict::kReplaces;
        judged.drift = said;
      }
      return judged;
    }
    if (is_about_it && (said->job == seen.job || !context.does_other_stand)) judged.edit.drift.reset();
    const bool is_in_doubt = is_about_it && judged.edit.drift;  // The drift of another job stays.
    if (!is_in_doubt && seen.time.value - point->time.value >= kRefreshAfter) judged.edit.points = {measured};
    return judged;
  }
  judged.verdict = context.is_confirmed ? SpeedVerdict::kReplaces : SpeedVerdict::kDrifts;
  if (context.is_confirmed) judged.edit.points = {measured};
  else if (!IsSaid(said, *judged.drift) && !context.does_other_stand) judged.edit.drift = judged.drift;
  return judged;
}

}  // namespace grus
