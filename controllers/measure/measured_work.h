// SPDX-License-Identifier: Apache-2.0
// Between measured speeds and the decimal strings of the API.
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

struct MeasuredWork {
  api::Measurement measured;
  api::ThroughputUnit unit = api::ThroughputUnit::kNotKnown;
};

// The speed of a trial, in `wanted` or, if that is not known yet, in the unit that it was read in. None: it cannot be
// converted.
std::optional<MeasuredWork> MeasurementOf(const SpeedObservation& seen, const api::TrialConfig& config,
                                          api::BatchSizeScope scope, api::ThroughputUnit wanted);

std::string UnitText(api::ThroughputUnit unit);  // "samples/s"
// "812 samples/s +- 7 %"
std::string SpeedText(const api::Measurement& measured, api::ThroughputUnit unit);

}  // namespace grus
