// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/interference_watch.h"

#include <gmock/gmock.h>

#include "controllers/extender/profiled_job.h"
#include "crds/types/workload_profile.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::SizeIs;

class InterferenceWatchTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    watch_.FeedQueue(queue_);
    StartCaches();
    Settle();
  }
  // `more`: of its spec, JSON without braces.
  void AddProfile(const std::string& fingerprint, const std::string& more) {
    Create("workloadprofiles.ai.centauruscloud.io",
           *kube::ParseJson(
               R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"WorkloadProfile","metadata":{"name":")" +
               fingerprint + R"("},"spec":{"fingerprint":")" + fingerprint + R"(",)" + more + "}}"));
    Settle();
  }
  static std::string CoRun(const std::string& partner, const std::string& speed, int count) {
    return R"({"name":")" + partner + R"(-V100","partner":")" + partner + R"(","gpuType":"V100","speed":")" + speed +
           R"(","count":)" + std::to_string(count) + R"(,"time":"2026-01-01T00:00:00Z"})";
  }
  kube::Action Pass() {
    const auto action = watch_.Reconcile({"", "interference"}, {});
    EXPECT_TRUE(action);
    return *action;
  }

  kube::Informer& profiles_ = Cache<api::WorkloadProfile>();
  std::vector<std::shared_ptr<const InterferenceModel>> models_;
  InterferenceWatch watch_{profiles_,
                           {{{.fingerprint = "told"}, {.fingerprint = "a"}, "V100", 0.5, 3}},
                           [this](auto model) { models_.push_back(std::move(model)); },
                           clock_,
                           log_};
};

TEST_F(InterferenceWatchTest, AModelHasWhatWasToldAndWhatProfilesSay) {
  AddProfile("a", R"("features":[{"gpuType":"V100","runs":1,"usage":{"gpuUtilizationPercent":70,
      "memoryBandwidthPercent":30,"maxGpuMemoryBytes":4294967296}}],"coRuns":[)" +
                      CoRun("b", "0.8", 2) + "]");
  Pass();
  ASSERT_THAT(models_, SizeIs(1));
  ASSERT_THAT(models_[0]->samples(), SizeIs(2));
  const CoRunSample& seen = models_[0]->samples()[0];
  EXPECT_EQ(seen.job.fingerprint, "a");
  EXPECT_EQ(seen.partner.fingerprint, "b");
  EXPECT_EQ(seen.gpu_type, "V100");
  EXPECT_EQ(seen.speed, 0.8);
  EXPECT_EQ(seen.count, 2);
  EXPECT_EQ(seen.job.solo.gpu_utilization, 70);
  EXPECT_EQ(seen.job.solo.memory_bandwidth, 30);
  EXPECT_EQ(seen.job.solo.memory_mebibytes, 4096);
  EXPECT_EQ(models_[0]->samples()[1].job.fingerprint, "told");
}

TEST_F(InterferenceWatchTest, ItIsLearnedAnewAfterNewsAndOnceAMinuteAtMost) {
  AddProfile("a", R"("coRuns":[)" + CoRun("b", "0.8", 2) + "]");
  Pass();
  Pass();
  EXPECT_THAT(models_, SizeIs(1)) << "nothing is new";
  AddProfile("b", R"("coRuns":[)" + CoRun("a", "0.9", 1) + "]");
  EXPECT_EQ(Pass().delay(), InterferenceWatch::kEvery) << "too soon";
  EXPECT_THAT(models_, SizeIs(1));
  clock_.Advance(InterferenceWatch::kEvery);
  Pass();
  ASSERT_THAT(models_, SizeIs(2));
  EXPECT_THAT(models_[1]->samples(), SizeIs(3));
}

TEST_F(InterferenceWatchTest, SpeedsThatNobodyCanMeasureAreLeftOut) {
  AddProfile("a", R"("coRuns":[)" + CoRun("b", "0", 2) + "," + CoRun("c", "3.5", 1) + "," + CoRun("d", "0.7", 1) + "]");
  Pass();
  ASSERT_THAT(models_, SizeIs(1));
  EXPECT_THAT(models_[0]->samples(), SizeIs(2));
}

TEST(ProfiledJob, WhatWasNotMeasuredOnTheGpuTypeIsNotKnown) {
  api::WorkloadProfile profile;
  profile.spec.fingerprint = "0123456789abcdef0123456789abc128";
  profile.spec.features.push_back({.gpu_type = "V100", .runs = 1, .usage = {.gpu_utilization_percent = 50}});
  profile.spec.points.push_back({.name = "p",
                                 .config = {.gpu_type = "V100", .gpus = 8, .batch_size = 64},
                                 .measured = {.step_milliseconds = "130"}});
  profile.spec.points.push_back({.name = "q",
                                 .config = {.gpu_type = "V100", .gpus = 1, .batch_size = 32},
                                 .measured = {.step_milliseconds = "100.5"}});
  const SharedJob there = SharedJobOf(profile, "V100"), elsewhere = SharedJobOf(profile, "K80");
  EXPECT_EQ(there.solo.gpu_utilization, 50);
  EXPECT_EQ(there.solo.step_milliseconds, 100.5) << "of the fewest GPUs";
  EXPECT_EQ(there.solo.batch_size, 32);
  EXPECT_FALSE(there.solo.memory_mebibytes);
  EXPECT_EQ(elsewhere.solo, SoloFeatures());
  EXPECT_EQ(FamilyOf(elsewhere).batch_size, 0) << "the end of a fingerprint is none";
  EXPECT_EQ(elsewhere.fingerprint, profile.spec.fingerprint);
}

}  // namespace
}  // namespace grus
