// SPDX-License-Identifier: Apache-2.0
// Non-linear least squares with a normal prior on each parameter: the most probable parameters and their covariance.
//
// Levenberg-Marquardt (Nocedal and Wright, Numerical Optimization, 10.3) on the residuals and the prior together. The
// prior makes every problem well posed: with fewer residuals than parameters, what the data leave open stays as wide as
// the prior. Pure and deterministic; ends after a fixed number of steps at the latest.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace grus {

struct Residuals {
  std::vector<double> values;    // In units of their standard deviation.
  std::vector<double> jacobian;  // d value / d parameter, one row for each value.
};

struct NormalPrior {
  std::vector<double> mean, deviation;  // One for each parameter; deviation > 0.
};

struct LeastSquaresSolution {
  std::vector<double> parameters;
  std::vector<double> covariance;  // Of the parameters, row by row (Laplace's approximation).
  std::vector<double> leverage;    // For each residual, how much the fit follows its datum: 0 not at all, 1 fully.
  Residuals residuals;             // At the solution.
};

LeastSquaresSolution SolveLeastSquares(const std::function<Residuals(const std::vector<double>&)>& residuals_of,
                                       const NormalPrior& prior, std::vector<double> start);

// Variance of a quantity whose gradient is `gradient`.
double VarianceAlong(const std::vector<double>& covariance, const std::vector<double>& gradient);

}  // namespace grus
