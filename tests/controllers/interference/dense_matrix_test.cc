// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/dense_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace grus {
namespace {

// B'B and some on the diagonal is positive definite.
DenseMatrix RandomPositive(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  DenseMatrix b(n, n), a(n, n);
  for (double& value : b.values) value = uniform(random);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) a.at(i, j) += b.at(k, i) * b.at(k, j);
    }
    a.at(i, i) += 0.1;
  }
  return a;
}

// Sizes around those in which rows are worked on together, and beyond a tile.
TEST(DenseMatrix, FactorsAndInverts) {
  for (const std::size_t n : {1u, 2u, 3u, 4u, 5u, 8u, 37u, 530u}) {
    const DenseMatrix a = RandomPositive(n, 7);
    DenseMatrix u = a;
    ASSERT_TRUE(Factor(u)) << n;
    const DenseMatrix inverse = Inverse(u);
    double worst = 0;
    for (std::size_t i = 0; i < n; i += (n > 100 ? 53 : 1)) {
      for (std::size_t j = 0; j < n; ++j) {
        double product = 0;
        for (std::size_t k = 0; k < n; ++k) product += a.at(i, k) * inverse.at(k, j);
        worst = std::max(worst, std::abs(product - (i == j ? 1 : 0)));
      }
    }
    EXPECT_LT(worst, 1e-8) << n;
  }
}

TEST(DenseMatrix, SolvesColumns) {
  const DenseMatrix a = RandomPositive(6, 3);
  DenseMatrix x(6, 2);
  for (std::size_t i = 0; i < 6; ++i) {
    x.at(i, 0) = static_cast<double>(i) - 2;
    x.at(i, 1) = 1;
  }
  DenseMatrix b(6, 2);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      for (std::size_t k = 0; k < 6; ++k) b.at(i, j) += a.at(i, k) * x.at(k, j);
    }
  }
  DenseMatrix u = a;
  ASSERT_TRUE(Factor(u));
  SolveTransposed(u, b);
  SolveUpper(u, b);
  for (std::size_t i = 0; i < b.values.size(); ++i) EXPECT_NEAR(b.values[i], x.values[i], 1e-9);
}

TEST(DenseMatrix, RefusesWhatIsNotPositive) {
  DenseMatrix a(2, 2);
  a.at(0, 0) = a.at(1, 1) = 1;
  a.at(0, 1) = a.at(1, 0) = 2;
  EXPECT_FALSE(Factor(a));
  DenseMatrix nothing(1, 1);
  nothing.at(0, 0) = NAN;
  EXPECT_FALSE(Factor(nothing));
}

}  // namespace
}  // namespace grus
