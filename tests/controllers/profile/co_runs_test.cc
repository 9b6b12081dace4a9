// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/co_runs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/controllers/profile/profile_builders.h"

namespace grus {
namespace {

using api::CoRun;
using testing::AtSecond;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CoRun Sample(const std::string& partner, const std::string& speed, int at_second = 1000, const std::string& low = {},
             const std::string& high = {}) {
  return {.partner = partner,
          .gpu_type = "A100",
          .speed = speed,
          .low = low,
          .high = high,
          .count = 1,
          .time = AtSecond(at_second)};
}

std::vector<std::string> Partners(const std::vector<CoRun>& runs) {
  std::vector<std::string> partners;
  for (const CoRun& run : runs) partners.push_back(run.partner);
  return partners;
}

api::Measurement Speed(const std::string& mean, const std::string& low = {}, const std::string& high = {}) {
  api::Measurement measured;
  measured.throughput = mean;
  measured.throughput_low = low;
  measured.throughput_high = high;
  return measured;
}

TEST(CoRunOf, IsTheShareOfTheSpeedAloneWithTheErrorsOfBoth) {
  const auto run = CoRunOf(Speed("600", "570", "632"), Speed("800", "776", "825"), "vgg", "A100", AtSecond(5));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->name, "vgg@A100");
  EXPECT_EQ(run->partner, "vgg");
  EXPECT_EQ(run->gpu_type, "A100");
  EXPECT_EQ(run->count, 1);
  EXPECT_EQ(run->time, AtSecond(5));
  EXPECT_EQ(run->speed, "0.75");
  // Of 5 % and 3 %, the root of the sum of squares is 5.9 %.
  EXPECT_NEAR(std::stod(run->low), 0.75 / 1.0612, 0.001);
  EXPECT_NEAR(std::stod(run->high), 0.75 * 1.0623, 0.001);
}

TEST(CoRunOf, IsNoneOfWhatNobodyCanMeasure) {
  const auto of = [](const std::string& beside, const std::string& alone) {
    return CoRunOf(Speed(beside), Speed(alone), "vgg", "A100", AtSecond(5)).ok();
  };
  EXPECT_TRUE(of("800", "800"));
  EXPECT_TRUE(of("870", "800")) << "noise";
  EXPECT_FALSE(of("900", "800"));
  EXPECT_FALSE(of("999999999999999", "0.000000001"));
  EXPECT_FALSE(of("0.000000001", "999999999999999"));
  EXPECT_FALSE(of("0", "800"));
  EXPECT_FALSE(of("800", "0"));
  EXPECT_FALSE(of("", "800"));
  EXPECT_FALSE(of("nan", "800"));
  EXPECT_FALSE(of("1e3", "800"));
  api::Measurement of_one_gpu = Speed("800");
  of_one_gpu.is_scope_unknown = true;
  EXPECT_FALSE(CoRunOf(Speed("700"), of_one_gpu, "vgg", "A100", AtSecond(5)));
}

TEST(MergeCoRuns, OfAPairTheMeanOfAllSamplesStays) {
  auto runs = MergeCoRuns({}, {Sample("vgg", "0.8", 1000), Sample("gpt", "0.5", 1000)});
  runs = MergeCoRuns(runs, {Sample("vgg", "0.7", 2000)});
  runs = MergeCoRuns(runs, {Sample("vgg", "0.6", 1500)});
  ASSERT_THAT(Partners(runs), ElementsAre("vgg", "gpt"));
  EXPECT_NEAR(std::stod(runs[0].speed), 0.7, 1e-4);
  EXPECT_EQ(runs[0].count, 3);
  EXPECT_EQ(runs[0].time, AtSecond(2000)) << "of the last one";
  EXPECT_EQ(runs[1].count, 1);
}

TEST(MergeCoRuns, OfSamplesThatAgreeTheIntervalNarrows) {
  std::vector<CoRun> runs;
  for (int i = 0; i < 4; ++i) runs = MergeCoRuns(runs, {Sample("vgg", "0.8", 1000 + i, "0.76", "0.84")});
  EXPECT_EQ(runs[0].speed, "0.8");
  EXPECT_NEAR(std::stod(runs[0].low), 0.78, 1e-4);
  EXPECT_NEAR(std::stod(runs[0].high), 0.82, 1e-4);
}

TEST(MergeCoRuns, WhatSamplesDifferByIsInTheInterval) {
  // Each sure of itself. The mean of n has the standard deviation of one, 0.1 here, by the root of n.
  std::vector<CoRun> runs;
  for (int i = 0; i < 20; ++i) {
    runs = MergeCoRuns(runs, {Sample("vgg", i % 2 == 0 ? "0.6" : "0.8", 1000 + i, i % 2 == 0 ? "0.6" : "0.8",
                                     i % 2 == 0 ? "0.6" : "0.8")});
  }
  EXPECT_NEAR(std::stod(runs[0].speed), 0.7, 0.01);
  const double half = (std::stod(runs[0].high) - std::stod(runs[0].low)) / 2;
  EXPECT_GT(half, 1.645 * 0.1 / std::sqrt(20));
  EXPECT_LT(half, 1.5 * 1.645 * 0.1 / std::sqrt(20));

  const auto two = MergeCoRuns({}, {Sample("gpt", "0.1", 1), Sample("gpt", "0.9", 2)});
  EXPECT_EQ(two[0].speed, "0.5");
  EXPECT_EQ(two[0].low, "0") << "not below";
  EXPECT_GT(std::stod(two[0].high), 0.9);
}

TEST(MergeCoRuns, ASampleThatIsToldAgainCountsOnce) {
  const std::vector<CoRun> once = MergeCoRuns({}, {Sample("vgg", "0.8", 1000)});
  CoRun again = Sample("vgg", "0.8", 1000);
  again.time.value += std::chrono::milliseconds(300);
  EXPECT_EQ(MergeCoRuns(once, {again}), once);
}

TEST(MergeCoRuns, OverTheLimitThoseMeasuredLongestAgoGo) {
  std::vector<CoRun> runs;
  for (int i = 0; i < 130; ++i) runs = MergeCoRuns(runs, {Sample("w-" + std::to_string(i), "0.8", 2000 - i)});
  ASSERT_THAT(runs, SizeIs(128));
  EXPECT_EQ(runs.back().partner, "w-127");
  runs = MergeCoRuns(runs, {Sample("w-127", "0.8", 3000), Sample("new", "0.8", 3000)});
  ASSERT_THAT(runs, SizeIs(128));
  EXPECT_THAT(Partners(runs), ::testing::IsSupersetOf({"w-127", "new", "w-125"}));
  EXPECT_THAT(Partners(runs), ::testing::Not(::testing::Contains("w-126")));
}

TEST(MergeCoRuns, SamplesThatMakeNoSenseAreLeftOut) {
  const auto one = [](auto change) {
    CoRun run = Sample("vgg", "0.8");
    change(run);
    return MergeCoRuns({}, {run});
  };
  EXPECT_THAT(one([](CoRun&) {}), SizeIs(1));
  for (const char* speed : {"", "0", "0.0001", "1.2", "999999999999999", "-1", "nan", "inf"}) {
    EXPECT_THAT(one([&](CoRun& run) { run.speed = speed; }), IsEmpty()) << speed;
  }
  EXPECT_THAT(one([](CoRun& run) { run.count = 0; }), IsEmpty());
  EXPECT_THAT(one([](CoRun& run) { run.partner = ""; }), IsEmpty());
  EXPECT_THAT(one([](CoRun& run) { run.partner = "a@b"; }), IsEmpty());
  EXPECT_THAT(one([](CoRun& run) { run.partner = std::string(64, 'a'); }), IsEmpty());
  EXPECT_THAT(one([](CoRun& run) { run.gpu_type = std::string(64, 'A'); }), IsEmpty());
}

TEST(MergeCoRuns, AKnownMeanThatMakesNoSenseGivesWay) {
  CoRun zero = Sample("vgg", "0"), huge = Sample("gpt", "0.5");
  zero.name = CoRunName("vgg", "A100");
  huge.name = CoRunName("gpt", "A100");
  huge.count = std::numeric_limits<std::int32_t>::max();
  const auto runs = MergeCoRuns({zero, huge}, {Sample("vgg", "0.8", 2000), Sample("gpt", "0.7", 2000)});
  EXPECT_EQ(runs[0].speed, "0.8");
  EXPECT_EQ(runs[0].count, 1);
  EXPECT_EQ(runs[1].speed, "0.51") << "as if it were the twentieth";
  EXPECT_EQ(runs[1].count, huge.count);
}

// A driver was changed, or the speed alone was wrong: what was measured before fades.
TEST(MergeCoRuns, AnOldMeanFadesHoweverManySamplesItIsOf) {
  std::vector<CoRun> runs;
  for (int i = 0; i < 200; ++i) runs = MergeCoRuns(runs, {Sample("vgg", "0.8", 1000 + i)});
  for (int i = 0; i < 60; ++i) runs = MergeCoRuns(runs, {Sample("vgg", "0.5", 2000 + i)});
  EXPECT_LT(std::stod(runs[0].speed), 0.52);
  EXPECT_EQ(runs[0].count, 260);
}

TEST(MergeCoRuns, EntriesThatAUserHasNamedOtherwiseAreFoundAndNamesStayUnique) {
  CoRun named = Sample("vgg", "0.8", 1000), taken = Sample("gpt", "0.5", 1000);
  named.name = "mine";
  taken.name = CoRunName("vgg", "A100");
  const auto runs = MergeCoRuns({named, taken}, {Sample("vgg", "0.7", 2000)});
  ASSERT_THAT(runs, SizeIs(1)) << "an entry under the name of another pair is nobody's";
  EXPECT_EQ(runs[0].name, "vgg@A100");
  EXPECT_NEAR(std::stod(runs[0].speed), 0.75, 1e-4);
}

TEST(CoRunName, IsBoundedAndTellsPairsApart) {
  const std::string type(62, 'A'), partner(63, 'a');
  EXPECT_LE(CoRunName(partner, type + "1").size(), 128u);
  EXPECT_NE(CoRunName(partner, type + "1"), CoRunName(partner, type + "2"));
  EXPECT_NE(CoRunName("a-b", "c"), CoRunName("a", "b-c"));
  EXPECT_EQ(CoRunName("a", ""), "a@") << "the GPU type is not known";
}

}  // namespace
}  // namespace grus
