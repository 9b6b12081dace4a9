// SPDX-License-Identifier: Apache-2.0
// How much jobs slow each other down that share one GPU: learned from co-runs, told for pairs that never ran together.
//
// A slow-down is 1 / speed. Its logarithm is a Gaussian process over pairs (pair_kernel.h): features say what to expect
// of jobs that nobody has seen, names and batch sizes what their family does, and co-runs of a job correct both. Two
// such processes, with features and without, are weighted by how well each tells the co-runs of a family from those of
// the others, so that features that say nothing do no harm. The same check sets how wide intervals are. Where nothing
// is known, the answer is what is usual, with a wide interval.
//
// Pure, deterministic whatever the order of the samples, and immutable once made: safe from any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/interference/interference_parameters.h"
#include "controllers/interference/known_features.h"
#include "controllers/interference/pair_encoder.h"
#include "controllers/interference/pair_process.h"
#include "controllers/interference/shared_job.h"

namespace grus {

class InterferenceModel {
 public:
  // Knows nothing.
  InterferenceModel() : InterferenceModel({}, {}) {}
  // Error kInvalidArgument: a speed or a feature cannot have been measured. Takes seconds for thousands of samples.
  static kube::Result<InterferenceModel> Fit(std::vector<CoRunSample> samples);
  // What Fit() made before. REQUIRES: samples() and parameters() of a model.
  InterferenceModel(std::vector<CoRunSample> samples, const InterferenceParameters& parameters);

  // Several at once are cheaper than one after the other. Features that are missing are those of the samples, if they
  // have the same job; so are those that cannot have been measured.
  std::vector<SpeedShare> Predict(const std::vector<PairQuestion>& questions) const;
  // With all of `partners` on the GPU; alone, a job has its solo speed. Each partner takes as much time of a step as it
  // does alone beside the job. More partners never make it faster.
  SpeedShare Predict(const SharedJob& job, std::span<const SharedJob> partners, const std::string& gpu_type) const;

  const std::vector<CoRunSample>& samples() const { return samples_; }  // Merged and sorted.
  const KnownFeatures& known_features() const { return known_features_; }
  const InterferenceParameters& parameters() const { return parameters_; }

 private:
  double WidthOf(const PairPoint& point) const;

  std::vector<CoRunSample> samples_;
  InterferenceParameters parameters_;
  KnownFeatures known_features_;
  PairEncoder encoder_;
  std::optional<PairProcess> with_features_, without_features_;  // Empty if their weight is 0.
};

// The speed beside several partners, from that beside each.
SpeedShare CombinePartners(std::span<const SpeedShare> beside_each);

}  // namespace grus
