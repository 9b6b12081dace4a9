// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/interference_model.h"

#include <algorithm>
#include <cmath>

#include "controllers/interference/co_run_samples.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr double kNinetyPercent = 1.645;  // Deviations of a normal distribution, either way.
// Beyond so many measurements of a pair, what differs is how they were taken; more of them do not help.
constexpr double kMostCount = 8;
// Of the logarithm of the slow-down of jobs that are not among the samples: however alike these are, nobody knows a job
// better than that before it ran.
constexpr double kLeastDeviationOfNew = 0.02;

PairTargets EncodeAll(const std::vector<CoRunSample>& samples, const PairEncoder& encoder) {
  PairTargets known;
  for (const CoRunSample& sample : samples) {
    const SlowDownScale& scale = encoder.ScaleOf(sample.gpu_type);
    known.points.push_back(encoder.Encode(sample.job, sample.partner, sample.gpu_type));
    known.targets.push_back((LogSlowDown(sample.speed) - scale.mean) / scale.deviation);
    known.noise_shares.push_back(1 / std::clamp(sample.count, 1.0, kMostCount));
  }
  return known;
}

std::optional<std::string> WhyNoSample(const CoRunSample& sample) {
  if (const auto why = WhyNoSpeed(sample.speed)) return "speed " + std::to_string(sample.speed) + " " + *why;
  if (!(sample.count >= 1 && sample.count <= kMaxCount)) return "a count that is not from 1 to 1e12";
  if (const auto why = WhyNoFeatures(sample.job.solo)) return why;
  return WhyNoFeatures(sample.partner.solo);
}

}  // namespace

kube::Result<InterferenceModel> InterferenceModel::Fit(std::vector<CoRunSample> samples) {
  for (const CoRunSample& sample : samples) {
    if (const auto why = WhyNoSample(sample)) {
      return Error(ErrorCode::kInvalidArgument,
                   "co-run of " + sample.job.fingerprint + " with " + sample.partner.fingerprint + ": " + *why);
    }
  }
  FillFeatures(KnownFeatures(samples), samples);
  samples = DrawEvenly(MergeSamples(std::move(samples)));
  if (samples.empty()) return InterferenceModel();
  const PairEncoder encoder(samples);
  std::vector<double> deviations;
  for (const CoRunSample& sample : samples) deviations.push_back(encoder.ScaleOf(sample.gpu_type).deviation);
  return InterferenceModel(std::move(samples), LearnParameters(EncodeAll(samples, encoder), deviations));
}

InterferenceModel::InterferenceModel(std::vector<CoRunSample> samples, const InterferenceParameters& parameters)
    : samples_(std::move(samples)), parameters_(parameters), known_features_(samples_), encoder_(samples_) {
  const PairTargets known = EncodeAll(samples_, encoder_);
  const double weight = parameters_.features_weight;
  if (weight > 0) with_features_.emplace(known, parameters_.with_features);
  if (weight < 1) without_features_.emplace(known, parameters_.without_features);
}

double InterferenceModel::WidthOf(const PairPoint& point) const {
  if (samples_.empty()) return 1;
  const auto type = static_cast<std::size_t>(point.gpu_type);  // Beyond all if it is none.
  const std::vector<double>& widths = parameters_.known_jobs_widths;
  const double width = type < widths.size() ? widths[type] : 1;
  if (point.job_family < 0 || point.partner_family < 0) return std::max(width, parameters_.new_family_width);
  if (point.job < 0 || point.partner < 0) return std::max(width, parameters_.new_job_width);
  return width;
}

std::vector<SpeedShare> InterferenceModel::Predict(const std::vector<PairQuestion>& questions) const {
  std::vector<PairPoint> points;
  for (PairQuestion q : questions) {
    q.job = WithPossibleFeatures(std::move(q.job));
    q.partner = WithPossibleFeatures(std::move(q.partner));
    known_features_.Fill(q.job, q.gpu_type);
    known_features_.Fill(q.partner, q.gpu_type);
    points.push_back(encoder_.Encode(q.job, q.partner, q.gpu_type));
  }
  const PairGuesses with = with_features_ ? with_features_->Guess(points) : PairGuesses{};
  const PairGuesses without = without_features_ ? without_features_->Guess(points) : PairGuesses{};
  const double weight = parameters_.features_weight;
  std::vector<SpeedShare> speeds;
  for (std::size_t i = 0; i < points.size(); ++i) {
    double mean = 0, deviation = 0;
    if (with_features_) {
      mean += weight * with.means[i];
      deviation += weight * with.deviations[i];
    }
    if (without_features_) {
      mean += (1 - weight) * without.means[i];
      deviation += (1 - weight) * without.deviations[i];
    }
    const SlowDownScale& scale = encoder_.ScaleOf(questions[i].gpu_type);
    const double middle = scale.mean + scale.deviation * mean;
    const bool is_new = points[i].job < 0 || points[i].partner < 0;  // So is one whose family is new.
    const double reach = kNinetyPercent * std::max(WidthOf(points[i]) * scale.deviation * deviation,
                                                   is_new ? kLeastDeviationOfNew : 0.0);
    // No job is faster than alone; and what is no number is no reason to share.
    const auto speed_at = [](double log_slow_down) {
      return std::isnan(log_slow_down) ? kMinSpeedShare : std::exp(-std::max(0.0, log_slow_down));
    };
    speeds.push_back({speed_at(middle), speed_at(middle + reach), speed_at(middle - reach)});
  }
  return speeds;
}

SpeedShare InterferenceModel::Predict(const SharedJob& job, std::span<const SharedJob> partners,
                                      const std::string& gpu_type) const {
  std::vector<PairQuestion> questions;
  for (const SharedJob& partner : partners) questions.push_back({job, partner, gpu_type});
  return CombinePartners(Predict(questions));
}

SpeedShare CombinePartners(std::span<const SpeedShare> beside_each) {
  double slow_down = 1, most = 1, least = 1;
  for (const SpeedShare& share : beside_each) {
    slow_down += 1 / share.speed - 1;
    most += 1 / share.low - 1;
    least += 1 / share.high - 1;
  }
  return {1 / slow_down, 1 / most, 1 / least};
}

}  // namespace grus
