// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/form_fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "controllers/throughput/least_squares.h"

namespace grus {
namespace {

// Prior for any job: mean and standard deviation of each parameter, times in units of the median step. Wide: one
// deviation is a factor of about three. Wider still for the share that depends on the batch size, which small batches
// do not show but predictions of large ones need.
constexpr Parameters kPriorMean = {-1.2, -0.7, -2.5, -0.7, -1.5, 0, -1.5, -1.8};
constexpr Parameters kPriorDeviation = {1.0, 1.5, 1.2, 1.2, 1.0, 1.0, 1.0, 1.0};
// Step times of equal jobs scatter by about this much; this prior counts as much as three measurements.
constexpr double kPriorNoise = 0.06;
constexpr double kPriorNoiseWeight = 3;
constexpr std::size_t kMaxBatchEffects = 32;  // More sizes define the line well enough, and cost time.
// No form is exact, so the errors of measurements are correlated: together they count as at most this many.
constexpr double kMostEvidence = 16;

double Square(double x) { return x * x; }

LogStep StepAt(const ThroughputFit& fit, const ScalingForm& form, const Parameters& parameters,
               const std::vector<double>& effects, const JobSize& size) {
  const auto effect = EffectOf(fit, size.local_batch_size);
  return LogStepSeconds(form, parameters, size, fit.reference_batch, effect ? effects[*effect] : 0);
}

void Split(const std::vector<double>& all, Parameters& parameters, std::vector<double>& effects) {
  std::copy_n(all.begin(), kParameterCount, parameters.begin());
  effects.assign(all.begin() + kParameterCount, all.end());
}

// How a measurement counts in the fit.
struct Influence {
  double scatter = 1;  // Its noise, relative to that of others.
  double weight = 1;   // How many measurements it counts as.

  double Deviation(const Measurement& m, double noise) const {
    return std::hypot(noise * scatter, m.relative_error) / std::sqrt(weight);
  }
};

// The fit is used for sizes beyond the largest, so measurements on the most nodes count most.
std::vector<Influence> InfluencesOf(const std::vector<Measurement>& measurements) {
  const int largest = LargestNodes(measurements);
  std::vector<Influence> influences;
  for (const Measurement& m : measurements) {
    Influence& influence = influences.emplace_back();
    if (m.size.nodes > 1) influence.scatter = std::sqrt(1 + std::log2(double(largest) / m.size.nodes));
    influence.weight = std::min(1.0, kMostEvidence / double(measurements.size()));
  }
  return influences;
}

NormalPrior PriorOf(const ThroughputFit& fit) {
  NormalPrior prior{{kPriorMean.begin(), kPriorMean.end()}, {kPriorDeviation.begin(), kPriorDeviation.end()}};
  prior.mean.resize(kParameterCount + fit.batch_sizes.size(), 0);
  prior.deviation.resize(prior.mean.size(), kBatchEffect);
  return prior;
}

Residuals ResidualsOf(const ThroughputFit& fit, const ScalingForm& form, const std::vector<Influence>& influences,
                      double noise, const std::vector<double>& at) {
  Parameters parameters;
  std::vector<double> effects;
  Split(at, parameters, effects);
  Residuals residuals;
  residuals.values.reserve(fit.measurements.size());
  residuals.jacobian.reserve(fit.measurements.size() * at.size());
  for (std::size_t i = 0; i < fit.measurements.size(); ++i) {
    const Measurement& m = fit.measurements[i];
    const LogStep step = StepAt(fit, form, parameters, effects, m.size);
    const double deviation = influences[i].Deviation(m, noise);
    residuals.values.push_back((step.value - std::log(m.step_seconds) + std::log(fit.unit_seconds)) / deviation);
    for (const double g : GradientOf(fit, step, m.size)) residuals.jacobian.push_back(g / deviation);
  }
  return residuals;
}

}  // namespace

int LargestNodes(const std::vector<Measurement>& all) {
  int largest = 0;
  for (const Measurement& m : all) largest = std::max(largest, m.size.nodes);
  return largest;
}

std::optional<std::size_t> EffectOf(const ThroughputFit& fit, double batch_size) {
  const auto at = std::lower_bound(fit.batch_sizes.begin(), fit.batch_sizes.end(), batch_size);
  if (at == fit.batch_sizes.end() || *at != batch_size) return std::nullopt;
  return static_cast<std::size_t>(at - fit.batch_sizes.begin());
}

std::vector<double> GradientOf(const ThroughputFit& fit, const LogStep& step, const JobSize& size) {
  std::vector<double> gradient(kParameterCount + fit.batch_sizes.size(), 0);
  std::copy(step.gradient.begin(), step.gradient.end(), gradient.begin());
  const auto effect = EffectOf(fit, size.local_batch_size);
  if (effect) gradient[kParameterCount + *effect] = step.compute_share;
  return gradient;
}

LogStep StepOf(const ThroughputFit& fit, const FittedForm& form, const JobSize& size) {
  return StepAt(fit, form.form, form.parameters, form.batch_effects, size);
}

ThroughputFit FrameOf(std::vector<Measurement> measurements, const FitOptions& options) {
  ThroughputFit fit;
  fit.options = options;
  fit.measurements = std::move(measurements);
  std::vector<double> seconds;
  std::set<double> batch_sizes;
  double batch_sum = 0;
  for (const Measurement& m : fit.measurements) {
    seconds.push_back(m.step_seconds);
    batch_sizes.insert(m.size.local_batch_size);
    batch_sum += m.size.local_batch_size / double(fit.measurements.size());
  }
  std::nth_element(seconds.begin(), seconds.begin() + std::ptrdiff_t(seconds.size() / 2), seconds.end());
  fit.unit_seconds = seconds[seconds.size() / 2];
  fit.reference_batch = batch_sum;
  if (batch_sizes.size() <= kMaxBatchEffects) fit.batch_sizes.assign(batch_sizes.begin(), batch_sizes.end());
  return fit;
}

// The noise is not known beforehand: fit, see how the measurements scatter, and fit again.
FittedForm FitForm(const ThroughputFit& fit, const ScalingForm& form) {
  const NormalPrior prior = PriorOf(fit);
  const std::vector<Influence> influences = InfluencesOf(fit.measurements);
  const std::size_t count = fit.measurements.size();
  FittedForm fitted;
  fitted.form = form;
  fitted.noise = kPriorNoise;
  for (const Influence& influence : influences) fitted.evidence += influence.weight;
  LeastSquaresSolution solution;
  solution.parameters = prior.mean;
  std::vector<double> errors(count);  // Relative, as if all measurements scattered alike.
  for (int round = 0;; ++round) {
    const auto residuals = [&](const std::vector<double>& at) {
      return ResidualsOf(fit, form, influences, fitted.noise, at);
    };
    solution = SolveLeastSquares(residuals, prior, std::move(solution.parameters));
    double squares = 0, used = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double deviation = influences[i].Deviation(fit.measurements[i], fitted.noise);
      errors[i] = solution.residuals.values[i] * deviation / influences[i].scatter;
      squares += influences[i].weight * Square(errors[i]);
      used += solution.leverage[i];
    }
    if (round == 2) break;
    fitted.degrees_of_freedom = std::max(fitted.evidence - used, 0.0) + kPriorNoiseWeight;
    fitted.noise = std::sqrt((squares + kPriorNoiseWeight * Square(kPriorNoise)) / fitted.degrees_of_freedom);
  }
  // What each error would be without its measurement, to first order (Cook and Weisberg 1982, 2.2).
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double left_out = std::abs(errors[i]) / std::max(1 - solution.leverage[i], 0.05);
    squares += influences[i].weight * Square(std::min(left_out, 1.0));
  }
  fitted.leave_one_out_error = std::sqrt(squares / fitted.evidence);
  Split(solution.parameters, fitted.parameters, fitted.batch_effects);
  fitted.covariance = std::move(solution.covariance);
  return fitted;
}

}  // namespace grus
