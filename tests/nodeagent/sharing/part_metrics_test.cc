// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/sharing/part_fakes.h"
#include "tests/nodeagent/sharing/part_looks.h"

namespace grus {
namespace {

using std::chrono::seconds;
using testing::AddProcess;
using ::testing::HasSubstr;
using ::testing::Not;

class PartMetricsTest : public ::testing::Test {
 protected:
  PartMetricsTest() {
    look_ = testing::GpusOf(2, 80);
    look_.at = clock_.Now();
    given_.at = clock_.Now();
    given_.parts = {GivenPart{.pod = {"team-a", "bert-0"},
                              .pod_uids = {"uid-bert-0"},
                              .container = "main",
                              .gpu = "GPU-1",
                              .index = 1,
                              .milli = 250,
                              .memory_mib = 1024,
                              .enforcement = "None"}};
    AddPartMetrics(
        registry_, [this] { return std::make_shared<const GivenParts>(given_); },
        [this] { return std::make_shared<const NodeSample>(look_); }, clock_);
  }
  std::string Line(const std::string& name, const std::string& value) const {
    return "\n" + name +
           "{gpu=\"1\",uuid=\"GPU-1\",namespace=\"team-a\",pod=\"bert-0\",container=\"main\",enforcement=\"None\"} " +
           value + "\n";
  }
  void ExpectUnknown(const std::string& name) const {
    EXPECT_THAT(registry_.Text(), Not(HasSubstr("\n" + name + "{")));
  }

  kube::testing::ManualClock clock_;
  NodeSample look_;
  GivenParts given_;
  kube::Registry registry_;
  const PodName owner_{"team-a", "bert-0", "main"};
};

TEST_F(PartMetricsTest, ShowsWhatAContainerHasAndWhatAllItsProcessesUseOfIt) {
  AddProcess(look_, 1, owner_, 1000, 20);
  AddProcess(look_, 1, owner_, 500, 5);
  AddProcess(look_, 0, owner_, 70, 7);
  AddProcess(look_, 1, {"team-a", "bert-0", "aside"}, 70, 7);
  // Of a pod of its name that was there before.
  auto left = std::make_shared<const Owner>(Owner{{.pod_uid = "uid-before", .container_id = "1"}, owner_});
  look_.gpus[1].processes.push_back({{.pid = 9, .memory_bytes = 70, .sm_percent = 7}, left});

  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_milli", "250")));
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_memory_limit_bytes", "1073741824")));
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_memory_used_bytes", "1500")));
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_sm_ratio", "0.25")));
}

TEST_F(PartMetricsTest, WhoHasNoProcessOnItsGpuUsesNothing) {
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_memory_used_bytes", "0")));
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_sm_ratio", "0")));
}

TEST_F(PartMetricsTest, ANumberThatIsNotKnownOfOneProcessIsNotShown) {
  AddProcess(look_, 1, owner_, 1000, std::nullopt);
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_memory_used_bytes", "1000")));
  ExpectUnknown("grus_gpu_part_sm_ratio");
  AddProcess(look_, 1, owner_, std::nullopt, std::nullopt);
  ExpectUnknown("grus_gpu_part_memory_used_bytes");
}

TEST_F(PartMetricsTest, WhileItIsNotKnownWhichContainerAProcessIsInItsPodsUseIsNotKnown) {
  AddProcess(look_, 1, {"team-a", "bert-0", ""}, 1000, 1);
  ExpectUnknown("grus_gpu_part_memory_used_bytes");
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_milli", "250")));
}

TEST_F(PartMetricsTest, OfALostGpuOnlyTheAmountsAreKnown) {
  look_.gpus[1].sample.reset();
  ExpectUnknown("grus_gpu_part_memory_used_bytes");
  ExpectUnknown("grus_gpu_part_sm_ratio");
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_milli", "250")));
}

TEST_F(PartMetricsTest, MemoryThatIsNotKnownHasNoLimit) {
  given_.parts[0].memory_mib = 0;
  ExpectUnknown("grus_gpu_part_memory_limit_bytes");
}

TEST_F(PartMetricsTest, WhatIsOldIsNotShown) {
  clock_.Advance(seconds(11));
  ExpectUnknown("grus_gpu_part_memory_used_bytes");
  clock_.Advance(seconds(19));
  EXPECT_THAT(registry_.Text(), HasSubstr(Line("grus_gpu_part_milli", "250")));
  clock_.Advance(seconds(1));
  ExpectUnknown("grus_gpu_part_milli");
}

TEST_F(PartMetricsTest, APartThatIsGoneIsNotShown) {
  given_.parts.clear();
  ExpectUnknown("grus_gpu_part_milli");
}

TEST_F(PartMetricsTest, ShowsWhoUsesAGpuWithoutAPart) {
  given_.partless = {PartlessUse{{"team-b", "thief", "main"}, "GPU-0", 0, 2, 300},
                     PartlessUse{{"team-b", "silent", "main"}, "GPU-0", 0, 1, std::nullopt}};
  const std::string gpu = "{gpu=\"0\",uuid=\"GPU-0\",namespace=\"team-b\",pod=\"";
  EXPECT_THAT(registry_.Text(), HasSubstr("\ngrus_gpu_partless_processes" + gpu + "thief\",container=\"main\"} 2\n"));
  EXPECT_THAT(registry_.Text(),
              HasSubstr("\ngrus_gpu_partless_memory_bytes" + gpu + "thief\",container=\"main\"} 300\n"));
  EXPECT_THAT(registry_.Text(), HasSubstr("\ngrus_gpu_partless_processes" + gpu + "silent\",container=\"main\"} 1\n"));
  EXPECT_THAT(registry_.Text(), Not(HasSubstr("memory_bytes" + gpu + "silent")));
}

}  // namespace
}  // namespace grus
