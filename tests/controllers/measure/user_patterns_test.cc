// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/user_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace grus {
namespace {

using testing::HasSubstr;

TEST(UserPatterns, AnErrorNamesThePatternAndThePlace) {
  struct Case {
    const char* regex;
    const char* want;
  };
  const Case kCases[] = {
      {"step (\\d+", "pattern \"mine\": missing )"}, {"step ([z-a])", "(at character 8)"}, {"step \\d+", "no group"},
      {"(a{900}){900}", "pattern \"mine\""},         {"(step)(?=x)", "pattern \"mine\""},
  };
  for (const Case& c : kCases) {
    const auto made = UserPatterns::Make({{"mine", c.regex, Measure::kStep}});
    ASSERT_FALSE(made.ok()) << c.regex;
    EXPECT_EQ(made.error().code(), kube::ErrorCode::kInvalidArgument);
    EXPECT_THAT(made.error().message(), HasSubstr(c.want)) << c.regex;
  }
}

TEST(UserPatterns, AnErrorOfTheWholePatternNamesNoPlace) {
  const auto made = UserPatterns::Make({{"mine", "step: (", Measure::kStep}});
  EXPECT_THAT(made.error().message(), testing::Not(HasSubstr("at character")));
}

TEST(UserPatterns, TheFirstGroupIsTheNumber) {
  const auto patterns = UserPatterns::Make({{"a", "took=([^ ]*) (\\w+)", Measure::kStepSeconds}});
  struct Case {
    const char* line;
    double want;
  };
  for (const Case& c :
       {Case{"took=0.5 s", 0.5}, Case{"took=1e-3 s", 1e-3}, Case{"took=1,234.5 s", 1234.5}, Case{"took=-2 s", -2}}) {
    LineReadings readings;
    std::int64_t not_numbers = 0;
    patterns->Read(c.line, readings, not_numbers);
    ASSERT_EQ(readings.all().size(), 1U) << c.line;
    EXPECT_DOUBLE_EQ(readings.all()[0].value, c.want) << c.line;
    EXPECT_EQ(readings.all()[0].trust, Trust::kPattern);
  }
}

TEST(UserPatterns, TextWithoutANumberIsCounted) {
  const auto patterns = UserPatterns::Make({{"a", "took=(\\S*)", Measure::kStepSeconds}});
  LineReadings readings;
  std::int64_t not_numbers = 0;
  for (const char* line : {"took=nan", "took=", "took=inf", "took=long", "took=1.2.3", "took=\xff\xfe"}) {
    patterns->Read(line, readings, not_numbers);
  }
  EXPECT_TRUE(readings.empty());
  EXPECT_EQ(not_numbers, 6);
}

TEST(UserPatterns, NothingBacktracks) {
  const auto patterns = UserPatterns::Make({{"evil", "^(a+)+$", Measure::kStep}});
  LineReadings readings;
  std::int64_t not_numbers = 0;
  const auto start = std::chrono::steady_clock::now();
  patterns->Read(std::string(10000, 'a') + "!", readings,
                 not_numbers);  // Takes 2^10000 trials where it does.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_TRUE(readings.empty());
}

}  // namespace
}  // namespace grus
