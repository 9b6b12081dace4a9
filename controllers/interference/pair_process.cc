// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_process.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <random>

namespace grus {
namespace {

constexpr std::size_t kBlock = 256, kMaxBlocks = 2;
constexpr double kOff = -13;  // The logarithm of a variance that counts for nothing.
constexpr double kLowest = -13, kHighest = 10;

// Of logarithms: normal. Wide on purpose: a factor of e^2 either way is within one deviation for most variances, which
// are shares of the targets' variance (1). Features are believed to matter over about three standard deviations.
struct ScalePrior {
  double mean, deviation, start;
};
ScalePrior PriorOf(std::size_t scale) {
  switch (scale) {
    case kFeaturePart: return {-1, 2, std::log(0.5)};
    case kJobFamilyPart:
    case kPartnerFamilyPart: return {-2, 2, std::log(0.2)};
    case kBothFamiliesPart: return {-2, 2, std::log(0.1)};
    case kJobPart:
    case kPartnerPart: return {-4, 2, std::log(0.05)};
    case kPairPart: return {-4, 2, std::log(0.02)};
    case kNoise: return {-3, 1.5, std::log(0.05)};
    case kSharedByTypes: return {0.5, 1.5, 0};
    case kSizeLength: return {std::log(3), 1, std::log(2)};
    default: return {1, 1, std::log(2)};
  }
}

// Which scales the targets can say anything about.
std::array<bool, kPairScales> Learnable(const PairTargets& known, bool uses_features) {
  std::array<bool, kPairScales> learnable;
  learnable.fill(true);
  const PairPoint& first = known.points.front();
  const auto has_one_type = [&](const PairPoint& p) { return p.gpu_type == first.gpu_type; };
  if (std::ranges::all_of(known.points, has_one_type)) learnable[kSharedByTypes] = false;
  bool has_features = false;
  for (std::size_t f = 0; f < kPairFeatures; ++f) {
    const auto is_same = [&](const PairPoint& p) {
      return p.features[f] == first.features[f] && p.is_known[f] == first.is_known[f];
    };
    const bool varies = uses_features && !std::ranges::all_of(known.points, is_same);
    learnable[kFeatureLengths + f] = varies;
    has_features = has_features || varies;
  }
  learnable[kFeaturePart] = has_features;
  return learnable;
}

double NoiseOf(const PairScales& scales) { return std::exp(scales[kNoise]); }

DenseMatrix CovarianceOf(const PairTargets& known, const PointIndices& block, const PairScales& scales) {
  const PairKernel kernel(scales);
  DenseMatrix covariance(block.size(), block.size());
  for (std::size_t i = 0; i < block.size(); ++i) {
    for (std::size_t j = i; j < block.size(); ++j) {
      covariance.at(i, j) = kernel.Covariance(known.points[block[i]], known.points[block[j]]);
    }
    covariance.at(i, i) += NoiseOf(scales) * known.noise_shares[block[i]];
  }
  return covariance;
}

// A covariance has at least its noise on the diagonal, so it is positive definite but for rounding.
DenseMatrix FactorOf(const DenseMatrix& covariance) {
  DenseMatrix factor = covariance;
  for (double more = 1e-9; !Factor(factor); more *= 100) {
    assert(more < 1e6 && "a covariance is finite");
    factor = covariance;
    for (std::size_t i = 0; i < factor.rows; ++i) factor.at(i, i) += more;
  }
  return factor;
}

std::vector<double> TargetsOf(const PairTargets& known, const PointIndices& block) {
  std::vector<double> targets;
  for (const std::size_t i : block) targets.push_back(known.targets[i]);
  return targets;
}

std::vector<double> Times(const DenseMatrix& symmetric, const std::vector<double>& vector) {
  std::vector<double> product(vector.size());
  for (std::size_t i = 0; i < vector.size(); ++i) {
    product[i] = std::inner_product(vector.begin(), vector.end(), symmetric.row(i), 0.0);
  }
  return product;
}

// Of the negative logarithm of the probability of the block's targets, which is returned.
double AddBlock(const PairTargets& known, const PointIndices& block, const PairScales& scales, PairScales& gradient) {
  const PairKernel kernel(scales);
  const DenseMatrix factor = FactorOf(CovarianceOf(known, block, scales));
  const DenseMatrix inverse = Inverse(factor);
  const std::vector<double> targets = TargetsOf(known, block);
  const std::vector<double> weights = Times(inverse, targets);
  double value = std::inner_product(weights.begin(), weights.end(), targets.begin(), 0.0) / 2;
  for (std::size_t i = 0; i < block.size(); ++i) {
    value += std::log(factor.at(i, i));
    const PairPoint& point = known.points[block[i]];
    for (std::size_t j = i; j < block.size(); ++j) {
      const double slope = inverse.at(i, j) - weights[i] * weights[j];  // (5.9) of the book, both triangles.
      kernel.AddGradient(point, known.points[block[j]], i == j ? slope / 2 : slope, gradient);
    }
    const double slope = (inverse.at(i, i) - weights[i] * weights[i]) / 2;
    gradient[kNoise] += slope * NoiseOf(scales) * known.noise_shares[block[i]];
  }
  return value;
}

// A search for the most probable scales.
struct Search {
  PairScales best = {};
  double least = INFINITY;  // The negative logarithm of the probability of `best`.
};

// Rprop with the sign's change taken back (Igel and Huesken 2000, iRprop-): no line search, no scale of the gradient.
Search Descend(const PairTargets& known, const std::vector<PointIndices>& blocks,
               const std::array<bool, kPairScales>& learnable, const PairScales& start, int max_steps) {
  constexpr int kMinSteps = 10;
  constexpr double kFirstStep = 0.2, kLongestStep = 1, kShortestStep = 0.02;
  Search search = {start, INFINITY};
  PairScales scales = start, step, last = {};
  step.fill(kFirstStep);
  for (int i = 0; i < max_steps; ++i) {
    PairScales gradient = {};
    double value = 0;
    for (const PointIndices& block : blocks) value += AddBlock(known, block, scales, gradient);
    for (std::size_t s = 0; s < kPairScales; ++s) {
      const ScalePrior prior = PriorOf(s);
      const double off = (scales[s] - prior.mean) / prior.deviation;
      value += learnable[s] ? off * off / 2 : 0;
      gradient[s] = learnable[s] ? gradient[s] + off / prior.deviation : 0;
    }
    if (value < search.least) {
      search.least = value;
      search.best = scales;
    }
    double longest = 0;
    for (std::size_t s = 0; s < kPairScales; ++s) {
      const double turn = gradient[s] * last[s];
      if (turn > 0) step[s] = std::min(step[s] * 1.3, kLongestStep);
      if (turn < 0) step[s] *= 0.5;
      last[s] = turn < 0 ? 0 : gradient[s];
      if (last[s] == 0) continue;
      longest = std::max(longest, step[s]);
      scales[s] = std::clamp(scales[s] - std::copysign(step[s], last[s]), kLowest, kHighest);
    }
    if (longest < kShortestStep && i >= kMinSteps) break;
  }
  return search;
}

}  // namespace

std::vector<PointIndices> BlocksOf(std::size_t points) {
  PointIndices order(points);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  for (std::size_t i = points; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  const std::size_t blocks = std::clamp<std::size_t>((points + kBlock - 1) / kBlock, 1, kMaxBlocks);
  std::vector<PointIndices> cut(blocks);
  for (std::size_t i = 0; i < std::min(points, kMaxBlocks * kBlock); ++i) cut[i % blocks].push_back(order[i]);
  return cut;
}

PairScales PriorScales() {
  PairScales scales;
  for (std::size_t s = 0; s < kPairScales; ++s) scales[s] = PriorOf(s).start;
  scales[kSharedByTypes] = PriorOf(kSharedByTypes).mean;
  return scales;
}

// There may be several peaks: a feature that matters over short distances, or over long ones. A few steps on a part
// of a block from each start tell which is the highest.
PairScales LearnScales(const PairTargets& known, const std::vector<PointIndices>& blocks, bool uses_features) {
  constexpr int kFirstSteps = 20, kMaxSteps = 60;
  constexpr double kShortLength = 0.5;
  constexpr std::size_t kFirstPoints = 128;
  const std::array<bool, kPairScales> learnable = Learnable(known, uses_features);
  PairScales usual = PriorScales();
  if (!learnable[kFeaturePart]) usual[kFeaturePart] = kOff;
  const PointIndices& block = blocks.front();
  const auto end = block.begin() + static_cast<std::ptrdiff_t>(std::min(block.size(), kFirstPoints));
  const std::vector<PointIndices> part = {PointIndices(block.begin(), end)};
  Search best = Descend(known, part, learnable, usual, kFirstSteps);
  for (std::size_t s = kFeatureLengths; s < kPairScales; ++s) {
    if (!learnable[s]) continue;
    PairScales start = usual;
    start[s] = std::log(kShortLength);
    const Search search = Descend(known, part, learnable, start, kFirstSteps);
    if (search.least < best.least) best = search;
  }
  return Descend(known, blocks, learnable, best.best, kMaxSteps).best;
}

// Of a group G, with C the inverse of the covariance and w = C * targets: the inverse of C(G, G) is the covariance of
// what the others leave open, and inverse(C(G, G)) * w(G) what the targets differ from the others' guess (5.12).
PairGuesses LeaveOut(const PairTargets& known, const PointIndices& block, const PairScales& scales,
                     const std::vector<PointIndices>& groups) {
  const DenseMatrix inverse = Inverse(FactorOf(CovarianceOf(known, block, scales)));
  const std::vector<double> weights = Times(inverse, TargetsOf(known, block));
  PairGuesses guesses;
  for (const PointIndices& group : groups) {
    DenseMatrix part(group.size(), group.size());
    std::vector<double> part_weights;
    for (std::size_t i = 0; i < group.size(); ++i) {
      part_weights.push_back(weights[group[i]]);
      for (std::size_t j = 0; j < group.size(); ++j) part.at(i, j) = inverse.at(group[i], group[j]);
    }
    const DenseMatrix left_open = Inverse(FactorOf(part));
    const std::vector<double> errors = Times(left_open, part_weights);
    for (std::size_t i = 0; i < group.size(); ++i) {
      guesses.means.push_back(known.targets[block[group[i]]] - errors[i]);
      guesses.deviations.push_back(std::sqrt(left_open.at(i, i)));
    }
  }
  return guesses;
}

PairProcess::PairProcess(PairTargets known, const PairScales& scales) : scales_(scales), kernel_(scales) {
  PointIndices all(known.points.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  factor_ = FactorOf(CovarianceOf(known, all, scales));
  DenseMatrix solution(all.size(), 1);
  solution.values = known.targets;
  SolveTransposed(factor_, solution);
  SolveUpper(factor_, solution);
  weights_ = std::move(solution.values);
  points_ = std::move(known.points);
}

PairGuesses PairProcess::Guess(const std::vector<PairPoint>& points) const {
  constexpr std::size_t kAtOnce = 64;  // Each row of the factor is read once for so many points.
  PairGuesses guesses;
  for (std::size_t first = 0; first < points.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, points.size() - first);
    DenseMatrix covariance(points_.size(), count);
    std::vector<double> means(count), variances(count, kernel_.prior_variance() + NoiseOf(scales_));
    for (std::size_t i = 0; i < points_.size(); ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        covariance.at(i, j) = kernel_.Covariance(points_[i], points[first + j]);
        means[j] += covariance.at(i, j) * weights_[i];
      }
    }
    SolveTransposed(factor_, covariance);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      for (std::size_t j = 0; j < count; ++j) variances[j] -= covariance.at(i, j) * covariance.at(i, j);
    }
    for (std::size_t j = 0; j < count; ++j) {
      guesses.means.push_back(means[j]);
      guesses.deviations.push_back(std::sqrt(std::max(variances[j], NoiseOf(scales_) / 2)));
    }
  }
  return guesses;
}

}  // namespace grus
