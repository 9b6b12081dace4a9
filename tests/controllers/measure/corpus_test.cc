// SPDX-License-Identifier: Apache-2.0
// The logs of corpus/ are read as well as corpus/README.md says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "controllers/measure/speed_reader.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

constexpr double kTolerance = 0.1;
constexpr double kShareWithinTolerance = 0.95;

// What a log tells, worked out from how it was made: one or several measures by their names.
struct Expected {
  std::string log;
  std::map<std::string, double> values;
};

std::filesystem::path Corpus() { return kit::TreePath("tests/controllers/measure/corpus"); }

std::vector<Expected> ReadExpected() {
  std::ifstream file(Corpus() / "expected.csv");
  std::vector<Expected> all;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream fields(line);
    std::string log, measure;
    std::getline(fields, log, ',');
    std::getline(fields, measure, ',');
    if (all.empty() || all.back().log != log) all.push_back({.log = log, .values = {}});
    fields >> all.back().values[measure];
  }
  return all;
}

std::string ReadLog(const std::string& name) {
  std::ifstream file(Corpus() / (name + ".txt"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, double> ValuesOf(const SpeedObservation& seen, std::string& main) {
  std::map<std::string, double> values;
  const auto note = [&](const char* name, const std::optional<MeasuredSpeed>& speed) {
    if (!speed) return;
    values[name] = speed->value();
    if (seen.main() == &*speed) main = name;
  };
  note("step", seen.step);
  note("throughput", seen.throughput);
  note("gpu_throughput", seen.gpu_throughput);
  note("token_throughput", seen.token_throughput);
  note("epoch", seen.epoch);
  return values;
}

// None: all that is expected is seen, and the main speed is one of it.
std::string Difference(const Expected& expected, const SpeedObservation& seen) {
  std::string main;
  const std::map<std::string, double> values = ValuesOf(seen, main);
  for (const auto& [measure, value] : expected.values) {
    const auto found = values.find(measure);
    if (found == values.end()) return expected.log + ": no " + measure;
    if (std::abs(found->second / value - 1) <= kTolerance) continue;
    return expected.log + ": " + measure + " " + std::to_string(found->second) + " instead of " + std::to_string(value);
  }
  return expected.values.contains(main) ? "" : expected.log + ": the main speed is " + main;
}

TEST(Corpus, TheSpeedIsWithinATenthForNearlyAllFormats) {
  const std::vector<Expected> all = ReadExpected();
  ASSERT_GE(all.size(), 60U);
  std::vector<std::string> differences;
  for (const Expected& expected : all) {
    const std::string log = ReadLog(expected.log);
    ASSERT_FALSE(log.empty()) << expected.log;
    SpeedReader reader = *SpeedReader::Make({});
    reader.Add(log);
    const std::string difference = Difference(expected, reader.Observe({}));
    if (!difference.empty()) differences.push_back(difference);
  }
  const double within = 1 - static_cast<double>(differences.size()) / static_cast<double>(all.size());
  EXPECT_GE(within, kShareWithinTolerance) << testing::PrintToString(differences);
  RecordProperty("differences", testing::PrintToString(differences));
}

TEST(Corpus, AByteAtATimeIsReadTheSame) {
  for (const Expected& expected : ReadExpected()) {
    const std::string log = ReadLog(expected.log);
    SpeedReader whole = *SpeedReader::Make({}), bytes = *SpeedReader::Make({});
    whole.Add(log);
    for (const char& c : log) bytes.Add({&c, 1});
    const SpeedObservation a = whole.Observe({}), b = bytes.Observe({});
    ASSERT_EQ(a.main() != nullptr, b.main() != nullptr) << expected.log;
    if (!a.main()) continue;
    EXPECT_DOUBLE_EQ(a.main()->value(), b.main()->value()) << expected.log;
  }
}

TEST(Corpus, ALogThatBeginsInTheMiddleIsReadTheSame) {
  std::vector<std::string> differences;
  const std::vector<Expected> all = ReadExpected();
  std::size_t read = 0;
  for (const Expected& expected : all) {
    const std::string log = ReadLog(expected.log);
    if (std::count(log.begin(), log.end(), '\n') < 40) continue;  // Half of it has to tell a speed.
    ++read;
    SpeedReader reader = *SpeedReader::Make({});
    reader.Add(std::string_view(log).substr(log.size() / 3));
    const std::string difference = Difference(expected, reader.Observe({}));
    if (!difference.empty()) differences.push_back(difference);
  }
  ASSERT_GT(read, 20U);
  const double within = 1 - static_cast<double>(differences.size()) / static_cast<double>(read);
  EXPECT_GE(within, kShareWithinTolerance) << testing::PrintToString(differences);
}

}  // namespace
}  // namespace grus
