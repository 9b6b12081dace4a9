// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/pushed_progress.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace grus {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr WallTime kStart{std::chrono::seconds(1767323045)};

// One launcher, and what stands on its job and its pod.
struct Launcher {
  PushedTexts on_job = {}, on_pod = {};
  StatedTotals stated = {};
  std::chrono::seconds at{0};
  PushedProgress pushed{on_job};

  std::optional<std::string> Look() { return pushed.Look(on_job, on_pod, stated, kStart + at, kube::TimePoint() + at); }
  bool Counts() const { return pushed.Counts(kube::TimePoint() + at); }
};

TEST(PushedProgress, TheShareIsThatOfTheStepsAndElseOfTheEpochs) {
  struct Case {
    PushedTexts texts;
    StatedTotals stated;
    double done;  // -1: not known.
  };
  for (const Case& c : {
           Case{{"40", "400", "", ""}, {}, 0.1},
           Case{{"40", "", "", ""}, {}, -1},
           Case{{"", "", "2.5", "10"}, {}, 0.25},
           Case{{"40", "400", "5", "10"}, {}, 0.1},
           Case{{"40", "", "5", "10"}, {}, 0.5},
           Case{{"40", "", "", ""}, {.steps = 80}, 0.5},
           Case{{"400", "400", "", ""}, {}, 1},
           Case{{"0", "400", "", ""}, {}, 0},
           Case{{"90", "", "", ""}, {.steps = 80}, -1},  // The command means something else.
           Case{{"40", "400", "", ""}, {.steps = 80}, 0.1},
           Case{{"40", "0", "", ""}, {}, -1},  // 0: not known.
           Case{{"", "", "3", ""}, {.epochs = 4}, 0.75},
       }) {
    const ReadPush read = ReadPushedTexts(c.texts, c.stated, kStart);
    ASSERT_TRUE(read.where) << read.refusal;
    EXPECT_EQ(read.where->done ? read.where->done->most : -1, c.done) << c.texts.step << " " << c.texts.epoch;
  }
}

TEST(PushedProgress, WhatCannotBeTrueIsRefused) {
  struct Case {
    PushedTexts texts;
    const char* why;
  };
  const std::string longest(kLongestPush + 1, '1');
  for (const Case& c : {
           Case{{"-1", "400", "", ""}, "annotation ai.centauruscloud.io/step is \"-1\", which is no count"},
           Case{{"NaN", "400", "", ""}, "step is \"NaN\""},
           Case{{"inf", "400", "", ""}, "step is \"inf\""},
           Case{{"many", "400", "", ""}, "step is \"many\""},
           Case{{"40 steps", "400", "", ""}, "step is \"40 steps\""},
           Case{{"1e300", "", "", ""}, "step is \"1e300\""},
           Case{{longest, "", "", ""}, "1...\""},
           Case{{"\xc3\xa4\"\n", "400", "", ""}, "step is \"????\""},
           Case{{"40", "-400", "", ""}, "total-steps is \"-400\""},
           Case{{"40", "nan", "", ""}, "total-steps is \"nan\""},
           Case{{"40", "400", "x", ""}, "epoch is \"x\""},
           Case{{"40", "400", "1", "-0.5"}, "total-epochs is \"-0.5\""},
           Case{{"401", "400", "", ""}, "step is \"401\", above ai.centauruscloud.io/total-steps, \"400\""},
           Case{{"", "", "11", "10"}, "epoch is \"11\", above ai.centauruscloud.io/total-epochs, \"10\""},
       }) {
    const ReadPush read = ReadPushedTexts(c.texts, {}, kStart);
    EXPECT_FALSE(read.where) << c.why;
    EXPECT_THAT(read.refusal, HasSubstr(c.why));
  }
}

TEST(PushedProgress, OfAnyBytesNothingComesButAShareOrAPrintableRefusal) {
  std::mt19937_64 random(19);
  constexpr std::string_view kBytes = "0123456789.-+eEnaifNx \"\\\n\0\xff\xc3";
  const auto text = [&] {
    std::string bytes;
    for (auto left = random() % 8; left > 0; --left) bytes += kBytes[random() % kBytes.size()];
    return bytes;
  };
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const ReadPush push = ReadPushedTexts({text(), text(), text(), text()}, {.epochs = 3, .steps = 40}, kStart);
    refused += push.refusal.empty() ? 0 : 1;
    read += push.where ? 1 : 0;
    EXPECT_FALSE(push.where && !push.refusal.empty());
    EXPECT_EQ(push.refusal.empty(), push.fault.empty());
    EXPECT_TRUE(std::ranges::all_of(push.refusal, [](char c) { return c >= ' ' && c <= '~'; })) << push.refusal;
    if (push.where && push.where->done) {
      EXPECT_TRUE(push.where->done->least >= 0 && push.where->done->most <= 1) << push.where->done->most;
    }
  }
  EXPECT_GT(read, 20);
  EXPECT_GT(refused, 10'000);
}

TEST(PushedProgress, ARefusedPushChangesNothingAndIsToldOnceForEachFault) {
  Launcher launcher;
  launcher.Look();
  launcher.on_job = {"40", "400", "", ""};
  EXPECT_FALSE(launcher.Look());
  launcher.at = 9min;
  launcher.on_job.step = "-41";
  EXPECT_THAT(launcher.Look().value_or(""), HasSubstr("-41"));
  EXPECT_FALSE(launcher.Look());
  launcher.on_job.step = "-42";
  EXPECT_FALSE(launcher.Look()) << "the same fault again";
  launcher.on_job.step = "401";
  EXPECT_THAT(launcher.Look().value_or(""), HasSubstr("401")) << "another one";
  EXPECT_EQ(launcher.pushed.where()->step, 40);
  EXPECT_TRUE(launcher.Counts());
  launcher.at = 11min;
  EXPECT_FALSE(launcher.Counts()) << "a refused push is none";
}

TEST(PushedProgress, TheEndFollowsFromTheTimesOfThePushes) {
  Launcher launcher;
  launcher.Look();
  for (int step = 10; step <= 100; step += 10) {
    launcher.at += 1min;
    launcher.on_pod = {std::to_string(step), "400", "", ""};
    launcher.Look();
    launcher.at += 5s;  // Other passes add nothing.
    launcher.Look();
  }
  const auto eta = launcher.pushed.track().Ends();
  ASSERT_TRUE(eta);
  EXPECT_NEAR(std::chrono::duration<double>(eta->expected - launcher.pushed.where()->time).count(), 30 * 65, 1);
}

TEST(PushedProgress, ATotalThatShrinksIsTheNewTotal) {
  Launcher launcher;
  launcher.Look();
  for (int step = 10; step <= 100; step += 10) {
    launcher.at += 1min;
    launcher.on_pod = {std::to_string(step), "400", "", ""};
    launcher.Look();
  }
  launcher.on_pod.total_steps = "200";
  EXPECT_FALSE(launcher.Look());
  EXPECT_EQ(launcher.pushed.where()->done->most, 0.5);
  EXPECT_NEAR(std::chrono::duration<double>(launcher.pushed.track().Ends()->expected - kStart).count(), 20 * 60, 1);
}

TEST(PushedProgress, CountsForTenMinutesOrThreeTimesTheUsualWait) {
  Launcher launcher;
  EXPECT_FALSE(launcher.Counts());
  launcher.Look();
  launcher.on_job.epoch = "1";
  launcher.Look();
  launcher.at = 10min - 1s;
  EXPECT_TRUE(launcher.Counts());
  launcher.at = 10min;
  EXPECT_FALSE(launcher.Counts());
  launcher.on_job.epoch = "2";  // One in ten minutes.
  launcher.Look();
  launcher.at = 40min - 1s;
  EXPECT_TRUE(launcher.Counts());
  launcher.at = 40min;
  EXPECT_FALSE(launcher.Counts());
  EXPECT_TRUE(launcher.pushed.where());
}

TEST(PushedProgress, WhatStoodOnTheJobBeforeItsLauncherIsNoPush) {
  Launcher launcher{.on_job = {"390", "400", "", ""}};
  launcher.Look();
  EXPECT_FALSE(launcher.pushed.where()) << "of the launcher before";
  launcher.on_job.step = "10";
  launcher.Look();
  EXPECT_EQ(launcher.pushed.where()->step, 10);
}

TEST(PushedProgress, WhatStandsOnTheLaunchersPodIsItsOwnButOfNoKnownTime) {
  Launcher launcher{.on_pod = {"100", "400", "", ""}};
  launcher.Look();  // A manager that has just started.
  EXPECT_EQ(launcher.pushed.where()->step, 100);
  for (int step = 110; step <= 130; step += 10) {
    launcher.at += 1min;
    launcher.on_pod.step = std::to_string(step);
    launcher.Look();
  }
  EXPECT_FALSE(launcher.pushed.track().Ends()) << "three points";
  launcher.at += 1min;
  launcher.on_pod.step = "140";
  launcher.Look();
  EXPECT_TRUE(launcher.pushed.track().Ends());
}

TEST(PushedProgress, TheTotalsMayStandOnTheJobAndTheStepsOnThePod) {
  Launcher launcher{.on_job = {"", "400", "", ""}};
  launcher.Look();
  EXPECT_FALSE(launcher.pushed.where()) << "totals alone are no position";
  launcher.on_pod.step = "100";
  launcher.Look();
  EXPECT_EQ(launcher.pushed.where()->done->most, 0.25);
  launcher.on_pod.total_steps = "200";
  launcher.Look();
  EXPECT_EQ(launcher.pushed.where()->done->most, 0.5) << "the pod's own go first";
}

TEST(PushedProgress, TakenOffItEnds) {
  Launcher launcher;
  launcher.Look();
  launcher.on_job = {"40", "400", "", ""};
  launcher.Look();
  EXPECT_TRUE(launcher.Counts());
  launcher.on_job = {};
  launcher.Look();
  EXPECT_FALSE(launcher.Counts());
  EXPECT_FALSE(launcher.pushed.where());
}

}  // namespace
}  // namespace grus
