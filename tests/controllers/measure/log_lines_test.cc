// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/log_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clientlib/model/time.h"

namespace grus {
namespace {

using Texts = std::vector<std::string>;

Texts Read(LogLines& lines, std::string_view bytes) {
  Texts texts;
  lines.Add(bytes, [&](const LogLine& line) {
    texts.push_back((line.rank ? std::to_string(*line.rank) + "|" : "") + std::string(line.text));
  });
  return texts;
}

WallTime At(std::string_view text) { return kube::ParseTime(text)->value; }

const char kTwoLines[] =
    "2026-01-02T03:04:05.000000001Z one\n"
    "2026-01-02T03:04:05.000000002Z two\n";

TEST(LogLines, ChunksOfAnySizeGiveTheSameLines) {
  const std::string bytes = std::string(kTwoLines) + "2026-01-02T03:04:06Z a\rb\r\n";
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    LogLines lines;
    Texts texts;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      for (const std::string& text : Read(lines, std::string_view(bytes).substr(at, size))) texts.push_back(text);
    }
    EXPECT_EQ(texts, (Texts{"one", "two", "a", "b"})) << "chunks of " << size;
  }
}

TEST(LogLines, RedrawsShareTheTimeOfTheirLine) {
  LogLines lines;
  std::vector<WallTime> times;
  lines.Add("2026-01-02T03:04:05.5Z  10%\r 20%\r 30%\n",
            [&](const LogLine& line) { times.push_back(line.time.value()); });
  EXPECT_EQ(times, std::vector<WallTime>(3, At("2026-01-02T03:04:05.5Z")));
}

TEST(LogLines, TakesOutColoursBackspacesAndRanks) {
  struct Case {
    const char* text;
    const char* want;
  };
  const Case kCases[] = {
      {"\x1b[31mstep: 5\x1b[0m", "step: 5"},
      {"\x1b]0;title\astep", "step"},
      {"\x1b]0;title\x1b\\step", "step"},
      {"\b\b\b5/60", "5/60"},
      {"step\x1b", "step"},
      {"step\x1b[", "step"},
      {"[1,3]<stdout>:step 5", "3|step 5"},
      {"[2]<stderr>:step 5", "2|step 5"},
      {"[default0]:step 5", "0|step 5"},
      {"[rank1]:step 5", "1|step 5"},
      {"[5]: step", "[5]: step"},
      {"[1,99999999999]<stdout>:step", "[1,99999999999]<stdout>:step"},
      {"bytes \xff\xfe\xc3", "bytes \xff\xfe\xc3"},
  };
  for (const Case& c : kCases) {
    LogLines lines;
    EXPECT_EQ(Read(lines, std::string("2026-01-02T03:04:05Z ") + c.text + "\n"), Texts{c.want}) << c.text;
  }
}

TEST(LogLines, LinesWithoutATimeAreRead) {
  LogLines lines;
  EXPECT_EQ(Read(lines, "plain\n2026-13-02T03:04:05Z month\n\n2026-01-02T03:04:05Z\n"),
            (Texts{"plain", "2026-13-02T03:04:05Z month"}));
  EXPECT_EQ(lines.lines(), 4);
}

TEST(LogLines, DropsTheRestOfAnOverlongLine) {
  LogLines lines;
  Texts texts = Read(lines, "2026-01-02T03:04:05Z ");
  const std::string chunk(1 << 20, 'x');
  for (int i = 0; i < 64; ++i) Read(lines, chunk);
  texts = Read(lines, "\n2026-01-02T03:04:06Z next\n");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(texts[0].size() + 21, LogLines::kMaxLine);
  EXPECT_EQ(texts[1], "next");
}

TEST(LogLines, ReadsNoLineTwiceAfterReconnecting) {
  LogLines lines;
  Read(lines, kTwoLines);
  Read(lines, "2026-01-02T03:04:05.000000002Z three\n2026-01-02T03:04:05.9Z hal");

  lines.Resume();
  const Texts again = Read(lines, std::string(kTwoLines) +
                                      "2026-01-02T03:04:05.000000002Z three\n"
                                      "2026-01-02T03:04:05.000000002Z four\n"
                                      "2026-01-02T03:04:05.9Z half\n");

  EXPECT_EQ(again, (Texts{"four", "half"}));
}

TEST(LogLines, ReconnectingInTheMiddleOfSkippedLinesSkipsThemAgain) {
  LogLines lines;
  Read(lines, kTwoLines);
  lines.Resume();
  EXPECT_EQ(Read(lines, "2026-01-02T03:04:05.000000001Z one\n2026-01-02T03:04:05.0000"), Texts{});
  lines.Resume();
  EXPECT_EQ(Read(lines, std::string(kTwoLines) + "2026-01-02T03:04:07Z new\n"), Texts{"new"});
}

TEST(LogLines, ALineThatTheRotationLostDoesNotStopTheReading) {
  LogLines lines;
  Read(lines, kTwoLines);
  lines.Resume();
  EXPECT_EQ(Read(lines, "2026-01-02T03:04:09Z later\n"), Texts{"later"});
}

TEST(LogLines, LinesAreReadAfterAClockWasSetBack) {
  LogLines lines;
  Read(lines, kTwoLines);
  EXPECT_EQ(Read(lines, "2026-01-02T02:00:00Z back\n"), Texts{"back"});
  lines.Resume();
  EXPECT_EQ(Read(lines, "2026-01-02T01:00:00Z further back\n"), Texts{"further back"});
}

}  // namespace
}  // namespace grus
