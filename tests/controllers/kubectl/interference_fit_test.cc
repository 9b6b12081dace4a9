// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/interference_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHeader =
    "job,with_job,gpu_utilization,with_gpu_utilization,step_time,with_step_time,batch_size,with_batch_size,speed\n";

std::string ErrorOf(const std::string& text) {
  const auto co_runs = ReadCoRuns({"a.csv", text});
  return co_runs ? "" : co_runs.error().message();
}

TEST(InterferenceFit, ReadsFeaturesOfBothAndLeavesUnknownOnesOut) {
  const auto co_runs = ReadCoRuns({"a.csv", std::string(kHeader) + "bert,lm,40,90,0.1,,32,,0.7\n"});
  ASSERT_TRUE(co_runs) << co_runs.error().message();
  EXPECT_THAT(co_runs->notes, IsEmpty());
  ASSERT_EQ(co_runs->samples.size(), 1u);
  const CoRunSample& sample = co_runs->samples[0];
  EXPECT_EQ(sample.job.family, "bert");
  EXPECT_EQ(sample.job.fingerprint, "bert (batch size 32)");
  EXPECT_EQ(sample.job.solo.gpu_utilization, 40);
  EXPECT_EQ(sample.job.solo.step_milliseconds, 0.1);
  EXPECT_EQ(sample.job.solo.memory_bandwidth, std::nullopt);
  EXPECT_EQ(sample.partner.fingerprint, "lm");
  EXPECT_EQ(sample.partner.solo.step_milliseconds, std::nullopt);
  EXPECT_EQ(sample.speed, 0.7);
}

TEST(InterferenceFit, UnderstandsOtherNamesAndSaysWhatItDoesNotUse) {
  const auto co_runs =
      ReadCoRuns({"a.csv",
                  "Solo_GPU_Util_Pct,with_solo_gpu_util_pct,mem_bw,memory_mb,gpu,slowdown,speed,job,with_job\n"
                  "40,50,30,2000,v100,2,0.5,a,b\n"});
  ASSERT_TRUE(co_runs) << co_runs.error().message();
  EXPECT_THAT(co_runs->notes, ElementsAre("a.csv: not used: column slowdown"));
  EXPECT_EQ(co_runs->samples[0].job.solo.gpu_utilization, 40);
  EXPECT_EQ(co_runs->samples[0].partner.solo.gpu_utilization, 50);
  EXPECT_EQ(co_runs->samples[0].job.solo.memory_bandwidth, 30);
  EXPECT_EQ(co_runs->samples[0].job.solo.memory_mebibytes, 2000);
  EXPECT_EQ(co_runs->samples[0].gpu_type, "v100");
}

TEST(InterferenceFit, ClampsNoiseLeavesOutUnknownSpeedsAndMergesRepeatedRows) {
  const auto co_runs = ReadCoRuns({"a.csv", "job,with_job,speed,count\na,b,1.04,\na,c,,\na,b,0.5,3\nb,a,0.9,\n"});
  ASSERT_TRUE(co_runs) << co_runs.error().message();
  ASSERT_EQ(co_runs->samples.size(), 2u);
  EXPECT_NEAR(co_runs->samples[0].speed, (1 + 3 * 0.5) / 4, 1e-12);
  EXPECT_EQ(co_runs->samples[0].count, 4);
  EXPECT_THAT(co_runs->notes,
              ElementsAre("a.csv: left out 1 row without a speed",
                          "a.csv: 1 row of pairs that other rows have as well: the mean of their speeds counts"));
}

TEST(InterferenceFit, TakesMissingFeaturesFromOtherRowsOfTheJob) {
  const auto co_runs =
      ReadCoRuns({"a.csv", std::string(kHeader) + "a,b,40,90,,,,,0.7\na,c,,,,,,,0.6\na,b,,,,,,,0.5\n"});
  ASSERT_TRUE(co_runs) << co_runs.error().message();
  ASSERT_EQ(co_runs->samples.size(), 2u);
  EXPECT_EQ(co_runs->samples[1].job.solo.gpu_utilization, 40);
  EXPECT_THAT(co_runs->notes,
              ElementsAre("a.csv: features of 2 jobs taken from the co-runs",
                          "a.csv: 1 row of pairs that other rows have as well: the mean of their speeds counts"));
}

TEST(InterferenceFit, SaysWhichOfManyPairsAreUsed) {
  std::string text = "job,with_job,speed\n";
  for (int i = 0; i < 2100; ++i) text += "j" + std::to_string(i) + (i % 2 == 0 ? "x,b,0.5\n" : "x,b,0.6\n");
  const auto co_runs = ReadCoRuns({"a.csv", text});
  ASSERT_TRUE(co_runs);
  EXPECT_THAT(co_runs->notes,
              ElementsAre("a.csv: 2100 pairs, of which 2000 are used, drawn evenly from each GPU type"));
}

TEST(InterferenceFit, ErrorsNameFileLineColumnAndRemedy) {
  const std::string header = "job,with_job,gpu_utilization,with_batch_size,count,speed\n";
  struct Case {
    std::string text;
    const char* want;
  };
  const Case kCases[] = {
      {"", "a.csv:1: no header"},
      {"job,speed\na,0.5\n", "a.csv:1: no column with_job; the header must name job, with_job and speed"},
      {"job,with_job\na,b\n", "a.csv:1: no column speed"},
      {"job,with_job,job,speed\na,b,c,0.5\n", "a.csv:1: two columns job"},
      {"job,with_job,util,gpu_util,speed\na,b,1,1,0.5\n",
       "a.csv:1: columns util and gpu_util say the same; remove one"},
      {header, "a.csv:2: no co-run below the header"},
      {header + "a,b,1,1,1,\n", "a.csv:2: no co-run"},
      {header + "a,b,1,1,1,0.5\na,b,1,1,1,0\n", "a.csv:3: column speed: \"0\" is not a positive number; leave out"},
      {header + "a,b,1,1,1,-0.1\n", "column speed: \"-0.1\" is not a positive number"},
      {header + "a,b,1,1,1,nan\n", "column speed: \"nan\" is not a number"},
      {header + "a,b,1,1,1,inf\n", "column speed: \"inf\" is not a number"},
      {header + "a,b,1,1,1,1e999\n", "column speed: \"1e999\" is not a number"},
      {header + "a,b,1,1,1,85\n", "column speed: \"85\" is more than the solo speed; give the speed as a share"},
      {header + "a,b,x,1,1,0.5\n",
       "a.csv:2: column gpu_utilization: \"x\" is not a number of 0 or more; leave it empty"},
      {header + "a,b,-1,1,1,0.5\n", "column gpu_utilization: \"-1\""},
      {header + "a,b,nan,1,1,0.5\n", "column gpu_utilization: \"nan\""},
      {header + "a,b,1,0,1,0.5\n", "column with_batch_size: \"0\" is not a positive number"},
      {header + "a,b,1,1,0,0.5\n", "column count: \"0\" is not a number of 1 or more"},
      {header + "a,b,1,1,1e308,0.5\n", "column count: \"1e308\" is not a number of 1 or more, up to 1e12; leave"},
      {header + "a,b,1,1,1,0.0009\n", "column speed: \"0.0009\" is less than a thousandth of the solo speed"},
      {header + "a,b,1,1,1,0.5\n\nb\xe9,a,1,1,1,0.5\n", "a.csv:4: is no UTF-8"},
      {"job;with_job;speed\na;b;0,5\n", "a.csv:1: a header of one column; separate with commas"},
      {"job\twith_job\tspeed\r\na\tb\t0.5\r\n", "a.csv:1: a header of one column; separate with commas"},
      {"job,with_job,step_time_s,speed\na,b,1e308,0.5\n", "column step_time_s: \"1e308\" is not a positive number"},
      {header + "a,b,1,1,1\n", "a.csv:2: 5 fields, but the header has 6"},
      {header + std::string(20 << 20, 'a'), "larger than 16 MiB"},
  };
  for (const Case& c : kCases) EXPECT_THAT(ErrorOf(c.text), HasSubstr(c.want));
  const auto pairs = ReadPairs({"b.csv", "job,with_job,mem\na,b,big\n"});
  ASSERT_FALSE(pairs);
  EXPECT_THAT(pairs.error().message(), HasSubstr("b.csv:2: column mem: \"big\""));
}

TEST(InterferenceFit, UnitsAreThoseInTheNamesOfColumns) {
  struct Case {
    const char* columns;
    double mebibytes, milliseconds;
  };
  const Case kCases[] = {{"memory_mib,step_time_ms", 4096, 2},
                         {"gpu_memory_mb,iteration_time", 4096, 2},
                         {"memory_gb,step_time_s", 4096 * 1024, 2000},
                         {"Solo_Mem_GiB,solo_step_seconds", 4096 * 1024, 2000},
                         {"memory_bytes,step_time_us", 4096.0 / (1 << 20), 0.002},
                         {"memory,us_per_10_steps", 4096, 0.0002}};
  for (const Case& c : kCases) {
    const auto pairs =
        ReadPairs({"b.csv", std::string("job,with_job,with_memory_mb,") + c.columns + "\na,b,7,4096,2\n"});
    ASSERT_TRUE(pairs) << pairs.error().message();
    EXPECT_THAT(pairs->notes, IsEmpty()) << c.columns;
    const PairQuestion& question = pairs->questions.at(0);
    EXPECT_EQ(question.partner.solo.memory_mebibytes, 7);
    EXPECT_DOUBLE_EQ(question.job.solo.memory_mebibytes.value_or(0), c.mebibytes) << c.columns;
    EXPECT_DOUBLE_EQ(question.job.solo.step_milliseconds.value_or(0), c.milliseconds) << c.columns;
  }
}

TEST(InterferenceFit, RequiredColumnsMayBeInCapitals) {
  const auto co_runs = ReadCoRuns({"a.csv", "Job,WITH_JOB,Speed\na,b,0.5\n"});
  ASSERT_TRUE(co_runs) << co_runs.error().message();
  EXPECT_EQ(co_runs->samples.at(0).partner.fingerprint, "b");
}

TEST(InterferenceFit, SaysWhenSpeedsTellNothing) {
  const auto co_runs = ReadCoRuns({"a.csv", "job,with_job,speed\na,b,1\nb,a,1.02\n"});
  ASSERT_TRUE(co_runs);
  EXPECT_THAT(co_runs->notes, ElementsAre("a.csv: all speeds are 1, which tells no job from another"));
}

TEST(InterferenceFit, SaysWhenThereAreNoRowsToPredict) {
  for (const char* text : {"job,with_job\n", "job,with_job,gpu\ra,b,v100\rb,a,v100\r"}) {
    const auto pairs = ReadPairs({"b.csv", text});
    ASSERT_TRUE(pairs) << pairs.error().message();
    ASSERT_FALSE(pairs->notes.empty());
    EXPECT_EQ(pairs->notes.back(), "b.csv: no rows below the header");
  }
}

TEST(InterferenceFit, SaysWhatTheModelTakesFromElsewhereOrDoesNotKnow) {
  SharedJob a{"a", "", {}}, b{"b", "", {}};
  a.solo.gpu_utilization = 20;
  b.solo.gpu_utilization = 80;
  const auto model = InterferenceModel::Fit({{a, b, "v100", 0.8, 1}, {b, a, "v100", 0.9, 1}});
  ASSERT_TRUE(model);
  EXPECT_THAT(NotesOn("b.csv", *model, {{a, b, "v100"}, {a, {"new", "", {}}, ""}}), IsEmpty());
  EXPECT_THAT(NotesOn("b.csv", *model, {{{"a", "", {}}, b, "v100"}}),
              ElementsAre("b.csv: features of 1 job taken from the co-runs"));
  EXPECT_THAT(NotesOn("b.csv", *model, {{a, b, "h100"}, {b, a, "h100"}}),
              ElementsAre("b.csv: no co-run is of GPU type h100"));
  SharedJob share = a;
  share.solo.gpu_utilization = 0.9;
  EXPECT_THAT(NotesOn("b.csv", *model, {{share, share, "v100"}}),
              ElementsAre("b.csv: gpu_utilization is 0.9 to 0.9, but 20 to 80 in the co-runs; give both in one unit"));
}

TEST(InterferenceFit, QuestionsAreBoundedAndNeedNoSpeed) {
  std::string text = "job,with_job,speed\n";
  for (int i = 0; i < 20001; ++i) text += "a,b,not read\n";
  const auto pairs = ReadPairs({"b.csv", text});
  ASSERT_FALSE(pairs);
  EXPECT_THAT(pairs.error().message(), HasSubstr("b.csv: 20001 rows, at most 20000"));
  const auto few = ReadPairs({"b.csv", "job,with_job,speed\na,b,not read\n,,\n"});
  ASSERT_TRUE(few);
  EXPECT_EQ(few->questions.size(), 2u);
  EXPECT_THAT(few->notes, IsEmpty());
}

TEST(InterferenceFit, AnswersARowForEachInTheirOrder) {
  EXPECT_EQ(SpeedsAsCsv({{0.5, 0.25, 1}, {1, 1, 1}}), "speed,low,high\n0.5,0.25,1\n1,1,1\n");
}

}  // namespace
}  // namespace grus
