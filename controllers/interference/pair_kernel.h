// SPDX-License-Identifier: Apache-2.0
// How alike two co-runs are: the covariance of their slow-downs.
//
// It is a sum of parts, each of them something that two co-runs may share: features of both jobs that are close; jobs
// of one family whose batch sizes are close, as the job, as the partner, or as both; the same job, the same partner,
// the same pair. How much each part counts is learned (pair_process.h). Co-runs on different GPU types share only a
// part of all this, which is learned as well.
#pragma once

#include <array>
#include <cstddef>

namespace grus {

// Of both jobs the utilisation, the bandwidth and the logarithm of the memory; and of their step times the logarithm of
// the ratio: a slow-down has no unit, so it cannot depend on a time itself.
inline constexpr std::size_t kPairFeatures = 7;

// A co-run, as numbers. Names are indices; a negative one is like no other, itself included.
struct PairPoint {
  // In standard deviations from the mean over the co-runs; 0 where not known.
  std::array<double, kPairFeatures> features = {};
  std::array<bool, kPairFeatures> is_known = {};
  int job = -1, partner = -1;
  int job_family = -1, partner_family = -1;
  int gpu_type = -1;
  double job_size = 0, partner_size = 0;  // Logarithms, base 2, of the batch sizes.
};

// Parameters of the covariance, all as logarithms, but kSharedByTypes.
enum PairScale : std::size_t {
  kFeaturePart,  // Variances.
  kJobFamilyPart,
  kPartnerFamilyPart,
  kBothFamiliesPart,
  kJobPart,
  kPartnerPart,
  kPairPart,
  kNoise,
  kSharedByTypes,   // The logit of the share that GPU types have in common.
  kSizeLength,      // How many doublings of the batch size make two jobs of a family unlike.
  kFeatureLengths,  // Of each feature.
};
inline constexpr std::size_t kPairScales = kFeatureLengths + kPairFeatures;
using PairScales = std::array<double, kPairScales>;

class PairKernel {
 public:
  explicit PairKernel(const PairScales& scales);

  double Covariance(const PairPoint& a, const PairPoint& b) const;  // Without noise.
  // The most that Covariance() is: of a co-run with itself.
  double prior_variance() const { return prior_variance_; }
  // Adds `weight` times the derivative of Covariance() by each of the scales.
  void AddGradient(const PairPoint& a, const PairPoint& b, double weight, PairScales& gradient) const;

 private:
  struct Parts;
  Parts PartsOf(const PairPoint& a, const PairPoint& b) const;

  std::array<double, kPairPart + 1> variance_ = {};
  std::array<double, kPairFeatures> per_squared_length_ = {};
  double per_size_length_ = 0, shared_ = 0, prior_variance_ = 0;
};

}  // namespace grus
