// SPDX-License-Identifier: Apache-2.0
// The linear algebra of a Gaussian process: dense symmetric matrices, factored by Cholesky. Pure values.
#pragma once

#include <cstddef>
#include <vector>

namespace grus {

// Row by row.
struct DenseMatrix {
  DenseMatrix() = default;
  DenseMatrix(std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count) {}

  double* row(std::size_t i) { return values.data() + i * columns; }
  const double* row(std::size_t i) const { return values.data() + i * columns; }
  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }

  std::size_t rows = 0, columns = 0;
  std::vector<double> values = {};
};

// Replaces a symmetric matrix A, of which only the upper triangle is read, by U with U'U = A; the lower triangle
// becomes U', so that both can be read by rows. False: A is not positive definite.
bool Factor(DenseMatrix& a);

// Replaces the columns of `b` by those of inverse(U') b, and of inverse(U) b.
void SolveTransposed(const DenseMatrix& u, DenseMatrix& b);
void SolveUpper(const DenseMatrix& u, DenseMatrix& b);

// Of A, from its U.
DenseMatrix Inverse(const DenseMatrix& u);

}  // namespace grus
