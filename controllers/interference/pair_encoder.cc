// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_encoder.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace grus {
namespace {

// Before anything is measured: mean and deviation over 2,097 co-runs of the public tables in bench/data, on four GPU
// types. They count as so many measurements.
constexpr SlowDownScale kUsual = {0.55, 0.35};
constexpr double kUsualCounts = 3;

using MaybeFeatures = std::array<std::optional<double>, kPairFeatures>;

std::optional<double> Log(const std::optional<double>& value) {
  return value && *value > 0 ? std::optional(std::log(*value)) : std::nullopt;
}

MaybeFeatures FeaturesOf(const SoloFeatures& job, const SoloFeatures& partner) {
  std::optional<double> ratio;
  if (const auto step = Log(job.step_milliseconds), other = Log(partner.step_milliseconds); step && other) {
    ratio = *step - *other;
  }
  return {job.gpu_utilization,
          job.memory_bandwidth,
          Log(job.memory_mebibytes),
          partner.gpu_utilization,
          partner.memory_bandwidth,
          Log(partner.memory_mebibytes),
          ratio};
}

int Find(const std::map<std::string, int, std::less<>>& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? -1 : found->second;
}

SlowDownScale ScaleAround(const std::vector<double>& values, const SlowDownScale& usual) {
  const double count = static_cast<double>(values.size()) + kUsualCounts;
  SlowDownScale scale = {kUsualCounts * usual.mean, kUsualCounts * usual.deviation * usual.deviation};
  for (const double value : values) scale.mean += value;
  scale.mean /= count;
  for (const double value : values) scale.deviation += (value - scale.mean) * (value - scale.mean);
  scale.deviation = std::sqrt(scale.deviation / count);
  return scale;
}

}  // namespace

double LogSlowDown(double speed) { return std::max(0.0, -std::log(speed)); }

PairEncoder::PairEncoder(const std::vector<CoRunSample>& samples) {
  const auto add = [](Names& names, const std::string& name) { names.emplace(name, static_cast<int>(names.size())); };
  for (const CoRunSample& sample : samples) {
    for (const SharedJob* job : {&sample.job, &sample.partner}) {
      if (!job->fingerprint.empty()) add(jobs_, job->fingerprint);
      if (const WorkloadFamily family = FamilyOf(*job); !family.name.empty()) add(families_, family.name);
    }
    add(gpu_types_, sample.gpu_type);
  }
  ScaleFeatures(samples);
  ScaleSlowDowns(samples);
}

void PairEncoder::ScaleFeatures(const std::vector<CoRunSample>& samples) {
  std::array<double, kPairFeatures> count = {}, sum = {}, squares = {};
  for (const CoRunSample& sample : samples) {
    const MaybeFeatures features = FeaturesOf(sample.job.solo, sample.partner.solo);
    for (std::size_t f = 0; f < kPairFeatures; ++f) {
      if (!features[f]) continue;
      count[f] += 1;
      const double off = *features[f] - sum[f];  // Welford's: means stay exact.
      sum[f] += off / count[f];
      squares[f] += off * (*features[f] - sum[f]);
    }
  }
  for (std::size_t f = 0; f < kPairFeatures; ++f) {
    if (count[f] == 0) continue;
    mean_[f] = sum[f];
    const double deviation = std::sqrt(squares[f] / count[f]);
    deviation_[f] = deviation > 1e-9 * (1 + std::abs(mean_[f])) ? deviation : 1;
  }
}

void PairEncoder::ScaleSlowDowns(const std::vector<CoRunSample>& samples) {
  std::vector<double> all;
  std::map<std::string, std::vector<double>> by_type;
  for (const CoRunSample& sample : samples) {
    all.push_back(LogSlowDown(sample.speed));
    by_type[sample.gpu_type].push_back(all.back());
  }
  all_ = ScaleAround(all, kUsual);
  for (const auto& [type, values] : by_type) by_type_.emplace(type, ScaleAround(values, all_));
}

PairPoint PairEncoder::Encode(const SharedJob& job, const SharedJob& partner, const std::string& gpu_type) const {
  PairPoint point;
  const MaybeFeatures features = FeaturesOf(job.solo, partner.solo);
  for (std::size_t f = 0; f < kPairFeatures; ++f) {
    point.is_known[f] = deviation_[f] > 0 && features[f].has_value();
    if (point.is_known[f]) point.features[f] = (*features[f] - mean_[f]) / deviation_[f];
  }
  const WorkloadFamily family = FamilyOf(job), partner_family = FamilyOf(partner);
  point.job = Find(jobs_, job.fingerprint);
  point.partner = Find(jobs_, partner.fingerprint);
  point.job_family = Find(families_, family.name);
  point.partner_family = Find(families_, partner_family.name);
  point.gpu_type = Find(gpu_types_, gpu_type);
  point.job_size = family.batch_size > 0 ? std::log2(family.batch_size) : 0;
  point.partner_size = partner_family.batch_size > 0 ? std::log2(partner_family.batch_size) : 0;
  return point;
}

const SlowDownScale& PairEncoder::ScaleOf(const std::string& gpu_type) const {
  const auto found = by_type_.find(gpu_type);
  return found == by_type_.end() ? all_ : found->second;
}

}  // namespace grus
