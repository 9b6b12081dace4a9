// SPDX-License-Identifier: Apache-2.0
// From co-runs to points and targets of a PairProcess, and back: names become indices, features and slow-downs are
// counted in standard deviations from their mean. Immutable, so safe from any thread.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "controllers/interference/pair_kernel.h"
#include "controllers/interference/shared_job.h"

namespace grus {

// Of the logarithm of slow-downs (1 / speed).
struct SlowDownScale {
  double mean, deviation;
};

class PairEncoder {
 public:
  explicit PairEncoder(const std::vector<CoRunSample>& samples);

  PairPoint Encode(const SharedJob& job, const SharedJob& partner, const std::string& gpu_type) const;
  // That of all types together where no sample is of this one.
  const SlowDownScale& ScaleOf(const std::string& gpu_type) const;
  std::size_t families() const { return families_.size(); }

 private:
  using Names = std::map<std::string, int, std::less<>>;
  void ScaleFeatures(const std::vector<CoRunSample>& samples);
  void ScaleSlowDowns(const std::vector<CoRunSample>& samples);

  Names jobs_, families_, gpu_types_;
  std::array<double, kPairFeatures> mean_ = {}, deviation_ = {};  // A deviation of 0: never known.
  SlowDownScale all_ = {};
  std::map<std::string, SlowDownScale, std::less<>> by_type_;
};

// 0 for speeds that are above solo by noise.
double LogSlowDown(double speed);

}  // namespace grus
