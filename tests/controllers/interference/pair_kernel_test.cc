// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_kernel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "controllers/interference/pair_process.h"

namespace grus {
namespace {

PairPoint Point(int job, int partner) {
  PairPoint point;
  point.features = {0.3, 0, -1, 0.5, 0, 0, 1.2};
  point.is_known = {true, false, true, true, false, false, true};
  point.job = job;
  point.partner = partner;
  point.job_family = point.partner_family = 0;
  point.gpu_type = 0;
  return point;
}

TEST(PairKernel, IsLargestForTheSameCoRunAndFallsAsTheyDiffer) {
  const PairKernel kernel(PriorScales());
  const PairPoint point = Point(1, 2);
  EXPECT_NEAR(kernel.Covariance(point, point), kernel.prior_variance(), 1e-12);
  PairPoint other = point;
  double last = kernel.prior_variance();
  const auto expect_less = [&](const char* what) {
    EXPECT_LT(kernel.Covariance(point, other), last) << what;
    EXPECT_EQ(kernel.Covariance(point, other), kernel.Covariance(other, point)) << what;
    last = kernel.Covariance(point, other);
  };
  other.partner = 3;
  expect_less("another partner");
  other.partner_size = 2;
  expect_less("whose batch is another");
  other.features[0] = 1;
  expect_less("another utilisation");
  other.is_known[1] = true;
  expect_less("a bandwidth that only one says");
  other.gpu_type = 1;
  expect_less("another GPU type");
  other.partner_family = 1;
  expect_less("another family");
  EXPECT_GT(last, 0);
}

TEST(PairKernel, UnknownNamesAreLikeNoOther) {
  const PairKernel kernel(PriorScales());
  const PairPoint unknown = Point(-1, -1), known = Point(1, 2);
  EXPECT_LT(kernel.Covariance(unknown, unknown), kernel.Covariance(known, known));
}

TEST(PairKernel, GradientIsThatOfTheCovariance) {
  PairScales scales = PriorScales();
  const PairPoint a = Point(1, 2);
  PairPoint b = Point(1, 3);
  b.features[0] = 1;
  b.features[6] = 0;
  b.job_size = 1.5;
  b.partner_size = 3;
  b.gpu_type = 1;
  for (const PairPoint& other : {a, b}) {
    PairScales gradient = {};
    PairKernel(scales).AddGradient(a, other, 2, gradient);
    for (std::size_t s = 0; s < kPairScales; ++s) {
      PairScales more = scales, less = scales;
      more[s] += 1e-5;
      less[s] -= 1e-5;
      const double slope = (PairKernel(more).Covariance(a, other) - PairKernel(less).Covariance(a, other)) / 2e-5;
      EXPECT_NEAR(gradient[s], 2 * slope, 1e-7) << s;
    }
  }
}

}  // namespace
}  // namespace grus
