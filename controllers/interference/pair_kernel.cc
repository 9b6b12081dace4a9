// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_kernel.h"

#include <cmath>

namespace grus {
namespace {

bool IsSame(int a, int b) { return a >= 0 && a == b; }

// In squared standard deviations. Unknown is as far from every value as the mean is, and one more: an embedding, so
// that the covariance stays positive.
double SquaredDistance(const PairPoint& a, const PairPoint& b, std::size_t feature) {
  const double difference = a.features[feature] - b.features[feature];
  return difference * difference + (a.is_known[feature] != b.is_known[feature] ? 1 : 0);
}

}  // namespace

// Each with its variance, for co-runs on one GPU type.
struct PairKernel::Parts {
  double features = 0;
  double job_family = 0, partner_family = 0, both_families = 0;
  double job = 0, partner = 0, pair = 0;
  double job_distance = 0, partner_distance = 0;  // In lengths of batch size.
  double sum() const { return features + job_family + partner_family + both_families + job + partner + pair; }
};

PairKernel::PairKernel(const PairScales& scales) {
  for (std::size_t part = 0; part < variance_.size(); ++part) {
    variance_[part] = std::exp(scales[part]);
    prior_variance_ += variance_[part];
  }
  for (std::size_t f = 0; f < kPairFeatures; ++f) {
    per_squared_length_[f] = std::exp(-2 * scales[kFeatureLengths + f]);
  }
  per_size_length_ = std::exp(-scales[kSizeLength]);
  shared_ = 1 / (1 + std::exp(-scales[kSharedByTypes]));
}

PairKernel::Parts PairKernel::PartsOf(const PairPoint& a, const PairPoint& b) const {
  Parts parts;
  double distance = 0;
  for (std::size_t f = 0; f < kPairFeatures; ++f) distance += SquaredDistance(a, b, f) * per_squared_length_[f];
  parts.features = variance_[kFeaturePart] * std::exp(-distance / 2);
  const bool same_family = IsSame(a.job_family, b.job_family);
  const bool same_partner_family = IsSame(a.partner_family, b.partner_family);
  parts.job_distance = std::abs(a.job_size - b.job_size) * per_size_length_;
  parts.partner_distance = std::abs(a.partner_size - b.partner_size) * per_size_length_;
  const double job_likeness = same_family ? std::exp(-parts.job_distance) : 0;
  const double partner_likeness = same_partner_family ? std::exp(-parts.partner_distance) : 0;
  parts.job_family = variance_[kJobFamilyPart] * job_likeness;
  parts.partner_family = variance_[kPartnerFamilyPart] * partner_likeness;
  parts.both_families = variance_[kBothFamiliesPart] * job_likeness * partner_likeness;
  const bool same_job = IsSame(a.job, b.job), same_partner = IsSame(a.partner, b.partner);
  if (same_job) parts.job = variance_[kJobPart];
  if (same_partner) parts.partner = variance_[kPartnerPart];
  if (same_job && same_partner) parts.pair = variance_[kPairPart];
  return parts;
}

double PairKernel::Covariance(const PairPoint& a, const PairPoint& b) const {
  return (IsSame(a.gpu_type, b.gpu_type) ? 1 : shared_) * PartsOf(a, b).sum();
}

void PairKernel::AddGradient(const PairPoint& a, const PairPoint& b, double weight, PairScales& gradient) const {
  const Parts parts = PartsOf(a, b);
  if (!IsSame(a.gpu_type, b.gpu_type)) {
    gradient[kSharedByTypes] += weight * shared_ * (1 - shared_) * parts.sum();
    weight *= shared_;
  }
  gradient[kFeaturePart] += weight * parts.features;
  gradient[kJobFamilyPart] += weight * parts.job_family;
  gradient[kPartnerFamilyPart] += weight * parts.partner_family;
  gradient[kBothFamiliesPart] += weight * parts.both_families;
  gradient[kJobPart] += weight * parts.job;
  gradient[kPartnerPart] += weight * parts.partner;
  gradient[kPairPart] += weight * parts.pair;
  gradient[kSizeLength] += weight * ((parts.job_family + parts.both_families) * parts.job_distance +
                                     (parts.partner_family + parts.both_families) * parts.partner_distance);
  for (std::size_t f = 0; f < kPairFeatures; ++f) {
    gradient[kFeatureLengths + f] += weight * parts.features * SquaredDistance(a, b, f) * per_squared_length_[f];
  }
}

}  // namespace grus
