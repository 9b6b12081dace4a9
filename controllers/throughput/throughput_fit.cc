// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/throughput_fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "controllers/throughput/least_squares.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

// Prior for any job: mean and standard deviation of each parameter, times in units of the median step. Wide: one
// deviation is a factor of about three. Wider still for the share that depends on the batch size, which small batches
// do not show but predictions of large ones need.
constexpr Parameters kPriorMean = {-1.2, -0.7, -2.5, -0.7, -1.5, 0, -1.5, -1.8};
constexpr Parameters kPriorDeviation = {1.0, 1.5, 1.2, 1.2, 1.0, 1.0, 1.0, 1.0};
// Step times of equal jobs scatter by about this much; this prior counts as much as three measurements.
constexpr double kPriorNoise = 0.06;
constexpr double kPriorNoiseWeight = 3;
// How far compute time at one batch size is off the line through the others.
constexpr double kBatchEffect = 0.05;
constexpr std::size_t kMaxBatchEffects = 32;  // More sizes define the line well enough, and cost time.
// How much the time to synchronise may change with each doubling beyond the largest size measured, divided by the
// number of different sizes that showed how it grows.
constexpr double kUnseenGrowth = 0.2;
// How uncertain a step with synchronising on one node, or on several, is while no such step was measured.
constexpr double kUnmeasuredSync = 0.5;
// No form is exact, so the errors of measurements are correlated: together they count as at most this many.
constexpr double kMostEvidence = 16;
// Evidence of measurements on the same job is not independent: four count as one when forms are weighed.
constexpr double kEvidencePerMeasurement = 0.25;
constexpr double kSmallestError = 0.03;  // Forms that predict this well are equally good.
// 90 % band; the factor is from calibration: the parts of the variance overlap.
constexpr double kBandCalibration = 0.85;

// 95th percentile of Student's t, by its Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5); within 1.5 % from two
// degrees of freedom on.
double StudentQuantile(double degrees) {
  constexpr double z = 1.6448536269514722;
  constexpr double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * degrees * degrees * degrees);
}

double Square(double x) { return x * x; }

std::optional<std::string> WhyNoMeasurement(const Measurement& m) {
  if (auto why = WhyNoSize(m.size)) return why;
  if (!std::isfinite(m.step_seconds) || m.step_seconds <= 0) return "its step time is not a positive number of seconds";
  if (!std::isfinite(m.relative_error) || m.relative_error < 0)
    return "its relative error is not a number of 0 or more";
  return std::nullopt;
}

int LargestNodes(const std::vector<Measurement>& all) {
  int largest = 0;
  for (const Measurement& m : all) largest = std::max(largest, m.size.nodes);
  return largest;
}

int LargestReplicas(const std::vector<Measurement>& all) {
  int largest = 0;
  for (const Measurement& m : all) largest = std::max(largest, m.size.replicas);
  return largest;
}

// Index of the batch size's own effect.
std::optional<std::size_t> EffectOf(const ThroughputFit& fit, double batch_size) {
  const auto at = std::lower_bound(fit.batch_sizes.begin(), fit.batch_sizes.end(), batch_size);
  if (at == fit.batch_sizes.end() || *at != batch_size) return std::nullopt;
  return static_cast<std::size_t>(at - fit.batch_sizes.begin());
}

LogStep StepOf(const ThroughputFit& fit, const ScalingForm& form, const Parameters& parameters,
               const std::vector<double>& effects, const JobSize& size) {
  const auto effect = EffectOf(fit, size.local_batch_size);
  return LogStepSeconds(form, parameters, size, fit.reference_batch, effect ? effects[*effect] : 0);
}

std::vector<double> GradientOf(const ThroughputFit& fit, const LogStep& step, const JobSize& size) {
  std::vector<double> gradient(kParameterCount + fit.batch_sizes.size(), 0);
  std::copy(step.gradient.begin(), step.gradient.end(), gradient.begin());
  const auto effect = EffectOf(fit, size.local_batch_size);
  if (effect) gradient[kParameterCount + *effect] = step.compute_share;
  return gradient;
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
    const LogStep step = StepOf(fit, form, parameters, effects, m.size);
    const double deviation = influences[i].Deviation(m, noise);
    residuals.values.push_back((step.value - std::log(m.step_seconds) + std::log(fit.unit_seconds)) / deviation);
    for (const double g : GradientOf(fit, step, m.size)) residuals.jacobian.push_back(g / deviation);
  }
  return residuals;
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

void Weigh(std::vector<FittedForm>& forms) {
  const double power = kEvidencePerMeasurement * forms.front().evidence;
  const auto log_weight = [&](const FittedForm& f) {
    return -power * std::log(std::hypot(f.leave_one_out_error, kSmallestError));
  };
  double largest = log_weight(forms.front()), sum = 0;
  for (const FittedForm& f : forms) largest = std::max(largest, log_weight(f));
  for (FittedForm& f : forms) sum += f.weight = std::exp(log_weight(f) - largest);
  for (FittedForm& f : forms) f.weight /= sum;
  std::stable_sort(forms.begin(), forms.end(),
                   [](const FittedForm& a, const FittedForm& b) { return a.weight > b.weight; });
}

// Variance of log compute time because this batch size was not measured.
double BatchVariance(const ThroughputFit& fit, double batch_size) {
  if (EffectOf(fit, batch_size)) return 0;
  double doublings = 1e9;
  for (const Measurement& m : fit.measurements) {
    doublings = std::min(doublings, std::abs(std::log2(batch_size / m.size.local_batch_size)));
  }
  return Square(kBatchEffect * std::max(doublings, 1.0));
}

// The sizes that show how synchronising grows: in nodes, or on one node in replicas.
std::size_t SizesLike(const ThroughputFit& fit, const JobSize& size) {
  std::set<int> seen;
  for (const Measurement& m : fit.measurements) {
    if (size.nodes > 1 && m.size.nodes > 1) seen.insert(m.size.nodes);
    if (size.nodes == 1 && m.size.nodes == 1 && m.size.replicas > 1) seen.insert(m.size.replicas);
  }
  return seen.size();
}

// Variance of log synchronising time because the job is larger than any that was measured.
double GrowthVariance(const ThroughputFit& fit, const JobSize& size) {
  const double by_nodes = std::log2(double(size.nodes) / LargestNodes(fit.measurements));
  const double by_replicas = std::log2(double(size.replicas) / LargestReplicas(fit.measurements));
  const double doublings = by_nodes > 0 ? by_nodes : std::max(by_replicas, 0.0);
  return Square(kUnseenGrowth / std::max(double(SizesLike(fit, size)), 0.5)) * doublings;
}

bool IsWithin(const ThroughputFit& fit, const JobSize& size) {
  const auto between = [&](auto value) {
    const auto [low, high] =
        std::minmax_element(fit.measurements.begin(), fit.measurements.end(),
                            [&](const Measurement& a, const Measurement& b) { return value(a.size) < value(b.size); });
    return value(low->size) <= value(size) && value(size) <= value(high->size);
  };
  return between([](const JobSize& s) { return s.nodes; }) && between([](const JobSize& s) { return s.replicas; }) &&
         between([](const JobSize& s) { return s.local_batch_size; });
}

struct LogBand {
  double mean = 0, half_width = 0;
};

LogBand ForecastOf(const ThroughputFit& fit, const JobSize& size, double quantile) {
  const double batch_variance = BatchVariance(fit, size.local_batch_size);
  const double growth_variance = GrowthVariance(fit, size);
  const bool is_like_none = size.replicas > 1 && SizesLike(fit, size) == 0;
  double mean = 0, second_moment = 0;
  for (const FittedForm& f : fit.forms) {
    const LogStep step = StepOf(fit, f.form, f.parameters, f.batch_effects, size);
    // A form is no better at a size that was never measured than at one that is left out.
    const double error = std::max(f.noise, f.leave_one_out_error);
    const double variance = VarianceAlong(f.covariance, GradientOf(fit, step, size)) + Square(error) +
                            Square(step.compute_share) * batch_variance +
                            Square(1 - step.compute_share) * growth_variance +
                            (is_like_none ? Square(kUnmeasuredSync) : 0);
    mean += f.weight * step.value;
    second_moment += f.weight * (variance + Square(step.value));
  }
  return {mean + std::log(fit.unit_seconds), quantile * std::sqrt(std::max(second_moment - Square(mean), 0.0))};
}

// Of a size that was measured: the mean of the measurements, and how single ones scatter around it.
std::optional<LogBand> MeasuredAt(const ThroughputFit& fit, const JobSize& size, double quantile) {
  double sum = 0, count = 0, error = 0, noise = 0;
  for (const Measurement& m : fit.measurements) {
    if (!(m.size == size)) continue;
    sum += std::log(m.step_seconds);
    error += Square(m.relative_error);
    ++count;
  }
  if (count == 0) return std::nullopt;
  for (const FittedForm& f : fit.forms) noise += f.weight * Square(f.noise);
  return LogBand{sum / count, quantile * std::sqrt(noise * (1 + 1 / count) + error / Square(count))};
}

Prediction PredictPossible(const ThroughputFit& fit, const JobSize& size) {
  double degrees = 0;
  for (const FittedForm& f : fit.forms) degrees += f.weight * f.degrees_of_freedom;
  const double quantile = kBandCalibration * StudentQuantile(degrees);
  const std::optional<LogBand> measured = MeasuredAt(fit, size, quantile);
  const LogBand band = measured ? *measured : ForecastOf(fit, size, quantile);
  Prediction p;
  p.step_seconds = std::exp(band.mean);
  p.low = std::exp(band.mean - band.half_width);
  p.high = std::exp(band.mean + band.half_width);
  if (measured) {
    p.source = PredictionSource::kMeasured;
  } else if (!(2 * band.half_width <= std::log(fit.options.max_interval_ratio))) {
    p.source = PredictionSource::kUnknown;
  } else {
    p.source = IsWithin(fit, size) ? PredictionSource::kInterpolated : PredictionSource::kExtrapolated;
  }
  return p;
}

int LargestValid(const ThroughputFit& fit) {
  const auto largest = std::max_element(
      fit.measurements.begin(), fit.measurements.end(), [](const Measurement& a, const Measurement& b) {
        return std::pair(a.size.replicas, a.size.nodes) < std::pair(b.size.replicas, b.size.nodes);
      });
  JobSize size = largest->size;
  constexpr int kMaxDoublings = 10;  // Nobody asks about a thousand times the measured size.
  for (int i = 0; i < kMaxDoublings && size.replicas < 1'000'000; ++i) {
    JobSize next = size;
    next.replicas *= 2;
    if (size.nodes > 1) next.nodes *= 2;  // A single node stays: several were never measured.
    if (PredictPossible(fit, next).source == PredictionSource::kUnknown) break;
    size = next;
  }
  return size.replicas;
}

}  // namespace

std::string_view ToString(PredictionSource source) {
  switch (source) {
    case PredictionSource::kMeasured: return "Measured";
    case PredictionSource::kInterpolated: return "Interpolated";
    case PredictionSource::kExtrapolated: return "Extrapolated";
    case PredictionSource::kUnknown: return "Unknown";
  }
  return "Unknown";
}

std::optional<std::string> WhyNoSize(const JobSize& size) {
  if (size.nodes < 1) return "it has fewer than one node";
  if (size.replicas < 1) return "it has fewer than one replica";
  if (size.replicas < size.nodes) return "it has fewer replicas than nodes";
  if (!std::isfinite(size.local_batch_size) || size.local_batch_size <= 0) {
    return "its batch size is not a positive number";
  }
  return std::nullopt;
}

kube::Result<ThroughputFit> FitThroughput(const std::vector<Measurement>& measurements, const FitOptions& options) {
  if (!(options.max_interval_ratio >= 1)) {
    return Error(ErrorCode::kInvalidArgument, "fit step times: the largest interval ratio is less than 1");
  }
  if (measurements.empty()) return Error(ErrorCode::kInvalidArgument, "fit step times: there is no measurement");
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (const auto why = WhyNoMeasurement(measurements[i])) {
      return Error(ErrorCode::kInvalidArgument, "fit step times: measurement " + std::to_string(i + 1) + ": " + *why);
    }
  }

  ThroughputFit fit;
  fit.options = options;
  fit.measurements = measurements;
  std::vector<double> seconds;
  std::set<double> batch_sizes;
  double batch_sum = 0;
  for (const Measurement& m : measurements) {
    seconds.push_back(m.step_seconds);
    batch_sizes.insert(m.size.local_batch_size);
    batch_sum += m.size.local_batch_size / double(measurements.size());
  }
  std::nth_element(seconds.begin(), seconds.begin() + std::ptrdiff_t(seconds.size() / 2), seconds.end());
  fit.unit_seconds = seconds[seconds.size() / 2];
  fit.reference_batch = batch_sum;
  if (batch_sizes.size() <= kMaxBatchEffects) fit.batch_sizes.assign(batch_sizes.begin(), batch_sizes.end());

  for (const ScalingForm& form : ScalingForms()) fit.forms.push_back(FitForm(fit, form));
  Weigh(fit.forms);
  fit.largest_valid_replicas = LargestValid(fit);
  return fit;
}

kube::Result<Prediction> Predict(const ThroughputFit& fit, const JobSize& size) {
  if (const auto why = WhyNoSize(size)) return Error(ErrorCode::kInvalidArgument, "predict step time: " + *why);
  return PredictPossible(fit, size);
}

std::vector<FittedParameter> BestParameters(const ThroughputFit& fit) {
  const FittedForm& best = fit.best();
  bool has_intra = false, has_inter = false;
  for (const Measurement& m : fit.measurements) {
    has_intra = has_intra || (m.size.nodes == 1 && m.size.replicas > 1);
    has_inter = has_inter || m.size.nodes > 1;
  }
  const auto seconds = [&](Parameter p) { return std::exp(best.parameters[p]) * fit.unit_seconds; };
  std::vector<FittedParameter> parameters = {
      {"computeSeconds", seconds(kFixed)},
      {"computeSecondsPerSample", seconds(kPerSample) / fit.reference_batch},
  };
  if (has_intra) parameters.push_back({"intraNodeSyncSeconds", seconds(kIntra)});
  if (has_inter) parameters.push_back({"interNodeSyncSeconds", seconds(kInter)});
  if (has_intra || has_inter) parameters.push_back({"overlap", OverlapOf(best.parameters[kOverlap])});
  const auto growth = [&](std::string_view name, Parameter p, bool is_seen) {
    if (is_seen && Uses(best.form, p)) parameters.push_back({name, GrowthOf(best.parameters[p])});
  };
  growth("intraNodeGrowth", kIntraGrowth, has_intra);
  growth("interNodeGrowth", kNodeGrowth, has_inter);
  growth("replicasPerNodeGrowth", kLocalGrowth, has_inter);
  return parameters;
}

}  // namespace grus
