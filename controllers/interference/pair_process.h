// SPDX-License-Identifier: Apache-2.0
// A Gaussian process over co-runs (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2.2 and 5.4): what
// is known of some says what to expect of others, and how surely.
//
// The scales of its covariance are the most probable ones given the targets and a wide prior. To learn them costs the
// cube of the points in each of some dozen steps, so many points are cut into blocks. Deterministic; safe from any
// thread.
#pragma once

#include <vector>

#include "controllers/interference/dense_matrix.h"
#include "controllers/interference/pair_kernel.h"

namespace grus {

struct PairTargets {
  std::vector<PairPoint> points = {};
  std::vector<double> targets = {};       // Of mean about 0 and variance about 1.
  std::vector<double> noise_shares = {};  // Of each: 1 for one measurement, less for the mean of several.
};

using PointIndices = std::vector<std::size_t>;

// Disjoint, each of a size that is quickly factored, drawn evenly. Not all points if there are very many.
std::vector<PointIndices> BlocksOf(std::size_t points);

// REQUIRES: there are points.
PairScales LearnScales(const PairTargets& known, const std::vector<PointIndices>& blocks, bool uses_features);
// Where nothing is known.
PairScales PriorScales();

// What a process says of points that it has not seen.
struct PairGuesses {
  std::vector<double> means = {}, deviations = {};  // Deviations with the noise of one measurement.
};

// Of points of a block when a group that holds them is left out, in the order of `groups`. Cheaper than to learn from
// the rest: the scales stay.
PairGuesses LeaveOut(const PairTargets& known, const PointIndices& block, const PairScales& scales,
                     const std::vector<PointIndices>& groups);  // Positions in `block`.

class PairProcess {
 public:
  PairProcess(PairTargets known, const PairScales& scales);

  PairGuesses Guess(const std::vector<PairPoint>& points) const;
  const PairScales& scales() const { return scales_; }

 private:
  std::vector<PairPoint> points_;
  PairScales scales_;
  PairKernel kernel_;
  DenseMatrix factor_;           // Of the covariance of points_.
  std::vector<double> weights_;  // Of the points in the mean: inverse(covariance) * targets.
};

}  // namespace grus
