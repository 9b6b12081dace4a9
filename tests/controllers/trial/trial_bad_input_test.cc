// SPDX-License-Identifier: Apache-2.0
// What a TrialJob answers to input that nobody hoped for: its plan and the reader of its log together.
#include <gmock/gmock.h>

#include <functional>
#include <map>

#include "controllers/measure/speed_reader.h"
#include "tests/controllers/measure/log_writer.h"
#include "tests/controllers/trial/trial_world.h"

namespace grus {
namespace {

using testing::At;
using ::testing::HasSubstr;
using testing::TestTrialJob;
using testing::TrialWorld;

using Print = std::function<void(LogWriter& log)>;  // What is printed in one second.

std::vector<SpeedPattern> PatternsOf(const api::TrialJob& job) {
  std::vector<SpeedPattern> patterns;
  for (const api::LogPattern& pattern : job.spec.measure.patterns) {
    patterns.push_back({pattern.name, pattern.regex, Measure::kStepSeconds});
  }
  return patterns;
}

// Lets the TrialJob run until it has ended, or says that it is stuck.
TrialWorld RunToTheEnd(const api::TrialJob& job, const Print& print) {
  TrialWorld world(job);
  const auto patterns = UserPatterns::Make(PatternsOf(job));
  if (!patterns) world.view().pattern_error = patterns.error().message();
  std::map<std::string, SpeedReader> readers;
  for (; world.now < 1000; ++world.now) {
    world.Pass();
    if (world.status().completion_time || kube::IsConditionTrue(world.status().conditions, "Stalled")) break;
    for (const std::string& name : world.Active()) {
      auto reader = readers.find(name);
      if (reader == readers.end()) {
        SpeedReaderOptions options;
        options.patterns = PatternsOf(job);
        options.started = At(world.now).value;
        options.slice = std::chrono::hours(24);
        reader = readers.emplace(name, *SpeedReader::Make(options)).first;
      }
      LogWriter log{At(world.now).value, {}};
      print(log);
      reader->second.Add(log.bytes);
      world.run(name).speed = reader->second.Observe(At(world.now).value);
    }
  }
  return world;
}

bool IsNothingLeft(TrialWorld& world) {
  for (const auto& [name, run] : world.view().runs) {
    if (run.child || run.pods.all > 0) return false;
  }
  return world.Active().empty();
}

Print Says(std::string line) {
  return [line = std::move(line)](LogWriter& log) { log.Line(line); };
}
void SaysNothing(LogWriter&) {}

TEST(TrialBadInput, IsAnsweredSoonInWordsAndNothingIsLeft) {
  struct Case {
    const char* what;
    const char* pattern;  // May be null.
    Print print;
    std::int64_t within;  // Seconds.
    const char *reason, *message;
  };
  const char *const kNone = "NothingMeasured", *const kNoNumber = "measure.patterns match no number";
  const auto whole = [](LogWriter& log) { log.bytes = std::string(1 << 16, 'x'); };
  const Case cases[] = {
      {"a pattern that is none", "took=(", Says("took=1"), 0, "InvalidPattern", "missing )"},
      {"a pattern that finds words", "took=(\\w+)", Says("took=long"), 60, kNone, kNoNumber},
      {"a pattern that finds no number", "took=(\\w+)", Says("took=NaN"), 60, kNone, kNoNumber},
      // An engine that tries one way after the other would take 2^10000 steps.
      {"a pattern to be lost in", "(a+)+$", Says(std::string(10000, 'a') + "!"), 60, kNone,
       "measure.patterns match none of them"},
      {"a log without lines", nullptr, whole, 60, kNone, "its output has no line end"},
      {"no output", nullptr, SaysNothing, 60, kNone, "PYTHONUNBUFFERED=1"},
      {"a speed that is no number", nullptr, Says("step 1 speed nan samples/s"), 60, kNone,
       "as in \"step 1 speed nan samples/s\"; print the speed, or set measure.patterns that match it"},
      {"a speed that is infinite", nullptr, Says("speed: inf img/s"), 60, kNone, "is zero, negative, infinite or NaN"},
      {"a speed of zero", nullptr, Says("speed 0.0 samples/s"), 60, kNone,
       "every speed that came in 59 s (60 readings)"},
      {"a speed below zero", nullptr, Says("speed -1.5 samples/s"), 60, kNone, "as in \"speed -1.5 samples/s\""},
      {"a pattern that finds zeros", "took=(\\w+)", Says("took=0"), 60, kNone,
       "measure.patterns must match numbers above zero"},
      {"a speed of zero in bytes that are no text", nullptr, Says("\xff speed 0.0 samples/s"), 60, kNone,
       "\uFFFD speed"},
      {"binary output", nullptr, Says(std::string("\0\xff\x1b[", 4)), 60, kNone, "no speed in any of them"},
  };
  for (const Case& c : cases) {
    api::TrialJob job = TestTrialJob({1});
    job.spec.budget.per_trial_seconds = 125;
    job.spec.measure.startup_seconds = 60;
    if (c.pattern != nullptr) job.spec.measure.patterns = {{"p", c.pattern, api::SpeedKind::kStepSeconds}};

    TrialWorld world = RunToTheEnd(job, c.print);

    EXPECT_LE(world.now, c.within + 1) << c.what;
    EXPECT_EQ(world.status().phase, api::TrialJobPhase::kFailed) << c.what;
    EXPECT_EQ(world.ReadyReason(), c.reason) << c.what;
    EXPECT_THAT(world.ReadyMessage(), HasSubstr(c.message)) << c.what;
    EXPECT_TRUE(kube::IsConditionTrue(world.status().conditions, "Stalled")) << c.what;
    EXPECT_TRUE(world.status().curve.empty()) << c.what;
    EXPECT_TRUE(IsNothingLeft(world)) << c.what;
  }
}

TEST(TrialBadInput, ASpeedMayComeLateAndUntilThenItIsToldWhatCame) {
  struct Case {
    const char* what;
    Print print;
    const char* message;
  };
  for (const Case& c : {Case{"loading", Says("Loading checkpoint shards"), "no speed in any of them"},
                        Case{"nothing", SaysNothing, "run it with PYTHONUNBUFFERED=1"},
                        Case{"zeros", Says("speed 0.0 samples/s"), "readings refused so far"}}) {
    int second = 0;
    std::string told;
    TrialWorld world(TestTrialJob({1}));
    SpeedReaderOptions options;
    options.started = At(0).value;
    SpeedReader reader = *SpeedReader::Make(options);
    for (; world.now < 400 && !world.status().completion_time; ++world.now) {
      world.Pass();
      if (world.Active().empty()) continue;
      LogWriter log{At(world.now).value, {}};
      if (world.now < 300) c.print(log);
      else log.Line("step " + std::to_string(++second) + " step time 1.0 s");
      reader.Add(log.bytes);
      world.run(world.Active().front()).speed = reader.Observe(At(world.now).value);
      if (world.now == 60) told = world.ReadyMessage();
    }
    EXPECT_THAT(told, HasSubstr(c.message)) << c.what;
    EXPECT_EQ(world.status().phase, api::TrialJobPhase::kSucceeded) << c.what << ": " << world.ReadyMessage();
  }
}

}  // namespace
}  // namespace grus
