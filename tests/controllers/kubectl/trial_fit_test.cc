// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/kubectl/csv.h"

namespace grus {
namespace {

using testing::HasSubstr;

const CsvText kPoints = {"points.csv",
                         "num_nodes,num_replicas,local_bsz,step_time\n"
                         "1,1,32,0.10\n1,2,32,0.105\n1,4,32,0.11\n2,8,32,0.15\n"};
const CsvText kWanted = {"wanted.csv", "num_nodes,num_replicas,local_bsz\n1,3,32\n"};

std::string ErrorOf(const CsvText& points, const CsvText& wanted) {
  const auto answer = PredictFromCsv(points, wanted, {});
  return answer ? "" : answer.error().message();
}

TEST(TrialFit, AnswersInTheOrderAskedWithTheSourceOfEachNumber) {
  const CsvText wanted = {"wanted.csv", "num_nodes,num_replicas,local_bsz\n16,64,32\n1,2,32\n1,3,32.0\n"};
  const auto answer = PredictFromCsv(kPoints, wanted, {});
  ASSERT_TRUE(answer) << answer.error().message();
  const auto table = ParseCsv(*answer, "answer");
  ASSERT_TRUE(table);
  EXPECT_EQ(answer->substr(0, answer->find('\n')), "num_nodes,num_replicas,local_bsz,step_time,low,high,source");
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(table->rows[0].fields[1], "64");
  EXPECT_EQ(table->rows[0].fields[6], "Unknown");
  const auto number = [&](std::size_t column) { return std::stod(std::string(table->rows[0].fields[column])); };
  EXPECT_LT(number(4), number(3));  // A guess, within a band that is too wide.
  EXPECT_LT(number(3), number(5));
  EXPECT_GT(number(5) / number(4), FitOptions{}.max_interval_ratio);
  EXPECT_EQ(table->rows[1].fields[3], "0.105");
  EXPECT_EQ(table->rows[1].fields[6], "Measured");
  EXPECT_EQ(table->rows[2].fields[2], "32.0");  // As it was written.
  EXPECT_EQ(table->rows[2].fields[6], "Interpolated");
}

TEST(TrialFit, FindsColumnsByNameAndIgnoresOthers) {
  const CsvText shuffled = {"points.csv",
                            "note,step_time,local_bsz,num_replicas,num_nodes\n,0.10,32,1,1\nx,0.105,32,2,1\n"
                            "x,0.11,32,4,1\nx,0.15,32,8,2\n"};
  EXPECT_EQ(*PredictFromCsv(shuffled, kWanted, {}), *PredictFromCsv(kPoints, kWanted, {}));
}

TEST(TrialFit, NamesFileLineColumnAndRemedy) {
  const std::string header = "num_nodes,num_replicas,local_bsz,step_time\n1,1,32,0.1\n";
  struct Case {
    std::string points;
    const char* want;
  };
  const Case kCases[] = {
      {header + "1,2,32,nan\n", "points.csv:3: column step_time: \"nan\" is not a positive number; give the seconds"},
      {header + "1,2,32,inf\n", "points.csv:3: column step_time: \"inf\""},
      {header + "1,2,32,0\n", "points.csv:3: column step_time: \"0\""},
      {header + "1,2,32,-1\n", "points.csv:3: column step_time: \"-1\""},
      {header + "1,2,32,\n", "points.csv:3: column step_time: \"\""},
      {header + "1,2,32,0.1s\n", "points.csv:3: column step_time: \"0.1s\""},
      {header + "1,2,0,0.1\n", "points.csv:3: column local_bsz: \"0\""},
      {header + "0,2,32,0.1\n", "points.csv:3: column num_nodes: \"0\" is not a whole number"},
      {header + "1,2.5,32,0.1\n", "points.csv:3: column num_replicas: \"2.5\""},
      {header + "1,1e99,32,0.1\n", "points.csv:3: column num_replicas: \"1e99\""},
      {header + "4,2,32,0.1\n", "points.csv:3: column num_replicas: \"2\" is less than num_nodes"},
      {"num_nodes,num_replicas,local_bsz,step_time\n", "points.csv:2: no measurement below the header"},
      {"num_nodes,num_replicas,local_bsz\n1,1,32\n", "points.csv:1: no column step_time; the header must name"},
      {"num_nodes,local_bsz,step_time\n1,32,0.1\n", "points.csv:1: no column num_replicas"},
  };
  for (const Case& c : kCases) EXPECT_THAT(ErrorOf({"points.csv", c.points}, kWanted), HasSubstr(c.want));
  EXPECT_THAT(ErrorOf(kPoints, {"wanted.csv", "num_nodes,num_replicas,local_bsz\n1,x,32\n"}),
              HasSubstr("wanted.csv:2: column num_replicas: \"x\""));
  EXPECT_THAT(ErrorOf(kPoints, {"wanted.csv", "num_nodes,local_bsz\n1,32\n"}), HasSubstr("wanted.csv:1: no column"));
}

TEST(TrialFit, NoQuestionIsAnAnswerWithoutLines) {
  const auto answer = PredictFromCsv(kPoints, {"wanted.csv", "num_nodes,num_replicas,local_bsz\n"}, {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, "num_nodes,num_replicas,local_bsz,step_time,low,high,source\n");
}

}  // namespace
}  // namespace grus
