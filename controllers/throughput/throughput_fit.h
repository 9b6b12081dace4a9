// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a training step at a size that was not tried, from a few measured sizes, with an interval.
//
// Each form of scaling_form.h is fitted; a prediction is their mean, weighted by how well each predicts a measurement
// that is left out. Its 90 % band covers the uncertainty of the parameters, the disagreement of the forms, the scatter
// of the measurements or the error at a measurement that is left out (whichever is more), the uncertainty of a batch
// size that was not measured, and a change of growth beyond the largest size measured. Few measurements are no error:
// what they do not determine stays as wide as the prior, so the band is wide. If it is wider than a limit, the answer
// is Unknown.
//
// Odd measurements are data, not errors: the same size twice, times that fall as a job grows, a single batch size. A
// number that cannot be a measurement is an error that names it. Among many measurements, one or two that are far
// slower than all others together say are stragglers: they are named and left out.
//
// Pure functions of their arguments, deterministic, safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/throughput/scaling_form.h"

namespace grus {

struct Measurement {
  JobSize size;
  double step_seconds = 0;
  double relative_error = 0;  // Standard error of step_seconds as a share of it; 0 if not known.
};

struct FitOptions {
  // The widest band (high / low) that is still an answer; spec.extrapolate.maxIntervalRatio.
  double max_interval_ratio = 2;
};

enum class PredictionSource {
  kMeasured,      // This size was measured.
  kInterpolated,  // Nodes, replicas and batch size each lie between those measured.
  kExtrapolated,
  kUnknown,  // Not measured, and the band is wider than the limit.
};
std::string_view ToString(PredictionSource source);

struct Prediction {
  PredictionSource source = PredictionSource::kUnknown;
  // For Measured sizes, the mean of the measurements. For Unknown ones only a guess: show the band with it.
  double step_seconds = 0;
  double low = 0, high = 0;  // The 90 % band.
};

struct FittedParameter {
  std::string_view name;  // In seconds, but for overlap (1 to 10) and growths (0 to 1).
  double value = 0;
};

struct FittedForm {
  ScalingForm form;
  double weight = 0;               // Its share in predictions; all sum to 1.
  double leave_one_out_error = 0;  // Root mean square of the relative error at a measurement that is left out.
  double noise = 0;                // Relative scatter of the measurements around it.
  double degrees_of_freedom = 0;
  double evidence = 0;                // How many independent measurements all of them count as.
  Parameters parameters{};            // Of step times in units of ThroughputFit::unit_seconds.
  std::vector<double> batch_effects;  // One for each of ThroughputFit::batch_sizes.
  std::vector<double> covariance;     // Of parameters, then batch_effects.
};

// A measurement that no form explains once the others are known: a node with a sick card, say, or a bad network.
struct Straggler {
  Measurement measurement;
  double times = 1;  // How many times slower it is than the others say.
};

struct ThroughputFit {
  FitOptions options;
  std::vector<Measurement> measurements;  // Without stragglers.
  std::vector<Straggler> stragglers;      // Found among the measurements; at most two.
  std::vector<FittedForm> forms;          // By weight, largest first; there is one at least.
  int largest_valid_replicas = 0;  // Up to here, doubling from the largest measured, the band is within the limit.

  // What the parameters are relative to.
  double unit_seconds = 1;
  double reference_batch = 1;
  std::vector<double> batch_sizes;  // Those with an effect of their own, ascending; none if there are very many.

  const FittedForm& best() const { return forms.front(); }
};

// Error kInvalidArgument: no measurement, or an invalid one.
kube::Result<ThroughputFit> FitThroughput(const std::vector<Measurement>& measurements, const FitOptions& options = {});

// Error kInvalidArgument: an invalid size.
kube::Result<Prediction> Predict(const ThroughputFit& fit, const JobSize& size);

// Those parameters of the best form that the measurements determine, for status and reports.
std::vector<FittedParameter> BestParameters(const ThroughputFit& fit);

// Why `size` is invalid; nullopt if it is valid.
std::optional<std::string> WhyNoSize(const JobSize& size);

}  // namespace grus
