// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using testing::HasSubstr;

SharedJob Job(const std::string& name, double utilization) {
  SharedJob job{name, "", {}};
  job.solo.gpu_utilization = utilization;
  return job;
}

InterferenceModel SmallModel() {
  const SharedJob a = Job("a", 20), b = Job("b", 60), c = {"c", "family", {}};
  auto model = InterferenceModel::Fit({{a, b, "v100", 0.8, 1}, {b, a, "v100", 0.9, 4}, {a, c, "k80", 0.5, 1}});
  EXPECT_TRUE(model);
  return *std::move(model);
}

std::string ErrorOf(const std::string& text) {
  const auto model = ReadModelFile(text, "model.json");
  return model ? "" : model.error().message();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ModelFile, AModelReadBackSaysTheSame) {
  for (const InterferenceModel& model : {SmallModel(), InterferenceModel()}) {
    const auto read = ReadModelFile(WriteModelFile(model), "model.json");
    ASSERT_TRUE(read) << read.error().message();
    for (const PairQuestion& question :
         {PairQuestion{Job("a", 20), Job("b", 60), "v100"}, PairQuestion{Job("new", 90), {"c", "family", {}}, "k80"}}) {
      const SpeedShare wanted = model.Predict({question})[0], got = read->Predict({question})[0];
      EXPECT_DOUBLE_EQ(got.speed, wanted.speed);
      EXPECT_DOUBLE_EQ(got.low, wanted.low);
      EXPECT_DOUBLE_EQ(got.high, wanted.high);
    }
    EXPECT_EQ(WriteModelFile(*read), WriteModelFile(model));
  }
}

TEST(ModelFile, AnotherVersionIsNamed) {
  const std::string text = WriteModelFile(SmallModel());
  EXPECT_THAT(ErrorOf(Replaced(text, "\"version\":1", "\"version\":2")),
              HasSubstr("model.json: an interference model of version 2, but this grus reads 1; write it anew"));
  EXPECT_THAT(ErrorOf(R"({"version":7,"jobs":"other"})"), HasSubstr("version 7"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("version 0"));
}

TEST(ModelFile, RefusesAFileThatLacksWhatEveryFitWrites) {
  const std::string text = WriteModelFile(SmallModel());
  for (const char* field :
       {"coRuns", "knownJobsWidths", "featuresWeight", "scalesWithFeatures", "scalesWithoutFeatures"}) {
    const std::string quoted = std::string("\"") + field + "\":";
    EXPECT_THAT(ErrorOf(Replaced(text, quoted, "\"other\":")), HasSubstr(field));
  }
  for (const char* field : {"newJobWidth", "newFamilyWidth"}) {
    EXPECT_THAT(ErrorOf(Replaced(text, field, "other")), HasSubstr("width"));
  }
  EXPECT_THAT(ErrorOf(Replaced(text, "knownJobsWidths\":[", "knownJobsWidths\":[1,")),
              HasSubstr("knownJobsWidths: 3 items; expected 2, one for each GPU type"));
}

TEST(ModelFile, SaysWhatIsWrong) {
  const std::string text = WriteModelFile(SmallModel());
  EXPECT_THAT(ErrorOf(""), HasSubstr("model.json: no interference model"));
  EXPECT_THAT(ErrorOf(text.substr(0, text.size() / 2)), HasSubstr("model.json"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("model.json"));
  EXPECT_THAT(ErrorOf(std::string(10000, '[')), HasSubstr("model.json"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"job\":0", "\"job\":9")), HasSubstr("coRuns[0]: no such job"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"job\":0", "\"job\":-1")), HasSubstr("coRuns[0]: no such job"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"speed\":0.8", "\"speed\":0")), HasSubstr("speed is not a positive number"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"speed\":0.8", "\"speed\":8")), HasSubstr("speed is more than the solo speed"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"count\":4", "\"count\":0")), HasSubstr("count"));
  EXPECT_THAT(ErrorOf(Replaced(text, "Percent\":20", "Percent\":-3")), HasSubstr("jobs[0]"));
  EXPECT_THAT(ErrorOf(Replaced(text, "scalesWithFeatures\":[", "scalesWithFeatures\":[1,")), HasSubstr("scalesWithF"));
  EXPECT_THAT(ErrorOf(Replaced(text, "scalesWithFeatures\":[", "scalesWithFeatures\":[1e99,")), HasSubstr("numbers"));
  EXPECT_THAT(ErrorOf(Replaced(text, "featuresWeight\":", "featuresWeight\":3")), HasSubstr("featuresWeight"));
  EXPECT_THAT(ErrorOf(Replaced(text, "knownJobsWidths\":[1", "knownJobsWidths\":[0")), HasSubstr("width"));
}

}  // namespace
}  // namespace grus
