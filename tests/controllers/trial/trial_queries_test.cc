// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_queries.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

TEST(ExpandQuery, PutsTheTrialIn) {
  EXPECT_EQ(ExpandQuery(R"(rate(x{namespace="$NAMESPACE",job="$JOB"}[1m]) + y{job="$JOB"})", "team-a", "t-g1"),
            R"(rate(x{namespace="team-a",job="t-g1"}[1m]) + y{job="t-g1"})");
}

TEST(GpuQueries, AskForTheWorkersOfATrialUnderBothNamesOfThePodLabel) {
  EXPECT_EQ(
      PeakMemoryQuery("team-a", "t-g1", 42),
      R"(max(max_over_time(DCGM_FI_DEV_FB_USED{namespace="team-a",pod=~"t-g1(-workers)?(-[0-9]+)?"}[42s]) or )"
      R"(max_over_time(DCGM_FI_DEV_FB_USED{exported_namespace="team-a",exported_pod=~"t-g1(-workers)?(-[0-9]+)?"}[42s])))");
  EXPECT_EQ(
      UtilizationQuery("team-a", "t-g1", 0),
      R"(avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{namespace="team-a",pod=~"t-g1(-workers)?(-[0-9]+)?"}[1s]) or )"
      R"(avg_over_time(DCGM_FI_DEV_GPU_UTIL{exported_namespace="team-a",exported_pod=~"t-g1(-workers)?(-[0-9]+)?"}[1s])))");
}

}  // namespace
}  // namespace grus
