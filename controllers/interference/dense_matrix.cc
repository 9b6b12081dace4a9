// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/dense_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace grus {
namespace {

// All work is in rows, target -= factor * source, which compilers vectorise. Tiles of so many columns stay in the
// first cache while the rows above are read.
constexpr std::size_t kTile = 512;
constexpr std::size_t kRows = 4;

void Subtract(double* target, const double* source, double factor, std::size_t from, std::size_t to) {
  for (std::size_t j = from; j < to; ++j) target[j] -= factor * source[j];
}

// Takes from rows `first` to `first + 3`, columns `from` to `to`, what rows before `first` of U say.
void SubtractAbove(DenseMatrix& a, std::size_t first, std::size_t from, std::size_t to) {
  double *r0 = a.row(first), *r1 = a.row(first + 1), *r2 = a.row(first + 2), *r3 = a.row(first + 3);
  for (std::size_t k = 0; k < first; ++k) {
    const double* source = a.row(k);
    const double f0 = source[first], f1 = source[first + 1], f2 = source[first + 2], f3 = source[first + 3];
    for (std::size_t j = from; j < to; ++j) {
      const double s = source[j];
      r0[j] -= f0 * s;
      r1[j] -= f1 * s;
      r2[j] -= f2 * s;
      r3[j] -= f3 * s;
    }
  }
}

bool FinishRow(DenseMatrix& a, std::size_t i, std::size_t first) {
  const std::size_t n = a.rows;
  for (std::size_t k = first; k < i; ++k) Subtract(a.row(i), a.row(k), a.at(k, i), i, n);
  if (!(a.at(i, i) > 0) || !std::isfinite(a.at(i, i))) return false;
  const double scale = 1 / std::sqrt(a.at(i, i));
  for (std::size_t j = i; j < n; ++j) a.at(i, j) *= scale;
  return true;
}

}  // namespace

bool Factor(DenseMatrix& a) {
  const std::size_t n = a.rows;
  std::size_t first = 0;
  for (; first + kRows <= n; first += kRows) {
    for (std::size_t from = first; from < n; from += kTile) SubtractAbove(a, first, from, std::min(n, from + kTile));
    for (std::size_t i = first; i < first + kRows; ++i) {
      if (!FinishRow(a, i, first)) return false;
    }
  }
  for (std::size_t i = first; i < n; ++i) {
    if (!FinishRow(a, i, 0)) return false;
  }
  for (std::size_t i = 1; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) a.at(i, k) = a.at(k, i);
  }
  return true;
}

void SolveTransposed(const DenseMatrix& u, DenseMatrix& b) {
  for (std::size_t i = 0; i < u.rows; ++i) {
    double* row = b.row(i);
    if (b.columns == 1) {
      row[0] -= std::inner_product(u.row(i), u.row(i) + i, b.row(0), 0.0);
    } else {
      for (std::size_t k = 0; k < i; ++k) Subtract(row, b.row(k), u.at(i, k), 0, b.columns);
    }
    for (std::size_t j = 0; j < b.columns; ++j) row[j] /= u.at(i, i);
  }
}

void SolveUpper(const DenseMatrix& u, DenseMatrix& b) {
  for (std::size_t i = u.rows; i-- > 0;) {
    double* row = b.row(i);
    for (std::size_t k = i + 1; k < u.rows; ++k) Subtract(row, b.row(k), u.at(i, k), 0, b.columns);
    for (std::size_t j = 0; j < b.columns; ++j) row[j] /= u.at(i, i);
  }
}

DenseMatrix Inverse(const DenseMatrix& u) {
  const std::size_t n = u.rows;
  DenseMatrix inverse(n, n);
  // inverse(U') is lower triangular: row k ends at column k.
  for (std::size_t i = 0; i < n; ++i) {
    double* row = inverse.row(i);
    row[i] = 1;
    for (std::size_t k = 0; k < i; ++k) Subtract(row, inverse.row(k), u.at(i, k), 0, k + 1);
    for (std::size_t j = 0; j <= i; ++j) row[j] /= u.at(i, i);
  }
  // Of the result, which is symmetric, the lower triangle, from the last row up: it needs no more of the rows below.
  for (std::size_t i = n; i-- > 0;) {
    double* row = inverse.row(i);
    for (std::size_t k = i + 1; k < n; ++k) Subtract(row, inverse.row(k), u.at(i, k), 0, i + 1);
    for (std::size_t j = 0; j <= i; ++j) {
      row[j] /= u.at(i, i);
      inverse.at(j, i) = row[j];
    }
  }
  return inverse;
}

}  // namespace grus
