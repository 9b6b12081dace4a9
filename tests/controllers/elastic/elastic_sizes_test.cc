// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_sizes.h"

#include <gtest/gtest.h>

#include <optional>
#include <tuple>

namespace grus {
namespace {

TEST(SizesOf, FillsInWhatTheManifestLeavesOut) {
  using N = std::optional<std::int32_t>;
  const N none;
  struct Case {
    const char* rule;
    N min, max, target;
    int want_min, want_max, want_wanted, want_needed;
  };
  const Case kCases[] = {
      {"nothing said: one worker", none, none, none, 1, 1, 1, 1},
      {"a target alone is the maximum", none, none, 4, 1, 4, 4, 1},
      {"a minimum alone is the maximum", 3, none, none, 3, 3, 3, 3},
      {"without a target as many as may be", 2, 8, none, 2, 8, 8, 2},
      {"the target between the two", 2, 8, 5, 2, 8, 5, 2},
      {"the larger of minimum and target is the maximum", 2, none, 5, 2, 5, 5, 2},
      {"a target below the minimum is raised", 4, 8, 1, 4, 8, 4, 4},
      {"a target above the maximum is lowered", 1, 4, 9, 1, 4, 4, 1},
      {"a maximum below the minimum is raised", 5, 2, none, 5, 5, 5, 5},
      {"target 0: a job that holds nothing", none, none, 0, 0, 0, 0, 1},
      {"target 0 below a maximum", none, 4, 0, 0, 4, 0, 1},
      {"maximum 0: a job that holds nothing", none, 0, none, 0, 0, 0, 1},
      {"no more than the schema allows", 2'000'000'000, none, none, 10000, 10000, 10000, 10000},
      {"minimum 0 still needs one worker to run", 0, 4, none, 0, 4, 4, 1},
  };
  for (const Case& c : kCases) {
    api::ElasticHorovodJobSpec spec;
    api::WorkersSpec& workers = spec.workers;
    workers.min_replicas = c.min;
    workers.max_replicas = c.max;
    workers.target_replicas = c.target;

    const Sizes sizes = SizesOf(spec);

    EXPECT_EQ(sizes.min, c.want_min) << c.rule;
    EXPECT_EQ(sizes.max, c.want_max) << c.rule;
    EXPECT_EQ(sizes.wanted, c.want_wanted) << c.rule;
    EXPECT_EQ(sizes.NeededToRun(), c.want_needed) << c.rule;
  }
}

TEST(SizesOf, OneProcessForEachGpuAndOneWithoutGpus) {
  api::ElasticHorovodJobSpec spec;
  for (const auto& [gpus, slots] : {std::pair(0, 1), {1, 1}, {4, 4}}) {
    spec.workers.gpus_per_worker = gpus;
    EXPECT_EQ(SizesOf(spec).slots, slots) << gpus;
  }
}

TEST(SizesOf, OneProcessForEachAcceleratorOfTheTemplate) {
  api::ElasticHorovodJobSpec spec;
  spec.workers.pod_template =
      *kube::ParseJson(R"({"spec":{"containers":[{"name":"worker","resources":{"limits":{"amd.com/gpu":4}}}]}})");
  EXPECT_EQ(SizesOf(spec).slots, 4);
}

TEST(SizesOf, MoreMayBeNeededToStartThanToRun) {
  api::ElasticHorovodJobSpec spec;
  spec.workers.min_replicas = 2;
  spec.workers.max_replicas = 8;
  EXPECT_EQ(SizesOf(spec).NeededToStart(), 2);
  for (const auto& [available, target, needed] : {std::tuple(1, 8, 2), {4, 8, 4}, {4, 3, 3}, {9, 8, 8}}) {
    spec.run_policy.scheduling_policy.min_available = available;
    spec.workers.target_replicas = target;
    EXPECT_EQ(SizesOf(spec).NeededToStart(), needed) << available << " of " << target;
    EXPECT_EQ(SizesOf(spec).NeededToRun(), 2);
  }
}

}  // namespace
}  // namespace grus
