// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/progress_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clientlib/model/time.h"

namespace grus {
namespace {

constexpr WallTime kStart{std::chrono::seconds(1767323045)};

// A log, one line each second.
class Log {
 public:
  Log& Line(const std::string& text) {
    reader.Add(kube::ToMicroText({kStart + std::chrono::seconds(seconds++)}) + " " + text + "\n");
    return *this;
  }
  // Lines with each of `from` to `to` in place of '#'.
  Log& Lines(const std::string& text, int from, int to, int step = 1) {
    for (int number = from; number <= to; number += step) {
      std::string line = text;
      line.replace(line.find('#'), 1, std::to_string(number));
      Line(line);
    }
    return *this;
  }
  // Percent of the whole, rounded down; -1: not known.
  int Percent() const {
    const auto where = reader.Where();
    return where && where->done ? static_cast<int>(100 * where->done->least + 1e-9) : -1;
  }

  ProgressReader reader{};
  int seconds = 0;
};

TEST(ProgressReader, ANamedCounterWithoutEpochsIsThatOfTheWhole) {
  Log log;
  EXPECT_FALSE(log.reader.Where());
  log.Line("loading").Lines("step #/400 loss 2.3", 1, 100);
  EXPECT_EQ(log.Percent(), 25);
  EXPECT_EQ(log.reader.Where()->step, 100);
  EXPECT_EQ(log.reader.Where()->total_steps, 400);
  EXPECT_EQ(log.reader.Where()->time, kStart + std::chrono::seconds(100));
}

TEST(ProgressReader, ABarWithoutANameMayBeAnEpoch) {
  Log log;
  log.Lines(" 50%|=====     | #/60 [00:12<00:12,  2.50it/s]", 1, 30);
  EXPECT_EQ(log.Percent(), -1);
  EXPECT_EQ(log.reader.Where()->step, 30);
}

TEST(ProgressReader, KerasCountsStepsInEachEpoch) {
  Log log;
  log.Line("Epoch 1/10").Lines("#/60 [====>....] - ETA: 0s - loss: 0.5", 1, 30);
  EXPECT_EQ(log.Percent(), 5) << "further than the whole can be in the first epoch";
  log.Lines("#/60 [====>....] - ETA: 0s - loss: 0.5", 31, 60).Line("Epoch 2/10").Lines("#/60 [=>] - loss: 0.4", 1, 30);
  EXPECT_EQ(log.Percent(), 15);
  EXPECT_EQ(log.reader.Where()->epoch, 2);
  EXPECT_EQ(log.reader.Where()->total_epochs, 10);
  for (int epoch = 3; epoch <= 10; ++epoch) {
    log.Line("Epoch " + std::to_string(epoch) + "/10").Lines("#/60 [=>] - loss: 0.4", 1, 60);
    EXPECT_EQ(log.Percent(), 10 * epoch);
  }
}

TEST(ProgressReader, TheFirstStepsOfManyDoNotSayWhatTheyAreOf) {
  Log log;
  log.Line("Epoch 1/10").Lines("#/60 [>...] - loss: 0.5", 1, 6);
  EXPECT_EQ(log.Percent(), -1);
}

TEST(ProgressReader, AnEpochAndItsStepInOneLine) {
  Log log;
  log.Lines("Epoch [1/3], Step [#/200], Loss: 0.3", 10, 200, 10)
      .Lines("Epoch [2/3], Step [#/200], Loss: 0.3", 10, 100, 10);
  EXPECT_EQ(log.Percent(), 50);
}

TEST(ProgressReader, EpochsThatAreCountedFromZeroMayBeOneMore) {
  Log log;
  log.Lines("Epoch: [0/4] step #/100 loss 1", 1, 100).Lines("Epoch: [1/4] step #/100 loss 1", 1, 50);
  const auto where = log.reader.Where();
  ASSERT_TRUE(where && where->done);
  EXPECT_DOUBLE_EQ(where->done->least, 1.5 / 5);
  EXPECT_DOUBLE_EQ(where->done->most, 1.5 / 4);
  log.Lines("Epoch: [2/4] step #/100 loss 1", 1, 100).Lines("Epoch: [4/4] step #/100 loss 1", 1, 50);
  EXPECT_DOUBLE_EQ(log.reader.Where()->done->most, 4.5 / 5) << "now it is certain";
}

TEST(ProgressReader, ABarOfEvaluationsBesideIt) {
  Log log;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    log.Lines(" 25%|==        | #/240 [00:10<00:30, 12.0it/s]", 60 * epoch - 59, 60 * epoch);
    log.Lines(" 50%|===       | #/50 [00:10<00:30, 12.0it/s]", 1, 50);
    log.Line("{'eval_loss': 0.69, 'eval_runtime': 0.1, 'epoch': " + std::to_string(epoch) + ".0}");
    log.Line("{'loss': 0.69, 'grad_norm': 0.1, 'epoch': " + std::to_string(epoch) + ".0}");
    EXPECT_EQ(log.Percent(), 25 * epoch);
  }
}

TEST(ProgressReader, OnlyTheLastStepOfEachEpochIsPrinted) {
  Log log;
  for (int epoch = 1; epoch <= 4; ++epoch) {
    log.Line("Epoch " + std::to_string(epoch) + "/8").Line("60/60 - 3s - loss: 0.5");
  }
  EXPECT_EQ(log.Percent(), 50);
}

TEST(ProgressReader, ACounterThatGoesOnIsThatOfTheWhole) {
  Log log;
  log.Lines("epoch 1 step #/400 loss 1", 1, 100);
  EXPECT_EQ(log.Percent(), -1);
  log.Lines("epoch 2 step #/400 loss 1", 101, 120);
  EXPECT_EQ(log.Percent(), 30);
}

TEST(ProgressReader, WithoutTheNumberOfEpochsTheEndIsNotKnown) {
  Log log;
  log.Lines("Epoch 0: step #/100", 1, 100).Lines("Epoch 1: step #/100", 1, 50);
  EXPECT_EQ(log.Percent(), -1);
  EXPECT_EQ(log.reader.Where()->epoch, 1);
  EXPECT_EQ(log.reader.Where()->step, 50);
}

TEST(ProgressReader, AFractionOfAnEpochSaysThatStepsAreOfTheWhole) {
  Log log;
  log.Lines(" 10%|=         | #/400 [00:10<01:30,  4.0it/s]", 1, 40)
      .Line("{'loss': 2.31, 'grad_norm': 1.2, 'epoch': 0.32}");
  EXPECT_EQ(log.Percent(), 10);
}

TEST(ProgressReader, EpochsAloneSayItToAnEpoch) {
  Log log;
  log.Lines("Epoch #/8 done, loss 0.3", 1, 4);
  const auto where = log.reader.Where();
  ASSERT_TRUE(where && where->done);
  EXPECT_LE(where->done->least, 0.5);
  EXPECT_GE(where->done->most, 0.5);
  EXPECT_LE(where->done->most - where->done->least, 0.125 + 1e-9);
}

TEST(ProgressReader, ALogThatIsReadFromItsMiddleMayBeAnEpochOff) {
  Log log;
  log.Lines("Epoch 7/10 step #/100", 40, 100, 10).Lines("Epoch 8/10 step #/100", 10, 50, 10);
  const auto where = log.reader.Where();
  ASSERT_TRUE(where && where->done);
  EXPECT_DOUBLE_EQ(where->done->least, 0.75);
  EXPECT_DOUBLE_EQ(where->done->most, 0.85);
}

TEST(ProgressReader, EvaluationAndLoadingAreNoProgress) {
  Log log;
  log.Lines("step #/400 loss 2", 1, 100).Lines("eval step #/20", 1, 20).Lines("Loading checkpoint shards: #/4", 1, 4);
  EXPECT_EQ(log.Percent(), 25);
}

TEST(ProgressReader, AnotherProcessThatLagsIsNoNewPass) {
  Log log;
  for (int step = 2; step <= 100; ++step) log.Lines("step #/200", step, step).Lines("step #/200", step - 1, step - 1);
  EXPECT_EQ(log.Percent(), 50);
}

TEST(ProgressReader, OfManyRanksTheLowestIsRead) {
  Log log;
  log.Line("[1,3]<stdout>: step 90/100").Line("[1,0]<stdout>: step 10/100").Line("[1,2]<stdout>: step 80/100");
  EXPECT_EQ(log.Percent(), 10);
}

TEST(ProgressReader, LinesAreReadOnceAndGapsDoNotMatter) {
  Log log;
  log.Lines("Epoch [1/4], Step [#/100]", 1, 100);
  log.reader.Resume();
  log.seconds = 50;  // The last lines once more.
  log.Lines("Epoch [1/4], Step [#/100]", 51, 100);
  log.reader.Resume();
  log.seconds = 900;
  log.Lines("Epoch [4/4], Step [#/100]", 41, 50);
  EXPECT_EQ(log.Percent(), 87);
}

TEST(ProgressReader, ACounterWithoutAnEndIsToldAsItIs) {
  Log log;
  log.Lines("step # loss 2.3 1.2 s/step", 1, 100);
  ASSERT_TRUE(log.reader.Where());
  EXPECT_EQ(log.Percent(), -1);
  EXPECT_EQ(log.reader.Where()->step, 100);
  EXPECT_EQ(log.reader.Where()->total_steps, 0);
}

TEST(ProgressReader, EndsMayBeStatedElsewhere) {
  Log log{ProgressReader({.epochs = 10})};
  log.Lines("Epoch: [0][#/120] Time 0.1", 1, 120).Lines("Epoch: [1][#/120] Time 0.1", 1, 60);
  ASSERT_TRUE(log.reader.Where()->done);
  EXPECT_NEAR(log.reader.Where()->done->most, 0.15, 0.001);
  EXPECT_EQ(log.reader.Where()->total_epochs, 10);
  Log steps{ProgressReader({.steps = 1000})};
  steps.Lines("step # loss 2.3 1.2 s/step", 1, 100);
  EXPECT_EQ(steps.Percent(), 10);
}

TEST(ProgressReader, StepsOfAnEvaluationAreNone) {
  Log log;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    log.Line("Epoch " + std::to_string(epoch) + "/4").Lines("step #/60 - loss: 0.5 - 52ms/step", 5, 60, 5);
    EXPECT_EQ(log.Percent(), epoch == 1 ? 25 : 25 * epoch);
    log.Line("Eval begin...").Lines("step #/60 - loss: 0.5 - 52ms/step", 20, 60, 20);
    EXPECT_EQ(log.Percent(), 25 * epoch);
    log.Line("Eval samples: 480");
  }
}

TEST(ProgressReader, AHeadingThatWasNotReadMakesTheEpochUnknown) {
  Log log;
  log.Line("Epoch 1/6").Lines("step #/600 loss 1", 10, 600, 10);
  log.Lines("step #/600 loss 1", 500, 600, 10);  // Of some later epoch.
  log.Lines("step #/600 loss 1", 10, 300, 10);
  EXPECT_EQ(log.Percent(), -1);
  log.Line("Epoch 5/6").Lines("step #/600 loss 1", 10, 300, 10);
  EXPECT_EQ(log.Percent(), 75);
}

TEST(ProgressReader, ADownloadThatIsCompleteIsNoEpoch) {
  Log log;
  log.Line("11490434/11490434 [==============================] - 0s 0us/step").Line("Epoch 1/3");
  log.Lines("#/60 [=>] - loss: 0.4", 1, 60).Line("Epoch 2/3").Lines("#/60 [=>] - loss: 0.4", 1, 30);
  EXPECT_EQ(log.Percent(), 50);
}

TEST(ProgressReader, RedrawsOfALineThatHasNotEndedAreReadOnce) {
  Log log;
  const std::string time = kube::ToMicroText({kStart}), bar = "step 1/100 \rstep 20/100 \rstep 30/100 \r";
  log.reader.Add(time + " " + bar);
  for (int look = 0; look < 3; ++look) {
    log.reader.Resume();
    log.reader.Add(time + " " + bar + "step " + std::to_string(40 + look) + "/100 \r");
    EXPECT_EQ(log.Percent(), 40 + look);
  }
}

TEST(ProgressReader, AnEvaluationEndsWhenTheTrainingGoesOn) {
  Log log;
  log.Lines("step #/400 loss 2", 1, 100).Line("Running validation...").Lines("step #/400 loss 2", 101, 200);
  EXPECT_EQ(log.Percent(), 50);
}

TEST(ProgressReader, ALongerBarOfEvaluationsIsNotTheTraining) {
  Log log;
  for (int epoch = 1; epoch <= 2; ++epoch) {
    log.Lines(" 25%|==        | #/240 [00:10<00:30, 12.0it/s]", 80 * epoch - 79, 80 * epoch);
    log.Lines(" 50%|===       | #/1000 [00:10<00:30, 12.0it/s]", 500, 540);
    EXPECT_TRUE(log.Percent() == -1 || log.Percent() == 66) << log.Percent();
    log.Lines(" 50%|===       | #/1000 [00:10<00:30, 12.0it/s]", 541, 1000);
    log.Line("{'eval_loss': 0.69, 'eval_runtime': 0.1, 'epoch': " + std::to_string(epoch) + ".0}");
    log.Line("{'loss': 0.69, 'grad_norm': 0.1, 'epoch': " + std::to_string(epoch) + ".0}");
    log.Lines(" 25%|==        | #/240 [00:10<00:30, 12.0it/s]", 80 * epoch, 80 * epoch);
  }
  log.Lines(" 25%|==        | #/240 [00:10<00:30, 12.0it/s]", 161, 180);
  EXPECT_EQ(log.Percent(), 75);
}

TEST(ProgressReader, ATotalThatIsExceededIsWrong) {
  Log log{ProgressReader({.epochs = 4, .steps = 128})};
  log.Lines("step # loss 2.3 1.2 s/step", 100, 128).Line("step 200 loss 2.3 1.2 s/step");
  EXPECT_EQ(log.Percent(), -1);
  Log epochs{ProgressReader({.epochs = 4})};
  epochs.Lines("Epoch # done", 1, 59);
  EXPECT_EQ(epochs.Percent(), -1);
}

TEST(ProgressReader, TheBestEpochIsNotTheLast) {
  Log log;
  log.Line("start_epoch=0").Lines("Epoch #/4 done, loss 0.3", 1, 3).Line("best epoch: 1");
  EXPECT_EQ(log.Percent(), 50);
  EXPECT_EQ(log.reader.Where()->epoch, 3);
}

TEST(ProgressReader, ALineWithTheResultsOfAnEpochMostLikelyEndsIt) {
  Log log;
  log.Line("Epoch 1/4 Loss: 0.5").Line("val accuracy 0.3").Line("Epoch 2/4 Loss: 0.4");
  EXPECT_EQ(log.reader.Where()->done->likely, 0.5);
  EXPECT_EQ(log.Percent(), 25) << "it may also have begun with it";
  log.Line("Epoch 4/4 Loss: 0.4");
  EXPECT_EQ(log.Percent(), 75);
  Log headings;
  headings.Line("Epoch 1/4").Line("Epoch 2/4");
  EXPECT_EQ(headings.Percent(), 25);
}

TEST(ProgressReader, ALineWithTheResultsOfAnEpochThatHadAHeadingEndsIt) {
  Log log;
  for (const char* epoch : {"1", "2"}) {
    log.Line(std::string("Epoch ") + epoch + "/4").Line("training");
    log.Line(std::string("Epoch ") + epoch + "/4 complete, accuracy 0.4");
  }
  EXPECT_EQ(log.Percent(), 50);
}

TEST(ProgressReader, StepsGoOnBehindTheResultsOfTheEpochBefore) {
  Log log;
  for (const char* epoch : {"1", "2"}) {
    log.Lines("step #/60", 1, 60).Line(std::string("Epoch ") + epoch + "/10 loss 0.3");
  }
  log.Lines("step #/60", 1, 30);
  EXPECT_EQ(log.Percent(), 25);
}

TEST(ProgressReader, ResultsAllOverAnEpochDoNotEndIt) {
  Log log;
  for (const char* epoch : {"1", "2", "3"}) {
    for (int line = 0; line < 5; ++line) log.Line(std::string("Epoch ") + epoch + "/4 Loss: 0.5");
  }
  EXPECT_EQ(log.Percent(), 50);
}

TEST(ProgressReader, AStepBeforeATimeIsACounter) {
  Log log;
  EXPECT_EQ(log.Line("step 12/31 00:01:05 loss 0.3").Percent(), 38);
}

TEST(ProgressReader, ADateWithoutItsYearIsNoCounter) {
  Log log;
  log.Line("11/22 01:56:16 - INFO - Epoch [1][30/60] loss: 0.4").Line("11/22 01:56:17 - INFO - saved");
  EXPECT_EQ(log.reader.Where()->total_steps, 60);
}

TEST(ProgressReader, StepsThatStartOverAreNoStepsOfTheWhole) {
  Log log{ProgressReader({.steps = 800})};
  log.Lines("step # loss 2.3 1.2 s/step", 1, 200).Lines("step # loss 2.3 1.2 s/step", 1, 200);
  EXPECT_EQ(log.Percent(), -1);
}

TEST(ProgressReader, AnyBytes) {
  Log log;
  log.Line("step 99999999999999999999").Line("Epoch 1e300/5").Line("'epoch': 0e999").Line("step 9e18/9.1e18");
  EXPECT_FALSE(log.reader.Where());
  log.Line("step 9999999999999999999999/9999999999999999999999").Line("step -5/100").Line("step 7/0").Line("Epoch 0/0");
  log.Line(std::string(100'000, '[')).Line("step 5/3").Line(std::string("\0\xff\xfe 1/2", 7));
  for (int i = 0; i < 1000; ++i) log.Line("c" + std::to_string(i) + " 1/" + std::to_string(i));
  (void)log.reader.Where();
}

}  // namespace
}  // namespace grus
