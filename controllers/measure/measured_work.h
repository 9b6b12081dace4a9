// SPDX-License-Identifier: Apache-2.0
// From what a log says to a measurement of the API, and between speeds and their decimal strings.
//
// Zero, negative, infinite and undefined numbers have no text. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controllers/measure/speed_reader.h"
#include "crds/types/trial_job.h"

namespace grus {

// "812.4": four significant digits. Empty: the number has no text.
std::string Decimal(double value);

// What the job is whose log told a speed.
struct MeasuredSetting {
  api::TrialConfig config;
  api::BatchSizeScope batch_scope = api::BatchSizeScope::kPerGpu;
  bool has_process_per_gpu = true;  // False: nobody knows how many processes there are.
};

// Whose a rate is, if so many samples go into a step at that rate: of all `gpus` of a job whose step holds `of_job`
// samples, or of one of them. Returns `gpus` or 1; 0: neither explains it, or both.
int GpusBehind(double samples, double of_job, int gpus);

struct MeasuredWork {
  api::Measurement measured;
  api::ThroughputUnit unit = api::ThroughputUnit::kNotKnown;
  const MeasuredSpeed* speed = nullptr;  // What it was made of.
};

// The best speed of a trial that can be told in `wanted` or, if that is not known yet, in the unit that it was read in.
// None: there is none. Points into `seen`.
std::optional<MeasuredWork> MeasurementOf(const SpeedObservation& seen, const MeasuredSetting& setting,
                                          api::ThroughputUnit wanted);

// What to write into the manifest, so that a rate of unknown scope becomes one of the job.
std::string ScopeQuestion(const SpeedObservation& seen, api::ThroughputUnit unit);

SpeedPattern PatternOf(const api::LogPattern& pattern);

// "812 samples/s +- 7 %", and whether it may be of one GPU only.
std::string SpeedText(const api::Measurement& measured, api::ThroughputUnit unit);

}  // namespace grus
