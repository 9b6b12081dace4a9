// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/curve.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace grus {
namespace {

CurvePoint Point(int replicas, double throughput) {
  CurvePoint point;
  point.size = {1, replicas, 32};
  point.source = PredictionSource::kMeasured;
  point.throughput = point.low = point.high = throughput;
  return point;
}

CurvePoint Unknown(int replicas, double throughput, double high, double local_batch_size = 32) {
  CurvePoint point = Point(replicas, throughput);
  point.source = PredictionSource::kUnknown;
  point.high = high;
  point.size.local_batch_size = local_batch_size;
  return point;
}

// Replicas of Fastest, Cheapest and Knee; "-" where Unknown.
std::string Recommended(const std::vector<CurvePoint>& curve, int max_replicas) {
  std::string text;
  for (const Recommendation& r : Recommend(curve, max_replicas)) {
    text += (text.empty() ? "" : " ") + (r.best ? std::to_string(r.best->size.replicas) : "-");
  }
  return text;
}

std::vector<Measurement> OneNode() {
  return {{{1, 1, 32}, 0.10}, {{1, 2, 32}, 0.105}, {{1, 4, 32}, 0.11}, {{1, 1, 128}, 0.4}, {{1, 4, 128}, 0.41}};
}

TEST(Curve, CountsSamplesAndSpeedUp) {
  const auto fit = FitThroughput(OneNode());
  CurveQuestion question;
  question.sizes = {{1, 1}, {1, 2}, {1, 4}};
  question.batch_size = 32;
  const auto curve = CurveOf(*fit, question);
  ASSERT_TRUE(curve);
  EXPECT_NEAR((*curve)[0].throughput, 320, 1e-9);
  EXPECT_NEAR((*curve)[2].throughput, 4 * 32 / 0.11, 1e-9);
  EXPECT_NEAR((*curve)[2].speed_up, 4 * 0.10 / 0.11, 1e-9);
  EXPECT_NEAR((*curve)[2].efficiency, 0.10 / 0.11, 1e-9);
  EXPECT_LT((*curve)[2].low, (*curve)[2].throughput);
  EXPECT_GT((*curve)[2].high, (*curve)[2].throughput);
}

TEST(Curve, ATotalBatchIsSharedAmongReplicas) {
  const auto fit = FitThroughput(OneNode());
  CurveQuestion question;
  question.sizes = {{1, 1}, {1, 4}};
  question.fixed = FixedBatch::kTotal;
  question.batch_size = 128;
  const auto curve = CurveOf(*fit, question);
  ASSERT_TRUE(curve);
  EXPECT_EQ((*curve)[0].size.local_batch_size, 128);
  EXPECT_EQ((*curve)[1].size.local_batch_size, 32);
  EXPECT_NEAR((*curve)[1].throughput, 128 / 0.11, 1e-9);
}

TEST(Curve, LessThanOneSamplePerReplicaIsUnknown) {
  const auto fit = FitThroughput(OneNode(), {1e9});
  CurveQuestion question;
  question.sizes = {{1, 1}, {1, 8}};
  question.fixed = FixedBatch::kTotal;
  question.batch_size = 4;
  const auto curve = CurveOf(*fit, question);
  ASSERT_TRUE(curve);
  EXPECT_NE((*curve)[0].source, PredictionSource::kUnknown);
  EXPECT_EQ((*curve)[1].source, PredictionSource::kUnknown);
}

TEST(Curve, RefusesQuestionsThatMakeNoSense) {
  const auto fit = FitThroughput(OneNode());
  struct Case {
    const char* what;
    CurveQuestion question;
  };
  for (const Case& c : {Case{"no size", {{}, FixedBatch::kPerReplica, 32}},
                        Case{"not ascending", {{{1, 2}, {1, 1}}, FixedBatch::kPerReplica, 32}},
                        Case{"the same twice", {{{1, 2}, {1, 2}}, FixedBatch::kPerReplica, 32}},
                        Case{"no replica", {{{1, 0}}, FixedBatch::kTotal, 32}},
                        Case{"no batch", {{{1, 1}}, FixedBatch::kPerReplica, 0}}}) {
    EXPECT_FALSE(CurveOf(*fit, c.question)) << c.what;
  }
}

TEST(Curve, DoublesUpToTheMost) {
  struct Case {
    int most, gpus_per_node;
    std::string want;
  };
  for (const Case& c : {Case{1, 8, "1/1"}, Case{8, 4, "1/1 1/2 1/4 2/8"}, Case{6, 4, "1/1 1/2 1/4 2/6"},
                        Case{12, 8, "1/1 1/2 1/4 1/8 2/12"}, Case{0, 8, ""}}) {
    std::string sizes;
    for (const CurveSize& size : DoublingSizes(c.most, c.gpus_per_node)) {
      sizes += (sizes.empty() ? "" : " ") + std::to_string(size.nodes) + "/" + std::to_string(size.replicas);
    }
    EXPECT_EQ(sizes, c.want) << c.most;
  }
  EXPECT_EQ(DoublingSizes(std::numeric_limits<int>::max(), 8).back().replicas, std::numeric_limits<int>::max());
}

TEST(Recommend, ChoosesFastestCheapestAndKnee) {
  struct Case {
    const char* rule;
    std::vector<CurvePoint> curve;
    int max_replicas;
    const char* want;
  };
  const Case kCases[] = {
      {"saturates", {Point(1, 100), Point(2, 190), Point(4, 350), Point(8, 480), Point(16, 500)}, 16, "16 1 8"},
      {"at or under a limit", {Point(1, 100), Point(2, 190), Point(4, 350), Point(8, 480)}, 4, "4 1 4"},
      {"gets slower", {Point(1, 100), Point(2, 80), Point(4, 90)}, 4, "1 1 1"},
      {"the smallest of equals", {Point(1, 100), Point(2, 200), Point(4, 200)}, 4, "2 1 2"},
      {"an unknown size looks best", {Point(1, 100), Point(2, 190), Unknown(4, 350, 500)}, 4, "- 1 -"},
      {"an unknown size may be best", {Point(1, 100), Point(2, 190), Unknown(4, 150, 220)}, 4, "- 1 -"},
      {"an unknown size may be a bit better", {Point(1, 100), Point(2, 190), Unknown(4, 150, 200)}, 4, "- 1 2"},
      {"an unknown size is worse", {Point(1, 100), Point(2, 190), Unknown(4, 150, 180)}, 4, "2 1 2"},
      {"an unknown size looks cheapest", {Unknown(1, 100, 120), Point(2, 190)}, 4, "2 - 2"},
      {"no size has half a sample", {Point(1, 100), Point(2, 190), Unknown(4, 350, 500, 0.5)}, 4, "2 1 2"},
      {"the limit leaves nothing", {Point(2, 100)}, 1, "- - -"},
      {"no curve", {}, 8, "- - -"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Recommended(c.curve, c.max_replicas), c.want) << c.rule;
}

TEST(Recommend, OffersTheBestOfTheKnownWhereTheBestIsUnknown) {
  const std::vector<CurvePoint> curve = {Point(1, 100), Point(2, 190), Unknown(4, 350, 500)};
  const Recommendation fastest = Recommend(curve, 4).front();
  EXPECT_FALSE(fastest.best);
  ASSERT_TRUE(fastest.best_known);
  EXPECT_EQ(fastest.best_known->size.replicas, 2);
}

TEST(Recommend, TheKneeMayBeASizeWhoseSpeedIsNotKnown) {
  std::vector<CurvePoint> curve = {Point(1, 100), Point(2, 190), Unknown(4, 350, 500)};
  curve.back().counts_for_knee = true;
  const std::vector<Recommendation> all = Recommend(curve, 4);
  EXPECT_FALSE(all[0].best) << "which is the fastest is a question of numbers";
  ASSERT_TRUE(all[2].best);
  EXPECT_EQ(all[2].best->size.replicas, 4);
}

TEST(CurveOf, AWiderBandCountsForTheKneeIfThreeNumbersOfNodesShowTheNetwork) {
  const auto counts = [](const std::vector<Measurement>& measured, FixedBatch fixed) {
    const auto fit = FitThroughput(measured, {1.02});
    const CurveQuestion question{{{8, 32}}, fixed, fixed == FixedBatch::kTotal ? 320.0 : 10.0};
    const CurvePoint point = CurveOf(*fit, question)->front();
    return point.high / point.low < kKneeBandFactor * 1.02 ? point.counts_for_knee : throw std::logic_error("too wide");
  };
  std::vector<Measurement> measured;
  for (const JobSize& size : {JobSize{1, 1, 10}, JobSize{1, 4, 10}, JobSize{2, 8, 10}, JobSize{2, 4, 10},
                              JobSize{4, 16, 10}, JobSize{4, 8, 10}, JobSize{16, 64, 10}}) {
    measured.push_back({size, 1 + 0.02 * (size.nodes - 1)});
  }
  EXPECT_TRUE(counts(measured, FixedBatch::kPerReplica));
  EXPECT_FALSE(counts(measured, FixedBatch::kTotal));
}

TEST(Recommend, NamesTheFirstSizeThatMightBeBetter) {
  const std::vector<CurvePoint> curve = {Point(2, 190), Unknown(3, 100, 150), Unknown(4, 350, 500), Unknown(8, 1, 900)};
  const Recommendation fastest = Recommend(curve, 8).front();
  ASSERT_TRUE(fastest.rival);
  EXPECT_EQ(fastest.rival->size.replicas, 4);
  EXPECT_FALSE(Recommend({Point(1, 100), Unknown(2, 80, 90)}, 2).front().rival);
}

}  // namespace
}  // namespace grus
