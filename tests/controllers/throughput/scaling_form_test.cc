// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/scaling_form.h"

#include <gtest/gtest.h>

#include <cmath>

namespace grus {
namespace {

constexpr Parameters kSome = {-1.2, -0.4, -2, -0.9, -0.5, 0.3, -1, -1.5};
constexpr JobSize kSizes[] = {{1, 1, 16}, {1, 2, 16}, {1, 8, 64}, {2, 2, 16}, {2, 8, 16}, {3, 7, 5}, {16, 64, 128}};

double ValueOf(const ScalingForm& form, const Parameters& parameters, const JobSize& size, double effect = 0) {
  return LogStepSeconds(form, parameters, size, 32, effect).value;
}

TEST(ScalingForm, GradientIsTheSlopeOfTheValue) {
  constexpr double kStep = 1e-6;
  for (const ScalingForm& form : ScalingForms()) {
    for (const JobSize& size : kSizes) {
      const LogStep step = LogStepSeconds(form, kSome, size, 32, 0.1);
      for (std::size_t p = 0; p < kParameterCount; ++p) {
        Parameters up = kSome, down = kSome;
        up[p] += kStep;
        down[p] -= kStep;
        const double slope = (ValueOf(form, up, size, 0.1) - ValueOf(form, down, size, 0.1)) / (2 * kStep);
        EXPECT_NEAR(step.gradient[p], slope, 1e-6) << form.name << " parameter " << p << " replicas " << size.replicas;
      }
      const double by_effect = (ValueOf(form, kSome, size, 0.1 + kStep) - ValueOf(form, kSome, size, 0.1)) / kStep;
      EXPECT_NEAR(step.compute_share, by_effect, 1e-5) << form.name << " replicas " << size.replicas;
    }
  }
}

TEST(ScalingForm, OneReplicaDoesNotSynchronise) {
  for (const ScalingForm& form : ScalingForms()) {
    const double seconds = std::exp(ValueOf(form, kSome, {1, 1, 16}));
    EXPECT_DOUBLE_EQ(seconds, std::exp(-1.2) + std::exp(-0.4) / 2) << form.name;
  }
}

TEST(ScalingForm, StepsDoNotGetShorterAsTheJobGrows) {
  for (const ScalingForm& form : ScalingForms()) {
    for (int replicas = 1; replicas < 64; ++replicas) {
      EXPECT_LE(ValueOf(form, kSome, {1, replicas, 16}), ValueOf(form, kSome, {1, replicas + 1, 16})) << form.name;
      EXPECT_LE(ValueOf(form, kSome, {replicas + 1, 2 * replicas + 2, 16}) - 1e-12,
                ValueOf(form, kSome, {replicas + 2, 2 * replicas + 4, 16}))
          << form.name;
    }
  }
}

TEST(ScalingForm, SynchronisingGrowsNoFasterThanReplicas) {
  Parameters fastest = kSome;
  for (const Parameter p : {kIntraGrowth, kNodeGrowth, kLocalGrowth}) fastest[p] = 50;
  fastest[kFixed] = fastest[kPerSample] = -50;  // Nothing but synchronising.
  for (const ScalingForm& form : ScalingForms()) {
    for (int replicas = 2; replicas <= 64; replicas *= 2) {
      const double ratio = ValueOf(form, fastest, {1, 2 * replicas, 16}) - ValueOf(form, fastest, {1, replicas, 16});
      EXPECT_LE(ratio, std::log(3.0) + 1e-9) << form.name << " from " << replicas;  // (4 - 1) / (2 - 1) at most.
    }
  }
}

TEST(ScalingForm, StaysFiniteAtTheEndsOfTheRange) {
  for (const ScalingForm& form : ScalingForms()) {
    for (const double extreme : {-300.0, 300.0}) {
      Parameters parameters;
      parameters.fill(extreme);
      for (const JobSize& size : kSizes) EXPECT_TRUE(std::isfinite(ValueOf(form, parameters, size))) << form.name;
    }
  }
}

}  // namespace
}  // namespace grus
