// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace kube {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// What `write` logs, without its time.
std::string Logged(LogFormat format, const std::function<void(const Log&)>& write, LogLevel level = LogLevel::kInfo) {
  ::testing::internal::CaptureStderr();
  {
    const Log log(level, format);
    write(log);
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, TextLineIsTimeLevelMessageAndFields) {
  const std::string line = Logged(LogFormat::kText, [](const Log& log) {
    log.Info("workers resized", {{"job", "team-a/bert"}, {"from", 8}, {"is_ready", true}});
  });
  EXPECT_THAT(line, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "
                                 "INFO workers resized job=team-a/bert from=8 is_ready=true\n"));
}

TEST(Log, JsonLineIsOneObject) {
  const std::string line = Logged(LogFormat::kJson, [](const Log& log) {
    log.Warn("workers resized", {{"job", "team-a/bert"}, {"from", 8}, {"ratio", 0.5}, {"is_ready", false}});
  });
  EXPECT_THAT(line, MatchesRegex("\\{\"time\":\"[^\"]+Z\",\"level\":\"warn\",\"message\":\"workers resized\","
                                 "\"job\":\"team-a/bert\",\"from\":8,\"ratio\":0.500000,\"is_ready\":false\\}\n"));
}

TEST(Log, EachLevelHasItsName) {
  const auto write_all = [](const Log& log) {
    log.Debug("a");
    log.Info("b");
    log.Warn("c");
    log.Error("d");
  };
  const std::string text = Logged(LogFormat::kText, write_all, LogLevel::kDebug);
  for (const char* want : {" DEBUG a\n", " INFO b\n", " WARN c\n", " ERROR d\n"}) EXPECT_THAT(text, HasSubstr(want));
  const std::string json = Logged(LogFormat::kJson, write_all, LogLevel::kDebug);
  for (const char* want : {R"("level":"debug",)", R"("level":"info",)", R"("level":"warn",)", R"("level":"error",)"}) {
    EXPECT_THAT(json, HasSubstr(want));
  }
}

TEST(Log, LinesBelowTheLevelAreNotWritten) {
  const auto write_all = [](const Log& log) {
    log.Debug("a");
    log.Info("b");
    log.Warn("c");
    log.Error("d");
  };
  EXPECT_THAT(Logged(LogFormat::kText, write_all, LogLevel::kError), EndsWith(" ERROR d\n"));
  EXPECT_EQ(Logged(LogFormat::kText, write_all, LogLevel::kOff), "");
}

TEST(Log, JsonEscapesWhatComesFromOutside) {
  const std::string line = Logged(LogFormat::kJson, [](const Log& log) {
    log.Info("m\"\\",
             {{"a", "quote \" backslash \\ slash /"}, {"b\n", "x\r\n\ty"}, {"c", std::string("\x01\x1f\0z", 4)}});
  });
  EXPECT_THAT(line, EndsWith(R"("message":"m\"\\","a":"quote \" backslash \\ slash /","b\n":"x\r\n\ty",)"
                             R"("c":"\u0001\u001f\u0000z"})"
                             "\n"));
}

TEST(Log, BracesAndPercentSignsAreNoFormat) {
  const std::string line = Logged(LogFormat::kText, [](const Log& log) { log.Info("{} %v %d", {{"x", "{0}%s"}}); });
  EXPECT_THAT(line, EndsWith("{} %v %d x={0}%s\n"));
}

TEST(Log, TextValuesThatWouldBreakTheLineAreQuoted) {
  struct Case {
    std::string value, want;
  };
  for (const Case& c :
       {Case{"plain", "plain"}, Case{"", R"("")"}, Case{"two words", R"("two words")"}, Case{"a=b", R"("a=b")"},
        Case{"a\nb", R"("a\nb")"}, Case{"say \"x\"", R"("say \"x\"")"}, Case{"\x1b[31m", R"("\u001b[31m")"}}) {
    const std::string line = Logged(LogFormat::kText, [&](const Log& log) { log.Info("m", {{"v", c.value}}); });
    EXPECT_THAT(line, EndsWith("m v=" + c.want + "\n"));
  }
}

// A name or message of an object must not forge an entry, nor turn what the reader sees.
TEST(Log, NothingFromOutsideForgesALineOfText) {
  for (const std::string_view evil : {"\n", "\r", "\x1b[2K", "\x7f", "\u0085", "\u009b31m", "\u2028", "\u2029",
                                      "\u061c", "\u200e", "\u202e", "\u2066", "\x9b", "\xe2\x80"}) {
    const std::string text = "a" + std::string(evil) + "b";
    const std::string line = Logged(LogFormat::kText, [&](const Log& log) { log.Info(text, {{"v", text}}); });
    EXPECT_EQ(line.find(evil), evil == "\n" ? line.size() - 1 : std::string::npos) << line;
    EXPECT_THAT(line, HasSubstr(" v=\"a\\"));
    EXPECT_THAT(line, HasSubstr(" INFO a\\"));
  }
}

TEST(Log, ANumberThatJsonDoesNotKnowIsAString) {
  const std::string line = Logged(LogFormat::kJson, [](const Log& log) {
    log.Info("m", {{"a", std::nan("")}, {"b", HUGE_VAL}});
  });
  EXPECT_THAT(line, EndsWith(R"("a":"nan","b":"inf"})"
                             "\n"));
}

}  // namespace
}  // namespace kube
