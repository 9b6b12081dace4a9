// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/known_features.h"

#include <algorithm>
#include <array>
#include <set>

namespace grus {
namespace {

using FeatureValues = std::array<std::vector<double>, kSoloFeatures.size()>;

// Sorted first, so that the order of the samples does not show in the last digits.
SoloFeatures MeansOf(FeatureValues values) {
  SoloFeatures means;
  for (std::size_t f = 0; f < kSoloFeatures.size(); ++f) {
    if (values[f].empty()) continue;
    std::ranges::sort(values[f]);
    double mean = 0, count = 0;
    for (const double value : values[f]) mean += (value - mean) / ++count;  // A sum might overflow.
    means.*kSoloFeatures[f] = mean;
  }
  return means;
}

template <typename Pair>
std::size_t FillAll(const KnownFeatures& known, std::vector<Pair>& pairs) {
  std::set<std::string> filled;
  for (Pair& pair : pairs) {
    for (SharedJob* job : {&pair.job, &pair.partner}) {
      if (known.Fill(*job, pair.gpu_type)) filled.insert(job->fingerprint);
    }
  }
  return filled.size();
}

}  // namespace

KnownFeatures::KnownFeatures(const std::vector<CoRunSample>& samples) {
  std::map<std::string, FeatureValues> by_job;
  std::map<std::pair<std::string, std::string>, FeatureValues> by_job_and_type;
  for (const CoRunSample& sample : samples) {
    for (const SharedJob* job : {&sample.job, &sample.partner}) {
      if (job->fingerprint.empty() || job->solo == SoloFeatures{}) continue;
      FeatureValues& all = by_job[job->fingerprint];
      FeatureValues& of_type = by_job_and_type[{job->fingerprint, sample.gpu_type}];
      for (std::size_t f = 0; f < kSoloFeatures.size(); ++f) {
        const std::optional<double>& value = job->solo.*kSoloFeatures[f];
        if (!value) continue;
        all[f].push_back(*value);
        of_type[f].push_back(*value);
      }
    }
  }
  for (auto& [job, values] : by_job) by_job_.emplace(job, MeansOf(std::move(values)));
  for (auto& [key, values] : by_job_and_type) by_job_and_type_.emplace(key, MeansOf(std::move(values)));
}

bool KnownFeatures::Fill(SharedJob& job, const std::string& gpu_type) const {
  const SoloFeatures* known = nullptr;
  if (gpu_type.empty()) {
    if (const auto found = by_job_.find(job.fingerprint); found != by_job_.end()) known = &found->second;
  } else if (const auto found = by_job_and_type_.find({job.fingerprint, gpu_type}); found != by_job_and_type_.end()) {
    known = &found->second;
  }
  if (known == nullptr) return false;
  bool is_filled = false;
  for (const auto feature : kSoloFeatures) {
    if (job.solo.*feature || !(known->*feature)) continue;
    job.solo.*feature = known->*feature;
    is_filled = true;
  }
  return is_filled;
}

std::size_t FillFeatures(const KnownFeatures& known, std::vector<CoRunSample>& samples) {
  return FillAll(known, samples);
}

std::size_t FillFeatures(const KnownFeatures& known, std::vector<PairQuestion>& questions) {
  return FillAll(known, questions);
}

}  // namespace grus
