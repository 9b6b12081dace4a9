// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/utilization_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

MeasuredNode NodeOf(const std::string& model, int cards, double used, double free, std::optional<double> cpu = {}) {
  MeasuredNode node;
  for (int i = 0; i < cards; ++i) node.cards["GPU-" + std::to_string(i)] = {model, used, free};
  node.cpu = cpu;
  return node;
}

TEST(UtilizationScore, IsTheFormulaOfUtilSchedInFractions) {
  // 5 x (10 x 16 x 4 / 12) + 10 x 4 x 0.25 + 3 x 0.5
  EXPECT_DOUBLE_EQ(*UtilizationScore(NodeOf("Tesla V100-SXM2-16GB", 4, 4096, 12288, 0.5), {}),
                   5 * 640.0 / 12 + 10 + 1.5);
  EXPECT_DOUBLE_EQ(*UtilizationScore(NodeOf("Tesla K80", 1, 0, 12288), {}), 5 * 6.0);
  EXPECT_DOUBLE_EQ(*UtilizationScore(NodeOf("NVIDIA TITAN X (Pascal)", 1, 6144, 6144), {}), 5 * 7.0 + 5);
}

TEST(UtilizationScore, OfANodeWithoutAMeasuredCardIsNotKnown) {
  EXPECT_FALSE(UtilizationScore({}, {}));
  MeasuredNode node;
  node.cpu = 0.5;
  node.cards["GPU-0"] = {"Tesla K80", 100, std::nullopt};
  EXPECT_FALSE(UtilizationScore(node, {}));
  node.cards["GPU-1"] = {"Tesla K80", 0, 12288};  // One that is known counts.
  EXPECT_DOUBLE_EQ(*UtilizationScore(node, {}), 5 * 6 + 1.5);
}

TEST(UtilizationScore, StaysWithinBoundsWhateverWasMeasured) {
  EXPECT_DOUBLE_EQ(*UtilizationScore(NodeOf("K80", 1, 0, 12288, 7.0), {}), 5 * 6 + 3);
}

TEST(ModelWeights, AreAddedAndReplaced) {
  const auto weights = ModelWeights::Parse("A100=14, v100 = 9.5,A100-SXM4-80GB=16");
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_EQ(weights->WeightOf("Tesla V100-SXM2-16GB"), 9.5);
  EXPECT_EQ(weights->WeightOf("NVIDIA A100-PCIE-40GB"), 14);
  EXPECT_EQ(weights->WeightOf("NVIDIA A100-SXM4-80GB"), 16) << "the longest name that is a part of it";
  EXPECT_EQ(weights->WeightOf("NVIDIA H100"), 16) << "a model that is not listed is a new one";
}

TEST(ModelWeights, ThatMakeNoSenseAreNamed) {
  for (const char* text : {"A100", "=3", "A100=", "A100=many", "A100=-1", "A100=1001", "A100=nan", "K80=6,A100=1=2"}) {
    const auto weights = ModelWeights::Parse(text);
    ASSERT_FALSE(weights) << text;
    EXPECT_THAT(weights.error().message(), testing::HasSubstr("expected MODEL=WEIGHT, such as A100=14"));
  }
}

}  // namespace
}  // namespace grus
