// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

namespace grus {
namespace {

// y = a + b x at x = 0, 1, 2 with deviation 0.1.
Residuals Line(const std::vector<double>& p) {
  constexpr double kY[] = {1.0, 3.0, 5.0};
  Residuals residuals;
  for (int x = 0; x < 3; ++x) {
    residuals.values.push_back((p[0] + p[1] * x - kY[x]) / 0.1);
    residuals.jacobian.insert(residuals.jacobian.end(), {1 / 0.1, x / 0.1});
  }
  return residuals;
}

TEST(LeastSquares, FindsTheLineThroughPoints) {
  const LeastSquaresSolution solution = SolveLeastSquares(Line, {{0, 0}, {100, 100}}, {0, 0});
  EXPECT_NEAR(solution.parameters[0], 1, 1e-4);
  EXPECT_NEAR(solution.parameters[1], 2, 1e-4);
  EXPECT_NEAR(solution.covariance[0], 0.01 * 5 / 6, 1e-6);  // Textbook: sigma^2 sum x^2 / (n sum x^2 - (sum x)^2).
  EXPECT_NEAR(solution.covariance[3], 0.01 * 3 / 6, 1e-6);
  EXPECT_NEAR(solution.leverage[0] + solution.leverage[1] + solution.leverage[2], 2, 1e-4);
}

TEST(LeastSquares, WhatTheDataLeaveOpenStaysAsThePriorSays) {
  const auto first_only = [](const std::vector<double>& p) { return Residuals{{(p[0] - 4) / 0.1}, {1 / 0.1, 0}}; };
  const LeastSquaresSolution solution = SolveLeastSquares(first_only, {{0, 7}, {100, 3}}, {0, 7});
  EXPECT_NEAR(solution.parameters[0], 4, 1e-4);
  EXPECT_DOUBLE_EQ(solution.parameters[1], 7);
  EXPECT_NEAR(solution.covariance[3], 9, 1e-9);
}

TEST(LeastSquares, SolvesBentProblems) {
  const auto exponential = [](const std::vector<double>& p) {
    return Residuals{{(std::exp(p[0]) - 1000) / 1e-3}, {std::exp(p[0]) / 1e-3}};
  };
  EXPECT_NEAR(SolveLeastSquares(exponential, {{0}, {100}}, {0}).parameters[0], std::log(1000), 1e-6);
}

TEST(LeastSquares, VarianceAlongAGradient) { EXPECT_DOUBLE_EQ(VarianceAlong({4, 1, 1, 9}, {1, -1}), 4 + 9 - 2); }

}  // namespace
}  // namespace grus
