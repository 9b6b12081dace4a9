// SPDX-License-Identifier: Apache-2.0
// What co-runs say of a named job's features, for those places where they are left out. Immutable, so safe from any
// thread; does not depend on the order of the samples.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controllers/interference/shared_job.h"

namespace grus {

class KnownFeatures {
 public:
  explicit KnownFeatures(const std::vector<CoRunSample>& samples);

  // Gives the job those features that are missing and that co-runs on this GPU type know, as their mean; on any type if
  // `gpu_type` is empty. False: there are none.
  bool Fill(SharedJob& job, const std::string& gpu_type) const;

 private:
  std::map<std::string, SoloFeatures, std::less<>> by_job_;
  std::map<std::pair<std::string, std::string>, SoloFeatures> by_job_and_type_;
};

// Of both jobs of each. How many different jobs were given features.
std::size_t FillFeatures(const KnownFeatures& known, std::vector<CoRunSample>& samples);
std::size_t FillFeatures(const KnownFeatures& known, std::vector<PairQuestion>& questions);

}  // namespace grus
