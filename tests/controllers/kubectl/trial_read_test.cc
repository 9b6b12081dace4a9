// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_read.h"

#include <gmock/gmock.h>

#include "clientlib/model/json.h"

namespace grus {
namespace {

using testing::HasSubstr;

std::string LinesOf(const char* text, int count = 40) {
  std::string log;
  for (int i = 0; i < count; ++i) log += std::string(text) + "\n";
  return log;
}

kube::Json Answer(const std::string& log, const LogSetting& setting) {
  const auto answer = ReadSpeeds(log, setting);
  EXPECT_TRUE(answer) << answer.error().message();
  return *kube::ParseJson(*answer);
}

TEST(TrialRead, SaysWhatATrialWouldGetAndOnWhichLineItStands) {
  const kube::Json answer = Answer(LinesOf("Iter #2: 100.5 img/sec per GPU"), {.gpus = 4, .batch_size = 64});
  EXPECT_DOUBLE_EQ(*answer.Find("throughput")->AsDouble(), 402);
  EXPECT_EQ(*answer.Find("unit"), kube::Json("SamplesPerSecond"));
  EXPECT_EQ(*answer.Find("lines"), kube::Json(40));
  const kube::Json& speed = answer.Find("speeds")->AsArray()->front();
  EXPECT_EQ(*speed.Find("scope"), kube::Json("PerGpu"));
  EXPECT_EQ(*speed.Find("line"), kube::Json("Iter #2: 100.5 img/sec per GPU"));
  EXPECT_EQ(answer.Find("message"), nullptr);
}

TEST(TrialRead, ThePatternThatItAsksForAnswersTheQuestion) {
  const std::string log = LinesOf("Epoch[0] Batch [30-35] Speed: 641.72 samples/sec");
  const kube::Json asked = Answer(log, {.gpus = 4});
  EXPECT_EQ(*asked.Find("scopeUnknown"), kube::Json(true));
  const std::string message = *asked.Find("message")->AsString();
  EXPECT_THAT(message, HasSubstr("kind: SamplesPerSecond, scope: PerGpu, regex: '"));
  const std::size_t at = message.find("regex: '") + 8;
  const std::string regex = message.substr(at, message.find('\'', at) - at);

  const auto pattern = ParsePattern("SamplesPerSecond:PerGpu=" + regex);
  ASSERT_TRUE(pattern);
  const kube::Json told = Answer(log, {.gpus = 4, .patterns = {*pattern}});
  EXPECT_NEAR(*told.Find("throughput")->AsDouble(), 4 * 641.72, 1) << regex;
  EXPECT_EQ(told.Find("scopeUnknown"), nullptr);
}

TEST(TrialRead, SaysWhatIsMissingAndWrong) {
  const kube::Json none = Answer("hello", {});
  EXPECT_EQ(none.Find("throughput"), nullptr);
  EXPECT_THAT(*none.Find("message")->AsString(), HasSubstr("no speed was found; set measure.patterns"));
  EXPECT_THAT(ParsePattern("Speed: (.*)").error().message(), HasSubstr("it has no ="));
  EXPECT_THAT(ParsePattern("Speed=(.*)").error().message(), HasSubstr("no such kind"));
  EXPECT_THAT(ParsePattern("StepSeconds:PerNode=(.*)").error().message(), HasSubstr("no such scope"));
  EXPECT_FALSE(ReadSpeeds("", {.patterns = {*ParsePattern("StepSeconds=(")}}));
  EXPECT_THAT(ReadSpeeds("", {.patterns = {*ParsePattern("SamplesPerStep=(.*)")}}).error().message(),
              HasSubstr("it needs a scope"));
}

}  // namespace
}  // namespace grus
