// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace grus {
namespace {

// "value/total label" of each number, as text.
std::string FiguresOf(std::string_view text) {
  Figures figures;
  std::string result;
  for (const Figure& figure : FindFigures(text, figures)) {
    if (!result.empty()) result += "; ";
    result += std::to_string(figure.value);
    result.erase(result.find_last_not_of('0') + 1);
    if (result.ends_with('.')) result.pop_back();
    if (figure.total > 0) result += "/" + std::to_string(static_cast<int>(figure.total));
  }
  return result;
}

TEST(Figures, ReadsNumbersAsTheyArePrinted) {
  struct Case {
    const char* text;
    const char* want;
  };
  const Case kCases[] = {
      {"time: 0.5123", "0.5123"},
      {"1.5e+02 1E-2 3e2", "150; 0.01; 300"},
      {"1,234.5 img/s", "1234.5"},
      {"1,234,567 tokens", "1234567"},
      {"1,2,3", "1; 2; 3"},
      {"1,2345", "1; 2345"},
      {"12/60 [50/7330] 10 / 20", "12/60; 50/7330; 10/20"},
      {"45ms/step", "45"},
      {"100.", "100"},
      {"", ""},
      {"99999999999999999999999999999", ""},
  };
  for (const Case& c : kCases) EXPECT_EQ(FiguresOf(c.text), c.want) << c.text;
}

TEST(Figures, AMinusSignIsOneOnlyRightBeforeANumberOnItsOwn) {
  struct Case {
    const char* text;
    const char* want;
  };
  for (const Case& c : {Case{"-3", "-3"}, Case{"lr: -1.5", "-1.5"}, Case{"(-2)", "-2"}, Case{"a=-4", "-4"},
                        Case{"12 - 45ms", "12; 45"}, Case{"run-3", "3"}, Case{"1e-3", "0.001"}}) {
    EXPECT_EQ(FiguresOf(c.text), c.want) << c.text;
  }
}

TEST(Figures, TimesDatesVersionsAddressesAndNamesAreNone) {
  for (const char* text : {"00:12", "1:02:03", "2026-01-02", "2026/01/02", "10.0.0.1", "v1.2", "ResNet50", "gpu0",
                           "fp16_run2", "[00:12<00:23]"}) {
    EXPECT_EQ(FiguresOf(text), "") << text;
  }
}

TEST(Figures, ALabelEndsAtSeparatorsAndAtTheNumberBefore) {
  struct Case {
    const char* text;
    std::size_t index;
    const char* label;
  };
  const Case kCases[] = {
      {"loss: 3.1, step time: 0.5", 1, "step time"},
      {"step 100 loss 3.1", 1, "loss"},
      {"3s/epoch - 53ms/step", 1, ""},
      {"Total img/sec on 8 GPU(s): 1920.8", 0, "Total img/sec on 8 GPU(s)"},
      {"| ms/batch 12.33", 0, "ms/batch"},
  };
  for (const Case& c : kCases) {
    Figures figures;
    std::string label(FindFigures(c.text, figures)[c.index].label);
    label.erase(0, std::min(label.find_first_not_of(' '), label.size()));
    EXPECT_EQ(label, c.label) << c.text;
  }
}

TEST(Figures, TheResolutionIsHalfTheLastPlace) {
  struct Case {
    const char* text;
    double want;
  };
  for (const Case& c : {Case{"45", 0.5}, Case{"0.512", 0.0005}, Case{"1.5e3", 50}, Case{"1,234", 0.5}}) {
    Figure figure;
    ReadNumber(c.text, figure);
    EXPECT_DOUBLE_EQ(figure.resolution, c.want) << c.text;
  }
}

TEST(Words, SplitsNamesInAllTheirSpellings) {
  for (const char* text : {"samples/sec", "samples_per_sec", "SamplesPerSec", "samples per sec", "Samples / Sec"}) {
    const Words words(text);
    ASSERT_EQ(words.size(), 3U) << text;
    EXPECT_EQ(words[0], "samples") << text;
    EXPECT_EQ(words[1], "per") << text;
    EXPECT_EQ(words[2], "sec") << text;
  }
  EXPECT_EQ(Words("\xc2\xb5s/step")[0], "us");
  EXPECT_EQ(Words(std::string(1000, '/')).size(), Words::kMost);
}

}  // namespace
}  // namespace grus
