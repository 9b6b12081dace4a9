// SPDX-License-Identifier: Apache-2.0
// One form of scaling_form.h, fitted to measurements: the part of throughput_fit.h that finds parameters.
//
// Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "controllers/throughput/throughput_fit.h"

namespace grus {

// How far compute time at one batch size is off the line through the others.
inline constexpr double kBatchEffect = 0.05;

// What all forms share: measurements, units and batch sizes. REQUIRES: measurements, all of them valid.
ThroughputFit FrameOf(std::vector<Measurement> measurements, const FitOptions& options);

FittedForm FitForm(const ThroughputFit& frame, const ScalingForm& form);

// What the form says about a size, and its gradient by all that was fitted, as FittedForm::covariance.
LogStep StepOf(const ThroughputFit& fit, const FittedForm& form, const JobSize& size);
std::vector<double> GradientOf(const ThroughputFit& fit, const LogStep& step, const JobSize& size);

// Index of the batch size's own effect.
std::optional<std::size_t> EffectOf(const ThroughputFit& fit, double batch_size);

int LargestNodes(const std::vector<Measurement>& all);

}  // namespace grus
