// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/series_query.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace grus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SeriesQuery, NamesThePodsOfTheJobInEachOfTheExportersWays) {
  const std::string query = SeriesQuery({"team-a", {"train-0", "b.c-1"}}, R"(job="dcgm")");
  for (
      const char* matcher :
      {R"(DCGM_FI_DEV_GPU_UTIL{namespace="team-a",pod=~"train-0|b\\.c-1",exported_namespace="",exported_pod="",job="dcgm"})",
       R"(DCGM_FI_DEV_GPU_UTIL{exported_namespace="team-a",exported_pod=~"train-0|b\\.c-1",job="dcgm"})",
       R"(irate(container_cpu_usage_seconds_total{container_label_io_kubernetes_pod_namespace="team-a",)"}) {
    EXPECT_THAT(query, HasSubstr(matcher));
  }
  EXPECT_THAT(SeriesQuery({"team-a", {"x"}}, ""), Not(HasSubstr(",}")));
  EXPECT_EQ(std::count(query.begin(), query.end(), '('), std::count(query.begin(), query.end(), ')'));
}

TEST(SeriesQuery, ASampleComesToItsMoment) {
  JobSeries job = EmptySeries(1000, 1060, 15);
  ASSERT_EQ(job.gpu_utilization.values.size(), 5U);
  const QueryLabels gpu{{"series", "gpu"}}, cpu{{"series", "cpu"}};
  AddMoment(gpu, 1030, 80, 0, job);
  AddMoment(cpu, 1060, 6, 8, job);
  AddMoment(cpu, 1045, 9, 8, job);
  EXPECT_FLOAT_EQ(job.gpu_utilization.values[2], 0.8F);
  EXPECT_FLOAT_EQ(job.cpu.values[4], 0.75F);
  EXPECT_FLOAT_EQ(job.cpu.values[3], 1);
  EXPECT_EQ(CountPresent(job.gpu_utilization), 1U);
  EXPECT_EQ(CountPresent(job.memory_bandwidth), 0U);
}

TEST(SeriesQuery, WhatCannotBeIsMissing) {
  JobSeries job = EmptySeries(1000, 1060, 15);
  const QueryLabels gpu{{"series", "gpu"}}, memory{{"series", "memory"}}, cpu{{"series", "cpu"}};
  for (const double value : {9223372036854775794.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    AddMoment(gpu, 1000, value, 0, job);
    AddMoment(memory, 1000, value, 0, job);
  }
  for (const double time : {0.0, 985.0, 1075.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    AddMoment(gpu, time, 50, 0, job);
  }
  AddMoment(cpu, 1000, 6, 0, job);  // Nobody knows what it may use.
  AddMoment({{"series", "other"}}, 1000, 1, 0, job);
  AddMoment({}, 1000, 1, 0, job);
  EXPECT_EQ(CountPresent(job.gpu_utilization) + CountPresent(job.gpu_memory) + CountPresent(job.cpu), 0U);
}

}  // namespace
}  // namespace grus
