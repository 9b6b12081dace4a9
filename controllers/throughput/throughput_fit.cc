// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/throughput_fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "controllers/throughput/form_fit.h"
#include "controllers/throughput/least_squares.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

// How much the time to synchronise may change with each doubling beyond the largest size measured, divided by the
// number of different sizes that showed how it grows.
constexpr double kUnseenGrowth = 0.2;
// How uncertain a step with synchronising on one node, or on several, is while no such step was measured.
constexpr double kUnmeasuredSync = 0.5;
// Evidence of measurements on the same job is not independent: four count as one when forms are weighed.
constexpr double kEvidencePerMeasurement = 0.25;
constexpr double kSmallestError = 0.03;  // Forms that predict this well are equally good.
// A straggler is so much slower than the others say, in standard errors and as a factor. Fewer measurements than that
// cannot tell a straggler from a size that is slow.
constexpr double kStragglerErrors = 4.5, kStragglerFactor = 1.5;
constexpr std::size_t kFewestWithStraggler = 8, kMostStragglers = 2, kStragglersTried = 3;
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

int LargestReplicas(const std::vector<Measurement>& all) {
  int largest = 0;
  for (const Measurement& m : all) largest = std::max(largest, m.size.replicas);
  return largest;
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
    const LogStep step = StepOf(fit, f, size);
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

ThroughputFit FitAll(const std::vector<Measurement>& measurements, const FitOptions& options) {
  ThroughputFit fit = FrameOf(measurements, options);
  for (const ScalingForm& form : ScalingForms()) fit.forms.push_back(FitForm(fit, form));
  Weigh(fit.forms);
  return fit;
}

// How much longer the measurement took than the best form says without it, as a logarithm; 0 if that may be chance.
double ExcessOf(const ThroughputFit& fit, std::size_t at) {
  std::vector<Measurement> others = fit.measurements;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
  const ThroughputFit frame = FrameOf(std::move(others), fit.options);
  const FittedForm form = FitForm(frame, fit.best().form);
  const Measurement& m = fit.measurements[at];
  const LogStep step = StepOf(frame, form, m.size);
  const double error = std::max(form.noise, form.leave_one_out_error);
  const double variance = VarianceAlong(form.covariance, GradientOf(frame, step, m.size)) + Square(error) +
                          Square(m.relative_error) +
                          Square(step.compute_share) * BatchVariance(frame, m.size.local_batch_size);
  const double excess = std::log(m.step_seconds / frame.unit_seconds) - step.value;
  return excess > kStragglerErrors * std::sqrt(variance) && excess > std::log(kStragglerFactor) ? excess : 0;
}

// The clearest straggler among those measurements that the best form explains least, and how many times slower it is.
std::optional<std::pair<std::size_t, double>> FindStraggler(const ThroughputFit& fit) {
  if (fit.measurements.size() < kFewestWithStraggler) return std::nullopt;
  std::vector<std::pair<double, std::size_t>> slowest;
  const FittedForm& best = fit.best();
  for (std::size_t i = 0; i < fit.measurements.size(); ++i) {
    const Measurement& m = fit.measurements[i];
    const LogStep step = StepOf(fit, best, m.size);
    slowest.emplace_back(step.value - std::log(m.step_seconds / fit.unit_seconds), i);
  }
  std::sort(slowest.begin(), slowest.end());
  slowest.resize(std::min(slowest.size(), kStragglersTried));
  std::optional<std::pair<std::size_t, double>> found;
  double most = 0;
  for (const auto& [error, at] : slowest) {
    const double excess = ExcessOf(fit, at);
    if (excess <= most) continue;
    most = excess;
    found = {at, std::exp(excess)};
  }
  return found;
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

  std::vector<Measurement> kept = measurements;
  std::vector<Straggler> stragglers;
  ThroughputFit fit = FitAll(kept, options);
  while (stragglers.size() < kMostStragglers) {
    const auto found = FindStraggler(fit);
    if (!found) break;
    stragglers.push_back({kept[found->first], found->second});
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(found->first));
    fit = FitAll(kept, options);
  }
  fit.stragglers = std::move(stragglers);
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
