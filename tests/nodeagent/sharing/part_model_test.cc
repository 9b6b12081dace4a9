// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/sharing/part_model.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

using testing::ModelCounts;
using testing::ModelOptions;
using testing::PartModel;

constexpr int kSteps = 25;

// Plays all seeds; what they have seen together.
ModelCounts PlayAll(SharingMode mode, bool is_honest, std::uint64_t seeds, bool says_memory = false,
                    bool asks_whole = false) {
  ModelCounts sum;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    PartModel model({.seed = seed,
                     .mode = mode,
                     .is_honest = is_honest,
                     .says_memory = says_memory,
                     .asks_whole = asks_whole,
                     .lists_admitted = mode == SharingMode::kGpushare || says_memory || seed % 2 == 0});
    model.Play(kSteps);
    for (const std::string& fault : model.faults()) ADD_FAILURE() << "seed " << seed << ": " << fault;
    if (::testing::Test::HasFailure()) break;
    sum.admitted += model.counts().admitted;
    sum.refused += model.counts().refused;
    sum.started += model.counts().started;
    sum.delayed += model.counts().delayed;
    sum.split += model.counts().split;
    sum.whole += model.counts().whole;
    sum.as_planned += model.counts().as_planned;
    sum.as_assumed += model.counts().as_assumed;
    sum.agent_restarts += model.counts().agent_restarts;
    sum.kubelet_restarts += model.counts().kubelet_restarts;
  }
  for (const auto& [name, count] : std::map<std::string, int>{{"admitted", sum.admitted},
                                                              {"refused", sum.refused},
                                                              {"started", sum.started},
                                                              {"delayed", sum.delayed},
                                                              {"split", sum.split},
                                                              {"agent_restarts", sum.agent_restarts},
                                                              {"kubelet_restarts", sum.kubelet_restarts}}) {
    ::testing::Test::RecordProperty(name, count);
  }
  return sum;
}

TEST(PartModel, EachContainerIsOnOneGpuAndNoneIsRefusedForWhichThereIsRoom) {
  const ModelCounts counts = PlayAll(SharingMode::kAlnair, true, 60);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_GT(counts.refused, 5);
  EXPECT_GT(counts.agent_restarts, 30);
  EXPECT_GT(counts.kubelet_restarts, 5);
  EXPECT_EQ(counts.split, 0);
  EXPECT_EQ(counts.delayed, 0);
}

TEST(PartModel, ThousandthsAreNeverGivenTwice) {
  const ModelCounts counts = PlayAll(SharingMode::kMilli, true, 15);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_GT(counts.refused, 3);
  EXPECT_EQ(counts.split, 0);
}

TEST(PartModel, MemoryThatPodsSayIsNeverPromisedBeyondWhatAGpuHas) {
  const ModelCounts counts = PlayAll(SharingMode::kMilli, true, 20, true);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_GT(counts.refused, 3);
  EXPECT_EQ(counts.delayed, 0);
}

TEST(PartModel, WhoAsksForWholeGpusHasThemAloneAndIsNotRefusedIfSoManyAreFree) {
  const ModelCounts counts = PlayAll(SharingMode::kMilli, true, 30, true, true);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_GT(counts.refused, 3);
  EXPECT_GT(counts.whole, 30);
  EXPECT_GT(counts.as_planned, 3);
  EXPECT_EQ(counts.split, 0);
  EXPECT_EQ(counts.delayed, 0);
}

TEST(PartModel, WithLateOrMissingAnswersNobodyHasAPartOfAWholeGpuThatIsGiven) {
  const ModelCounts counts = PlayAll(SharingMode::kMilli, false, 30, false, true);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_GT(counts.whole, 20);
  EXPECT_EQ(counts.split, 0);
}

TEST(PartModel, GpusharesPodsAreWhereItsExtenderAssumedThemIfThereIsRoomAndOnNoFullGpu) {
  const ModelCounts counts = PlayAll(SharingMode::kGpushare, true, 30);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_GT(counts.refused, 3);
  EXPECT_GT(counts.as_assumed, 30);
  EXPECT_EQ(counts.split, 0);
  EXPECT_EQ(counts.delayed, 0);
}

TEST(PartModel, GpusharesMemoryIsNeverGivenTwiceWithLateOrMissingAnswers) {
  const ModelCounts counts = PlayAll(SharingMode::kGpushare, false, 30);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_EQ(counts.split, 0);
}

TEST(PartModel, WithLateOrMissingAnswersNothingIsGivenTwiceAndNoCheckedContainerStartsOnTwoGpus) {
  const ModelCounts counts = PlayAll(SharingMode::kAlnair, false, 60);
  EXPECT_GT(counts.admitted, 60);
  EXPECT_GT(counts.refused, 5);
  EXPECT_LT(counts.split, counts.started / 6) << "the exception, not the rule";
}

}  // namespace
}  // namespace grus
