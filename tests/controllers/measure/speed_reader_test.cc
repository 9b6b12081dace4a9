// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/speed_reader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <random>
#include <string>

#include "tests/controllers/measure/log_writer.h"

namespace grus {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::string Number(double value) { return std::to_string(value); }

SpeedReader Reader(const LogWriter& log, SpeedReaderOptions options = {}) {
  options.started = log.now;
  kube::Result<SpeedReader> reader = SpeedReader::Make(options);
  EXPECT_TRUE(reader.ok());
  return std::move(*reader);
}

SpeedObservation ReadAll(const LogWriter& log, const SpeedReaderOptions& options = {}) {
  SpeedReader reader = *SpeedReader::Make(options);
  reader.Add(log.bytes);
  return reader.Observe(log.now);
}

// `count` lines, one a step of `step_seconds`.
void Steps(LogWriter& log, int count, double step_seconds, const std::string& behind = "") {
  for (int i = 0; i < count; ++i) {
    log.Wait(step_seconds);
    log.Line("step " + std::to_string(i) + behind);
  }
}

TEST(SpeedReader, SaysThatThereIsNoOutputAfterThePatience) {
  const LogWriter log;
  const SpeedReader reader = Reader(log);
  EXPECT_EQ(reader.Observe(log.now + seconds(29)).state, SpeedState::kWaiting);
  EXPECT_EQ(reader.Observe(log.now + seconds(30)).state, SpeedState::kSilent);
}

TEST(SpeedReader, SaysThatNothingMatchedFromTheFirstOutputOn) {
  LogWriter log;
  SpeedReader reader = Reader(log);
  log.Wait(20);
  log.Line("hello");
  reader.Add(log.bytes);
  EXPECT_EQ(reader.Observe(log.now + seconds(29)).state, SpeedState::kWaiting);
  EXPECT_EQ(reader.Observe(log.now + seconds(30)).state, SpeedState::kNotMatched);
}

TEST(SpeedReader, WhatTheUserCallsTheWarmUpDoesNotCount) {
  LogWriter log;
  SpeedReaderOptions options;
  options.warm_up = seconds(20);
  SpeedReader reader = Reader(log, options);
  for (int i = 0; i < 60; ++i) {
    log.Wait(1);
    log.Line("speed " + Number(i < 20 ? 10 : 100 + i % 2) + " samples/s");
  }
  reader.Add(log.bytes);
  const SpeedObservation seen = reader.Observe(log.now);
  ASSERT_TRUE(seen.throughput);
  EXPECT_EQ(seen.throughput->steady.warm_up_samples, 0);
  EXPECT_NEAR(seen.throughput->value(), 100.5, 1);
  EXPECT_EQ(seen.span, seconds(39));
}

TEST(SpeedReader, GoesOnWhenTheClockOfTheNodeIsSetBack) {
  LogWriter log;
  SpeedReader reader = Reader(log);
  for (int i = 0; i < 40; ++i) {
    log.Wait(i == 20 ? -3600 : 1);
    log.Line("speed " + Number(100 + i % 2) + " samples/s");
  }
  reader.Add(log.bytes);
  const SpeedObservation seen = reader.Observe(log.now);
  ASSERT_TRUE(seen.throughput);
  EXPECT_EQ(seen.throughput->steady.samples + seen.throughput->steady.warm_up_samples, 40);
  EXPECT_EQ(seen.span, seconds(38));
}

TEST(SpeedReader, NotesWhatSaysThatAGpuIsOutOfMemory) {
  for (const char* line : {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
                           "RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[64,1024]",
                           "failed to allocate 1.5G: CUDA_ERROR_OUT_OF_MEMORY", "step 3 loss 2.3"}) {
    LogWriter log;
    SpeedReader reader = Reader(log);
    log.Wait(1);
    log.Line(line);
    reader.Add(log.bytes);
    EXPECT_EQ(reader.Observe(log.now).counts.out_of_memory, std::string_view(line).starts_with("step") ? 0 : 1) << line;
  }
}

TEST(SpeedReader, ANodeWhoseClockIsAheadIsNotWaitedForLonger) {
  LogWriter log;
  SpeedReader reader = Reader(log);
  const WallTime started = log.now;
  log.Wait(3600);
  log.Line("hello");
  reader.Add(log.bytes);
  EXPECT_EQ(reader.Observe(started + seconds(31)).state, SpeedState::kWaiting);
  EXPECT_EQ(reader.Observe(started + minutes(61)).state, SpeedState::kSliceSpent);
}

TEST(SpeedReader, TheTrialMayStopOnceTheSpeedIsPrecise) {
  LogWriter log;
  SpeedReader reader = Reader(log);
  Steps(log, 3, 0.5);
  reader.Add(log.bytes);
  EXPECT_EQ(reader.Observe(log.now).state, SpeedState::kMeasuring);
  log.bytes.clear();
  for (int i = 3; i < 40; ++i) {
    log.Wait(i % 2 ? 0.49 : 0.51);
    log.Line("step " + std::to_string(i));
  }
  reader.Add(log.bytes);
  const SpeedObservation seen = reader.Observe(log.now);
  EXPECT_EQ(seen.state, SpeedState::kPrecise);
  EXPECT_NEAR(seen.step->value(), 0.5, 0.01);
}

TEST(SpeedReader, TheTrialHasToStopWhenItsSliceIsSpent) {
  LogWriter log;
  SpeedReader reader = Reader(log, {.slice = minutes(2)});
  EXPECT_NE(reader.Observe(log.now + seconds(119)).state, SpeedState::kSliceSpent);
  EXPECT_EQ(reader.Observe(log.now + seconds(120)).state, SpeedState::kSliceSpent);
}

TEST(SpeedReader, AStatedStepTimeComesBeforeCountedSteps) {
  LogWriter log;
  Steps(log, 30, 0.5, " step_time 0.45");
  const SpeedObservation seen = ReadAll(log);
  EXPECT_NEAR(seen.step->value(), 0.45, 1e-6);
  EXPECT_FALSE(seen.step->is_counted);
}

TEST(SpeedReader, AStepTimeThatIsPrintedTooCoarselyComesBehindCountedSteps) {
  LogWriter log;
  Steps(log, 30, 1.4, " 1s/step");
  EXPECT_NEAR(ReadAll(log).step->value(), 1.4, 1e-6);
}

TEST(SpeedReader, AStepTimeTooRareForAnIntervalComesBehindOneThatHasOne) {
  LogWriter log;
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (int i = 0; i < 20; ++i) {
      log.Wait(0.5);
      log.Line("iter " + std::to_string(20 * epoch + i) + ", time " + Number(i % 2 ? 0.49 : 0.51));
    }
    log.Line("took 0:00:12 (0.6 s / it)");
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.5, 1e-3);
}

TEST(SpeedReader, TheClockTellsWhatABareTimeIs) {
  struct Case {
    const char* what;
    double printed;  // Where a line comes every ten steps of 0.2 s each.
    double want;
  };
  for (const Case& c : {Case{"a step's", 0.21, 0.21}, Case{"that of ten steps", 2.1, 0.21},
                        Case{"milliseconds", 210, 0.21}, Case{"nothing of the kind", 0.03, 0.2}}) {
    LogWriter log;
    for (int i = 0; i < 40; ++i) {
      log.Wait(2);
      log.Line("iter " + std::to_string(10 * i) + ", time " + Number(c.printed));
    }
    EXPECT_NEAR(ReadAll(log).step->value(), c.want, 1e-6) << c.what;
  }
}

TEST(SpeedReader, BufferedOutputIsCountedFromBurstToBurst) {
  LogWriter log;
  for (int step = 0; step < 2000; ++step) {
    if (step % 50 == 0) log.Wait(50 * 0.1);
    log.Line("step " + std::to_string(step) + " loss 1.0");
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.1, 0.001);
}

TEST(SpeedReader, AnEvaluationIsNoPartOfTheStepsAroundIt) {
  LogWriter log;
  int step = 0;
  for (int round = 0; round < 8; ++round) {  // More than a tenth of the samples, so that they are no rare pauses.
    for (int i = 0; i < 5; ++i, ++step) {
      log.Wait(0.5);
      log.Line("step " + std::to_string(step));
    }
    log.Line("Evaluating...");
    log.Wait(3);
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.5, 1e-6);
}

TEST(SpeedReader, StepsUnderTheHeadingOfAnEvaluationAreNotOfTheTraining) {
  LogWriter log;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    log.Line("Epoch " + std::to_string(epoch) + "/3");
    Steps(log, 30, 0.5, " took 500ms/step");
    log.Line("Eval begin...");
    Steps(log, 30, 0.01, " took 10ms/step");
    log.Line("Eval samples: 480");
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.5, 1e-6);
}

TEST(SpeedReader, StepsThatGoOnBehindAHeadingAreOfTheTraining) {
  LogWriter log;
  for (int step = 0; step < 40; ++step) {
    if (step % 4 == 0) log.Line("Evaluating...");
    log.Wait(0.5);
    log.Line("step " + std::to_string(step) + " took 500ms/step");
  }
  EXPECT_EQ(ReadAll(log).counts.matched_lines, 40);
}

TEST(SpeedReader, SpeedsInALogThatAreNoneAreRefusedAndDoNotHideTheOthers) {
  for (const char* bad : {"0 it/s", "-2 it/s", "0.0 s/it", "1e999 s/it", "1e-999 it/s", "0e999 it/s", "-0 s/it",
                          "nan it/s", "inf s/it"}) {
    LogWriter log;
    for (int i = 0; i < 30; ++i) {
      log.Wait(0.5);
      log.Line(i % 3 == 0 ? bad : "2.0 it/s");
    }
    const SpeedObservation seen = ReadAll(log);
    ASSERT_TRUE(seen.step) << bad;
    EXPECT_NEAR(seen.step->value(), 0.5, 1e-6) << bad;
    EXPECT_EQ(seen.counts.refused, 10) << bad;
  }
}

TEST(SpeedReader, SpeedsThatAreAllRefusedAreToldWithALineAndTheirSpanUntilOneIsTaken) {
  LogWriter log;
  for (int i = 0; i < 31; ++i) {
    log.Line("speed: 0.0 img/s");
    log.Wait(2);
  }
  const SpeedObservation seen = ReadAll(log);
  ASSERT_TRUE(seen.only_refused);
  EXPECT_EQ(seen.only_refused->readings, 31);
  EXPECT_EQ(seen.only_refused->span, std::chrono::seconds(60));
  EXPECT_EQ(seen.only_refused->line, "speed: 0.0 img/s");

  log.Line("speed: 100.0 img/s");
  EXPECT_FALSE(ReadAll(log).only_refused);
}

TEST(SpeedReader, WhatTheRestWillTakeInSecondsMakesNoCountedStepLessPrecise) {
  // Bars of Keras 2, whose steps take between 0.2 and 0.8 seconds; after how many the step is known to 5 %.
  const auto steps_until_precise = [](bool has_eta) {
    LogWriter log;
    SpeedReader reader = *SpeedReader::Make({.started = log.now});
    double passed = 0;
    for (int step = 1; step <= 200; ++step) {
      const double took = 0.2 + 0.05 * (step * 7 % 13);
      log.Wait(took);
      passed += took;
      const int rest = static_cast<int>(passed / step * (200 - step));
      const std::string eta = has_eta ? " - ETA: " + std::to_string(rest) + "s" : "";
      log.bytes.clear();
      log.Line(std::to_string(step) + "/200 [==>...................]" + eta + " - loss: 0.3");
      reader.Add(log.bytes);
      const SpeedObservation seen = reader.Observe(log.now);
      if (step > 40 && seen.state == SpeedState::kPrecise) return step;
    }
    return 201;
  };
  const int counted = steps_until_precise(false);
  EXPECT_LT(counted, 100);
  EXPECT_EQ(steps_until_precise(true), counted);
}

TEST(SpeedReader, WhatIsNoSpeedOfTheTrainingIsNotHeldAgainstIt) {
  for (const char* text : {"data loading time: 0.0s", "loss: nan", "nan", "banana 0.5", "step 7 loss inf"}) {
    LogWriter log;
    log.Line(text);
    EXPECT_FALSE(ReadAll(log).only_refused) << text;
  }
}

TEST(SpeedReader, LinesFromTheFutureOrThePastDoNotSpoilTheCountedSpeed) {
  for (const double jump : {1e6, -1e6, 3600.0, -3600.0}) {
    LogWriter log;
    Steps(log, 30, 0.5);
    log.Wait(jump);  // The clock of the node was set, and then set back.
    log.Line("step 30");
    log.Wait(-jump);
    for (int step = 31; step < 60; ++step) {
      log.Wait(0.5);
      log.Line("step " + std::to_string(step));
    }
    const SpeedObservation seen = ReadAll(log);
    EXPECT_NEAR(seen.step->value(), 0.5, 0.01) << jump;
    const SteadySpeed& steady = seen.step->steady;
    EXPECT_GT(steady.samples + steady.warm_up_samples + steady.pauses, 50) << jump << ": what came later counts, too";
  }
}

TEST(SpeedReader, StepsBetweenWhichEachTimeIsAnEvaluationAreBetterThanNone) {
  LogWriter log;
  for (int step = 0; step < 20; ++step) {
    log.Wait(2);
    log.Line("Evaluating...");
    log.Line("step " + std::to_string(step));
  }
  const SpeedObservation seen = ReadAll(log);
  EXPECT_NEAR(seen.step->value(), 2, 1e-6);
  EXPECT_EQ(seen.step->trust, Trust::kMixed);
}

TEST(SpeedReader, TheBarThatTookTheMostTimeIsTheTraining) {
  LogWriter log;
  for (int n = 1; n <= 300; ++n) {
    log.Wait(0.5);
    log.Line(" 10%|#   | " + std::to_string(n) + "/300 [00:12<00:23, 2.00it/s]");
    if (n % 100 != 0) continue;
    for (int k = 1; k <= 50; ++k) log.Line(" 10%|#   | " + std::to_string(k) + "/50 [00:00<00:00, 45.0it/s]");
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.5, 1e-6);
}

TEST(SpeedReader, TheLowestRankThatTellsASpeedIsRead) {
  LogWriter log;
  log.Line("[1,0]<stdout>:hello");
  for (int i = 0; i < 40; ++i) {
    log.Wait(0.5);
    log.Line("[1,2]<stdout>:step " + std::to_string(100 * i));
    if (i > 10) log.Line("[1,1]<stdout>:step " + std::to_string(i));
  }
  const SpeedObservation seen = ReadAll(log);
  EXPECT_NEAR(seen.step->value(), 0.5, 1e-6);
}

TEST(SpeedReader, ACounterThatBeginsAnewWithEachEpochIsCountedWithinThem) {
  LogWriter log;
  for (int epoch = 0; epoch < 6; ++epoch) {
    Steps(log, 20, 0.5);
    log.Wait(7);
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.5, 1e-6);
}

TEST(SpeedReader, RanksThatPrintWithoutAPrefixMayComeOutOfOrder) {
  LogWriter log;
  for (int i = 1; i < 40; ++i) {
    log.Wait(0.5);
    for (const int lag : {0, 1, 0}) log.Line("step " + std::to_string(i - lag));
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.5, 0.01);
}

TEST(SpeedReader, ALogThatIsReadInTwoPartsTellsTheSameSpeed) {
  LogWriter log;
  Steps(log, 60, 0.5, " step_time 0.5");
  const std::size_t half = log.bytes.size() / 2;
  SpeedReader reader = *SpeedReader::Make({});
  reader.Add(std::string_view(log.bytes).substr(0, half));
  reader.Resume();
  reader.Add(log.bytes);  // As if the server had no notion of sinceTime.
  const SpeedObservation seen = reader.Observe(log.now);
  EXPECT_NEAR(seen.step->value(), 0.5, 1e-6);
}

TEST(SpeedReader, SpeedsThatAreNoneAreRefusedAndCounted) {
  const SpeedReaderOptions options{.patterns = {{"time", "took (\\S+)", Measure::kStepSeconds}}};
  LogWriter log;
  for (const char* took : {"0", "-1", "1e999", "0.0", "1e-999", "nan"}) log.Line(std::string("took ") + took);
  for (int i = 0; i < 10; ++i) log.Line("took 0.5");
  const SpeedObservation seen = ReadAll(log, options);
  EXPECT_NEAR(seen.step->value(), 0.5, 1e-9);
  EXPECT_EQ(seen.counts.refused + seen.counts.not_numbers, 6);
}

TEST(SpeedReader, PatternsOfTheUserReplaceTheAutomaticOnesUnlessBothAreWanted) {
  const std::vector<SpeedPattern> patterns = {{"mine", "mine=(\\S+)", Measure::kSamplesPerSecond}};
  LogWriter log;
  Steps(log, 30, 0.5, " mine=640");
  const SpeedObservation only = ReadAll(log, {.patterns = patterns});
  EXPECT_NEAR(only.throughput->value(), 640, 1e-6);
  EXPECT_FALSE(only.step);
  EXPECT_TRUE(ReadAll(log, {.patterns = patterns, .has_auto = true}).step);
}

TEST(SpeedReader, AStepPatternIsCountedAgainstTheClock) {
  LogWriter log;
  for (int i = 0; i < 30; ++i) {
    log.Wait(1);
    log.Line("done=" + std::to_string(4 * i));
  }
  const SpeedObservation seen = ReadAll(log, {.patterns = {{"done", "done=(\\d+)", Measure::kStep}}});
  EXPECT_NEAR(seen.step->value(), 0.25, 1e-6);
}

TEST(SpeedReader, ARunningAverageIsTakenApart) {
  LogWriter log;
  double seconds_so_far = 0;
  for (int n = 1; n <= 60; ++n) {
    if (n > 1) seconds_so_far += n <= 10 ? 1.0 : 0.1;  // Keras leaves out the first step.
    if (n > 1) log.Line(std::to_string(n) + "/60 [==>..] - " + Number(1000 * seconds_so_far / (n - 1)) + "ms/step");
  }
  EXPECT_NEAR(ReadAll(log).step->value(), 0.1, 0.002) << "the average at the end is 0.24";
}

TEST(SpeedReader, ABadPatternIsAnError) {
  EXPECT_FALSE(SpeedReader::Make({.patterns = {{"bad", "(", Measure::kStep}}}).ok());
}

// In KiB.
long MostMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(SpeedReader, AGigabyteWithoutANewlineIsReadInBoundedMemory) {
  const std::string piece(1 << 20, 'x');
  SpeedReader reader = *SpeedReader::Make({});
  const long before = MostMemory();

  for (int i = 0; i < 1024; ++i) reader.Add(piece);

  EXPECT_LT(MostMemory() - before, 16 * 1024);
}

TEST(SpeedReader, NumbersUnderManyNamesDoNotHideTheSpeed) {
  LogWriter log;
  for (int i = 0; i < 100; ++i) {
    log.Line("Evaluating...");
    log.Line("loading part 1/" + std::to_string(100 + i));
    log.Line("1/" + std::to_string(1000 + i) + " 0.001 s/it");
  }
  Steps(log, 40, 0.5);
  EXPECT_NEAR(ReadAll(log).step->value(), 0.5, 1e-6);
}

TEST(SpeedReader, ManyStepsAreKeptInBoundedSpaceWithTheirMean) {
  LogWriter log;
  SpeedReader reader = *SpeedReader::Make({});
  for (int i = 0; i < 300000; ++i) {
    log.Wait(0.5);
    log.Line("step " + std::to_string(i));
    reader.Add(log.bytes);
    log.bytes.clear();
  }
  const SpeedObservation seen = reader.Observe(log.now);
  EXPECT_NEAR(seen.step->value(), 0.5, 1e-6);
  EXPECT_LE(seen.step->steady.samples, static_cast<int>(SpeedSeries::kMostSamples));
}

TEST(SpeedReader, AStepTimeThatTheClockContradictsIsNotBelieved) {
  LogWriter log;
  for (int step = 1; step <= 40; ++step) {
    log.Wait(0.5);
    log.Line("step " + std::to_string(step) + ", loss = 4.12 (0.125 sec/batch)");  // Divided by four GPUs.
  }
  SpeedReader reader = *SpeedReader::Make({});
  reader.Add(log.bytes);
  const SpeedObservation seen = reader.Observe(log.now);
  ASSERT_TRUE(seen.step);
  EXPECT_NEAR(seen.step->value(), 0.5, 0.01);
  EXPECT_TRUE(seen.step->is_counted);
}

TEST(SpeedReader, ATimeThatOnlyGrowsIsThatSinceTheStart) {
  LogWriter log;
  for (int i = 1; i <= 20; ++i) {
    log.Wait(5);
    log.Line("loss 2.1 time: " + std::to_string(5 * i) + ".1s");
  }
  SpeedReader reader = *SpeedReader::Make({});
  reader.Add(log.bytes);
  EXPECT_EQ(reader.Observe(log.now).main(), nullptr);
}

}  // namespace
}  // namespace grus
