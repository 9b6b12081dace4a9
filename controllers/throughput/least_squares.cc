// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/least_squares.h"

#include <algorithm>
#include <cmath>

namespace grus {
namespace {

constexpr int kMaxSteps = 30;
constexpr int kMaxDampings = 8;
constexpr double kLongestMove = 2;      // Of one parameter in one step; they are logarithms.
constexpr double kSmallestGain = 1e-7;  // A step that gains less than this share of the cost is the last.

double CostOf(const Residuals& residuals, const NormalPrior& prior, const std::vector<double>& at) {
  double cost = 0;
  for (const double r : residuals.values) cost += r * r;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double off = (at[i] - prior.mean[i]) / prior.deviation[i];
    cost += off * off;
  }
  return cost;
}

// J'J plus the precision of the prior.
std::vector<double> PrecisionOf(const Residuals& residuals, const NormalPrior& prior) {
  const std::size_t n = prior.mean.size();
  std::vector<double> precision(n * n, 0);
  for (std::size_t row = 0; row < residuals.values.size(); ++row) {
    const double* j = &residuals.jacobian[row * n];
    for (std::size_t a = 0; a < n; ++a) {
      if (j[a] == 0) continue;
      for (std::size_t b = 0; b <= a; ++b) precision[a * n + b] += j[a] * j[b];
    }
  }
  for (std::size_t a = 0; a < n; ++a) {
    precision[a * n + a] += 1 / (prior.deviation[a] * prior.deviation[a]);
    for (std::size_t b = 0; b < a; ++b) precision[b * n + a] = precision[a * n + b];
  }
  return precision;
}

// Half of the cost's gradient.
std::vector<double> GradientOf(const Residuals& residuals, const NormalPrior& prior, const std::vector<double>& at) {
  const std::size_t n = at.size();
  std::vector<double> gradient(n);
  for (std::size_t a = 0; a < n; ++a) {
    gradient[a] = (at[a] - prior.mean[a]) / (prior.deviation[a] * prior.deviation[a]);
  }
  for (std::size_t row = 0; row < residuals.values.size(); ++row) {
    for (std::size_t a = 0; a < n; ++a) gradient[a] += residuals.jacobian[row * n + a] * residuals.values[row];
  }
  return gradient;
}

// Lower Cholesky factor of a positive definite matrix; the prior makes ours so.
std::vector<double> CholeskyOf(std::vector<double> m, std::size_t n) {
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = m[a * n + b];
      for (std::size_t k = 0; k < b; ++k) sum -= m[a * n + k] * m[b * n + k];
      m[a * n + b] = a == b ? std::sqrt(std::max(sum, 1e-300)) : sum / m[b * n + b];
    }
  }
  return m;
}

std::vector<double> SolveWith(const std::vector<double>& factor, std::vector<double> x) {
  const std::size_t n = x.size();
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t k = 0; k < a; ++k) x[a] -= factor[a * n + k] * x[k];
    x[a] /= factor[a * n + a];
  }
  for (std::size_t a = n; a-- > 0;) {
    for (std::size_t k = a + 1; k < n; ++k) x[a] -= factor[k * n + a] * x[k];
    x[a] /= factor[a * n + a];
  }
  return x;
}

std::vector<double> InverseOf(const std::vector<double>& matrix, std::size_t n) {
  const std::vector<double> factor = CholeskyOf(matrix, n);
  std::vector<double> inverse(n * n);
  for (std::size_t a = 0; a < n; ++a) {
    std::vector<double> unit(n, 0);
    unit[a] = 1;
    const std::vector<double> column = SolveWith(factor, std::move(unit));
    std::copy(column.begin(), column.end(), inverse.begin() + static_cast<std::ptrdiff_t>(a * n));
  }
  return inverse;
}

}  // namespace

LeastSquaresSolution SolveLeastSquares(const std::function<Residuals(const std::vector<double>&)>& residuals_of,
                                       const NormalPrior& prior, std::vector<double> start) {
  const std::size_t n = start.size();
  std::vector<double> at = std::move(start);
  Residuals residuals = residuals_of(at);
  double cost = CostOf(residuals, prior, at);
  double damping = 1e-2;
  bool is_done = false;
  for (int step = 0; step < kMaxSteps && !is_done; ++step) {
    const std::vector<double> precision = PrecisionOf(residuals, prior);
    const std::vector<double> gradient = GradientOf(residuals, prior, at);
    is_done = true;  // Unless a move is found.
    for (int tries = 0; tries < kMaxDampings; ++tries, damping *= 5) {
      std::vector<double> damped = precision;
      for (std::size_t a = 0; a < n; ++a) damped[a * n + a] *= 1 + damping;
      const std::vector<double> move = SolveWith(CholeskyOf(std::move(damped), n), gradient);
      std::vector<double> next = at;
      for (std::size_t a = 0; a < n; ++a) next[a] -= std::clamp(move[a], -kLongestMove, kLongestMove);
      Residuals next_residuals = residuals_of(next);
      const double next_cost = CostOf(next_residuals, prior, next);
      if (!(next_cost < cost)) continue;
      is_done = cost - next_cost < kSmallestGain * cost;
      at = std::move(next);
      residuals = std::move(next_residuals);
      cost = next_cost;
      damping = std::max(damping / 5, 1e-8);
      break;
    }
  }

  LeastSquaresSolution solution;
  solution.covariance = InverseOf(PrecisionOf(residuals, prior), n);
  for (std::size_t row = 0; row < residuals.values.size(); ++row) {
    const auto first = residuals.jacobian.begin() + static_cast<std::ptrdiff_t>(row * n);
    const std::vector<double> gradient(first, first + static_cast<std::ptrdiff_t>(n));
    solution.leverage.push_back(VarianceAlong(solution.covariance, gradient));
  }
  solution.parameters = std::move(at);
  solution.residuals = std::move(residuals);
  return solution;
}

double VarianceAlong(const std::vector<double>& covariance, const std::vector<double>& gradient) {
  const std::size_t n = gradient.size();
  double variance = 0;
  for (std::size_t a = 0; a < n; ++a) {
    if (gradient[a] == 0) continue;
    for (std::size_t b = 0; b < n; ++b) variance += gradient[a] * covariance[a * n + b] * gradient[b];
  }
  return variance;
}

}  // namespace grus
