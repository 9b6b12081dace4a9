// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace grus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

CurvePoint Point(int replicas, double throughput, PredictionSource source) {
  CurvePoint point;
  point.size = {1, replicas, 32};
  point.source = source;
  point.throughput = throughput;
  point.low = 0.8 * throughput;
  point.high = 1.2 * throughput;
  return point;
}

std::vector<CurvePoint> SomeCurve() {
  return {Point(1, 100, PredictionSource::kMeasured), Point(2, 190, PredictionSource::kMeasured),
          Point(4, 350, PredictionSource::kInterpolated), Point(8, 600, PredictionSource::kExtrapolated),
          Point(16, 900, PredictionSource::kUnknown)};
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Characters of UTF-8 text: bytes that do not continue one.
std::size_t Characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TEST(ChartAsText, FitsIntoTheGivenSize) {
  for (const auto& [width, height] : {std::pair{72, 20}, {40, 10}, {120, 40}}) {
    std::stringstream lines(ChartAsText(SomeCurve(), {.title = "job", .knee = 8, .width = width, .height = height}));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_LE(Characters(line), static_cast<std::size_t>(std::max(width, 68))) << line;
    }
    EXPECT_EQ(count, height);
  }
}

TEST(ChartAsText, MarksMeasuredPredictedAndUnknownSizes) {
  const std::string text = ChartAsText(SomeCurve(), {.title = "team-a/bert"});
  EXPECT_EQ(CountOf(text, "●"), 2u + 1u);  // One in the legend.
  EXPECT_EQ(CountOf(text, "○"), 1u + 1u);  // Interpolated.
  EXPECT_EQ(CountOf(text, "◇"), 1u + 1u);  // Extrapolated.
  EXPECT_EQ(CountOf(text, "?"), 1u + 1u);
  EXPECT_THAT(text, HasSubstr("team-a/bert"));
  EXPECT_THAT(text, HasSubstr("samples/s"));
  EXPECT_THAT(text, HasSubstr("GPUs"));
  EXPECT_THAT(text, HasSubstr("░"));
}

TEST(ChartAsSvg, MarksMeasuredPredictedAndUnknownSizes) {
  const std::string svg = ChartAsSvg(SomeCurve(), {.title = "bert"});
  EXPECT_EQ(CountOf(svg, "fill=\"#1f5fa8\" stroke="), 2u + 1u);  // Full circles.
  EXPECT_EQ(CountOf(svg, "fill=\"white\" stroke="), 2u + 2u);    // Empty circles and diamonds.
  EXPECT_EQ(CountOf(svg, "<circle"), 3u + 2u);
  EXPECT_EQ(CountOf(svg, ">?</text>"), 1u + 1u);
  EXPECT_EQ(CountOf(svg, "stroke-dasharray=\"6 4\""), 1u);  // The extrapolated piece.
  EXPECT_EQ(CountOf(svg, "<polygon"), 1u);
  EXPECT_THAT(svg, HasSubstr("samples/s"));
  EXPECT_THAT(svg, HasSubstr(">GPUs<"));
}

TEST(Chart, PointsAtTheKneeWhereTheCurveReachesIt) {
  struct Case {
    std::optional<int> knee;
    bool is_shown;
  };
  for (const Case& c : {Case{8, true}, Case{16, true}, Case{17, false}, Case{0, false}, Case{{}, false}}) {
    const std::string text = ChartAsText(SomeCurve(), {.title = "bert", .knee = c.knee});
    const std::string svg = ChartAsSvg(SomeCurve(), {.title = "bert", .knee = c.knee});
    EXPECT_EQ(CountOf(text, "▲"), c.is_shown ? 2u : 0u);  // One on the axis, one that says what it is.
    EXPECT_EQ(CountOf(svg, ">knee: "), c.is_shown ? 1u : 0u);
  }
}

TEST(Chart, SaysTheUnit) {
  const ChartOptions options{.title = "bert", .unit = "batches/s"};
  EXPECT_THAT(ChartAsText(SomeCurve(), options), HasSubstr("\nbatches/s\n"));
  EXPECT_THAT(ChartAsSvg(SomeCurve(), options), HasSubstr("(batches/s)"));
}

TEST(ChartAsSvg, TitlesCannotAddElements) {
  const std::string svg = ChartAsSvg(SomeCurve(), {.title = "<script>&", .unit = "<script>"});
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;"));
}

TEST(Chart, NothingAndOnePointAndNonsenseAreDrawnToo) {
  EXPECT_EQ(ChartAsText({}, {}), "");
  EXPECT_EQ(ChartAsSvg({}, {}), "");
  CurvePoint nonsense = Point(1, 0, PredictionSource::kUnknown);
  nonsense.high = std::numeric_limits<double>::infinity();
  for (const CurvePoint& point : {Point(1, 100, PredictionSource::kMeasured), nonsense}) {
    EXPECT_THAT(ChartAsText({point}, {}), HasSubstr("GPUs"));
    EXPECT_THAT(ChartAsSvg({point}, {}), Not(testing::AnyOf(HasSubstr("nan"), HasSubstr("inf"))));
  }
}

TEST(Chart, AWideBandWithoutAnAnswerDoesNotFlattenTheRest) {
  std::vector<CurvePoint> curve = SomeCurve();
  curve.back().high = 1e9;
  EXPECT_LE(HighestShown(curve), 1.5 * 900);
}

TEST(AxisMarks, AreRoundAndWithinTheRange) {
  EXPECT_THAT(AxisMarks(64, 10), ElementsAre(0, 10, 20, 30, 40, 50, 60));
  EXPECT_THAT(AxisMarks(8, 4), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(AxisMarks(0, 4), ElementsAre(0));
}

TEST(ShortNumber, HasAUnitForThousands) {
  struct Case {
    double value;
    const char* want;
  };
  for (const Case& c : {Case{0, "0"}, Case{0.25, "0.25"}, Case{64, "64"}, Case{999, "999"}, Case{999.9, "1k"},
                        Case{1500, "1.5k"}, Case{2e6, "2M"}}) {
    EXPECT_EQ(ShortNumber(c.value), c.want);
  }
}

}  // namespace
}  // namespace grus
