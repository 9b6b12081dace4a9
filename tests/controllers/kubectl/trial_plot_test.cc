// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "clientlib/model/json_reader.h"

namespace grus {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kStatus[] = R"({"phase":"Succeeded","throughputUnit":"SamplesPerSecond","curve":[
  {"gpuType":"A100","gpus":1,"source":"Measured","throughput":"100","throughputLow":"98","throughputHigh":"102","speedUp":"1","efficiency":"1"},
  {"gpuType":"A100","gpus":2,"source":"Measured","throughput":"190","throughputLow":"186","throughputHigh":"194","speedUp":"1.9","efficiency":"0.95"},
  {"gpuType":"A100","gpus":4,"source":"Interpolated","throughput":"350","throughputLow":"330","throughputHigh":"370","speedUp":"3.5","efficiency":"0.88"},
  {"gpuType":"A100","gpus":8,"source":"Measured","throughput":"600","throughputLow":"590","throughputHigh":"610","speedUp":"6","efficiency":"0.75"},
  {"gpuType":"A100","gpus":16,"source":"Extrapolated","throughput":"640","throughputLow":"500","throughputHigh":"800","speedUp":"6.4","efficiency":"0.4"},
  {"gpuType":"A100","gpus":32,"source":"Unknown","throughputLow":"300","throughputHigh":"1500"},
  {"gpuType":"H100","gpus":1,"source":"Measured","throughput":"250"}],
  "recommendation":[{"goal":"Knee","gpus":8,"gpuType":"A100","source":"Measured","message":"8 GPUs do 94 % of what 16 do"},
                    {"goal":"Fastest","source":"Unknown","message":"32 GPUs may be faster"}]})";

api::TrialJob Trial(std::string_view status) {
  api::TrialJob trial;
  trial.metadata.ns = "team-a";
  trial.metadata.name = "try";
  const auto read = kube::ReadText<api::TrialJobStatus>(status);
  EXPECT_TRUE(read) << read.error().message();
  trial.status = *read;
  return trial;
}

std::string Text(const api::TrialJob& trial) {
  const auto text = PlotAsText(trial, {});
  return text ? *text : "failed: " + text.error().message();
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(TrialPlot, HasAChartForEachGpuTypeAndBatchSize) {
  const std::string text = Text(Trial(kStatus));
  EXPECT_EQ(CountOf(text, "team-a/try, A100\n"), 1u);
  EXPECT_EQ(CountOf(text, "team-a/try, H100\n"), 1u);
  EXPECT_EQ(CountOf(text, "└"), 2u);
  const auto svg = PlotAsSvg(Trial(kStatus));
  ASSERT_TRUE(svg);
  EXPECT_EQ(CountOf(*svg, "<svg"), 3u);
  EXPECT_THAT(*svg, HasSubstr("viewBox=\"0 0 720 880\""));
}

TEST(TrialPlot, SaysTheSourceOfEachNumberAndNoneWhereItIsUnknown) {
  const std::string text = Text(Trial(kStatus));
  EXPECT_THAT(text, ContainsRegex("\n +4 +350 +330 to 370 +3.5 +0.88 +Interpolated\n"));
  EXPECT_THAT(text, ContainsRegex("\n +8 +600 .*Measured\n"));
  EXPECT_THAT(text, ContainsRegex("\n +16 +640 .*Extrapolated\n"));
  EXPECT_THAT(text, ContainsRegex("\n +32 +- +300 to 1500 +- +- +Unknown\n"));
}

TEST(TrialPlot, SaysTheKneeWhereItIsAndInASentence) {
  const std::string text = Text(Trial(kStatus));
  EXPECT_EQ(CountOf(text, "▲ knee: 8 GPUs"), 1u);  // Not in the chart of H100.
  EXPECT_THAT(text, HasSubstr("Knee: 8 GPUs do 94 % of what 16 do\n"));
  EXPECT_THAT(text, HasSubstr("Fastest: 32 GPUs may be faster\n"));
  EXPECT_EQ(CountOf(*PlotAsSvg(Trial(kStatus)), ">knee: 8 GPUs<"), 1u);
}

TEST(TrialPlot, WithoutACurveSaysWhatTheTrialJobIsDoing) {
  const char* const kRunning =
      R"({"phase":"Running","progress":"1/8","conditions":[{"type":"Ready","status":"False","reason":"TrialsRunning",
          "message":"trial 2 of 8 is measuring","lastTransitionTime":"2026-01-01T00:00:00Z"}]})";
  const auto text = PlotAsText(Trial(kRunning), {});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message(),
            "TrialJob team-a/try has no curve yet: phase Running, 1/8 trials ended; trial 2 of 8 is measuring");
  EXPECT_FALSE(PlotAsSvg(Trial(kRunning)));
  EXPECT_FALSE(PlotAsText(Trial(R"({"curve":[{"gpus":1,"source":"Unknown"}]})"), {}));
}

TEST(TrialPlot, OrderAndRepetitionInTheCurveDoNotMatter) {
  api::TrialJob trial = Trial(kStatus), other = trial;
  std::reverse(other.status.curve.begin(), other.status.curve.end());
  EXPECT_EQ(Text(other), Text(trial));
  other.status.curve.push_back(other.status.curve.back());
  EXPECT_EQ(CountOf(Text(other), "└"), 2u);
}

TEST(TrialPlot, NamesCannotCommandTheTerminalOrTheBrowser) {
  api::TrialJob trial = Trial(kStatus);
  trial.status.curve[0].gpu_type = "<b>\x1b[2J\u009b2J\u202e\nKnee: 64 GPUs";
  trial.status.recommendation[0].message = "\x1b[31mred\nKnee: 64 GPUs";
  for (const char* evil : {"\x1b", "\u009b", "\u202e", "\nKnee: 64 GPUs"})
    EXPECT_THAT(Text(trial), Not(HasSubstr(evil)));
  EXPECT_THAT(*PlotAsSvg(trial), Not(HasSubstr("<b>")));
}

TEST(TrialPlot, SaysTheUnit) {
  api::TrialJob trial = Trial(kStatus);
  for (const auto& [unit, text] : {std::pair{api::ThroughputUnit::kBatchesPerSecond, "batches/s"},
                                   {api::ThroughputUnit::kStepsPerSecond, "steps/s"},
                                   {api::ThroughputUnit::kSamplesPerSecond, "samples/s"}}) {
    trial.status.throughput_unit = unit;
    EXPECT_EQ(CountOf(Text(trial), text), 4u);  // Over both charts, and in both tables.
  }
}

TEST(TrialPlot, TheKneeOfABatchSizeStandsInItsChartAlone) {
  const std::string text = Text(Trial(R"({"curve":[
      {"gpus":2,"batchSize":32,"source":"Measured","throughput":"190"},
      {"gpus":4,"batchSize":32,"source":"Measured","throughput":"200"},
      {"gpus":2,"batchSize":64,"source":"Measured","throughput":"210"},
      {"gpus":4,"batchSize":64,"source":"Measured","throughput":"400"}],
      "recommendation":[{"goal":"Knee","gpus":2,"batchSize":32},{"goal":"Knee","gpus":4,"batchSize":64}]})"));
  EXPECT_EQ(CountOf(text, "▲ knee: 2 GPUs"), 1u);
  EXPECT_EQ(CountOf(text, "▲ knee: 4 GPUs"), 1u);
}

}  // namespace
}  // namespace grus
