// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/auto_patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace grus {
namespace {

std::optional<Reading> Find(const LineReadings& readings, Measure measure) {
  for (const Reading& reading : readings.all()) {
    if (reading.measure == measure) return reading;
  }
  return std::nullopt;
}

struct Case {
  const char* line;
  Measure measure;
  double value;
};

void ExpectValues(std::span<const Case> cases) {
  for (const Case& c : cases) {
    const std::optional<Reading> reading = Find(ReadLine(c.line), c.measure);
    ASSERT_TRUE(reading) << c.line;
    EXPECT_NEAR(reading->value, c.value, 1e-9 * std::abs(c.value)) << c.line;
  }
}

TEST(ReadLine, UnitsBehindANumber) {
  const Case kCases[] = {
      {" 34%|###4      | 340/1000 [00:12<00:23, 28.1it/s]", Measure::kStepSeconds, 1 / 28.1},
      {" 34%|###4      | 340/1000 [00:12<00:23,  2.50s/it, loss=0.3]", Measure::kStepSeconds, 2.5},
      {" 34%|###| 340/1000 [00:12<00:23, 12.5ba/s]", Measure::kStepSeconds, 0.08},
      {"340/1000 [00:12<00:23, 1.25kit/s]", Measure::kStepSeconds, 1 / 1250.0},
      {"12/60 [=====>......] - ETA: 3s - 45ms/step - loss: 0.3", Measure::kStepSeconds, 0.045},
      {"12/60 - 3s 850us/step", Measure::kStepSeconds, 850e-6},
      {"12/60 - 3s 850\xc2\xb5s/step", Measure::kStepSeconds, 850e-6},
      {"step 10, loss = 4.66 (1234.5 examples/sec; 0.104 sec/batch)", Measure::kStepSeconds, 0.104},
      {"step 10, loss = 4.66 (1234.5 examples/sec; 0.104 sec/batch)", Measure::kSamplesPerSecond, 1234.5},
      {"Epoch[0] Batch [20]\tSpeed: 1,234.5 samples/sec\taccuracy=0.9", Measure::kSamplesPerSecond, 1234.5},
      {"processed 12k tok/s", Measure::kTokensPerSecond, 12000},
      {"Time: 0.512s, 500.00/s  (0.520s, 492.31/s)", Measure::kSamplesPerSecond, 500},
      {"Iteration 100 (3.2 iter/s, 31.25s/100 iters), loss = 2", Measure::kStepSeconds, 1 / 3.2},
      {"speed: 90 images per minute", Measure::kSamplesPerSecond, 1.5},
  };
  ExpectValues(kCases);
}

TEST(ReadLine, UnitsAndTimesInALabel) {
  const Case kCases[] = {
      {"iteration 10/ 100 | elapsed time per iteration (ms): 512.3 | lm loss: 1.0E+01", Measure::kStepSeconds, 0.5123},
      {"{'loss': 0.5, 'train_samples_per_second': 65.0}", Measure::kSamplesPerSecond, 65},
      {"global_step=100, RunningAvgSamplesPerSec=12.3, CurrSamplesPerSec=12.5", Measure::kSamplesPerSecond, 12.5},
      {"|    fps              | 1200     |", Measure::kSamplesPerSecond, 1200},
      {"| epoch   1 |   200/ 2983 batches | ms/batch 12.33 | loss 7", Measure::kStepSeconds, 0.01233},
      {"INFO:tensorflow:global_step/sec: 12.5", Measure::kStepSeconds, 0.08},
      {"INFO:tensorflow:Step 100 per-step time 0.321s", Measure::kStepSeconds, 0.321},
      {"step_time=0.25 loss=3", Measure::kStepSeconds, 0.25},
      {"step time (ms): 250", Measure::kStepSeconds, 0.25},
      {"iter time: 512.33 ms (step)", Measure::kStepSeconds, 0.51233},
      {"100\timages/sec: 1234.5 +/- 1.2 (jitter = 3.4)\t7.1", Measure::kSamplesPerSecond, 1234.5},
      {"loss=1.2, wps=4000.5, ups=2, wpb=2000", Measure::kTokensPerSecond, 4000.5},
      {"loss=1.2, wps=4000.5, ups=2, wpb=2000", Measure::kStepSeconds, 0.5},
      {"train.total_ips : 10778.9 images/s train.lr : 0.256 None", Measure::kSamplesPerSecond, 10778.9},
      {"throughput: 1.2e3", Measure::kSamplesPerSecond, 1200},
  };
  ExpectValues(kCases);
}

TEST(ReadLine, CountersOfStepsAndEpochs) {
  const Case kCases[] = {
      {"step 100 loss 3.1", Measure::kStep, 100},
      {"Step #100\tLoss: 2.3", Measure::kStep, 100},
      {"global_step: 12,000 | loss: 1", Measure::kStep, 12000},
      {"Epoch(train)  [1][ 50/7330]  lr: 1.0e-02", Measure::kStep, 50},
      {"Epoch: [0]  [ 10/626]  eta: 0:03:01", Measure::kStep, 10},
      {"[10]\ttrain-rmse:0.3", Measure::kStep, 10},
      {"100: loss 1.2", Measure::kStep, 100},
      {"loss 3.0 num_updates=700, lr=0.1", Measure::kStep, 700},
      {"Epoch 1/3", Measure::kEpoch, 1},
      {"{'loss': 0.69, 'epoch': 2.875}", Measure::kEpoch, 2.875},
      {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3", Measure::kSampleCount, 640},
  };
  ExpectValues(kCases);
}

TEST(ReadLine, ABareTimeIsUnclearAndOtherTimesAreNotRead) {
  for (const char* line :
       {"iter 10: loss 3.1, time 135.20ms, mfu 12%", "[50/7330] time: 0.1352  data_time: 0.01", "step 10 | dt: 135.2ms",
        "step 10/100 | loss 3.1 | (135.20 ms | 12345 tok/s)", "seconds: 0.1352"}) {
    const std::optional<Reading> reading = Find(ReadLine(line), Measure::kStepSeconds);
    ASSERT_TRUE(reading) << line;
    EXPECT_EQ(reading->trust, Trust::kUnclear) << line;
    EXPECT_NEAR(reading->value, 0.1352, 1e-9) << line;
  }
  for (const char* line :
       {"[50/7330] data_time: 0.01", "eta: 12 s", "total time: 300.1 s", "epoch time: 12.5", "loss: 0.5"}) {
    EXPECT_FALSE(Find(ReadLine(line), Measure::kStepSeconds)) << line;
  }
}

TEST(ReadLine, TellsThroughputOfTheJobFromThatOfAGpu) {
  struct Scoped {
    const char* line;
    double value;
    Scope scope;
  };
  const Scoped kCases[] = {
      {"Iter #0: 240.1 img/sec per GPU", 240.1, Scope::kGpu},
      {"Img/sec per GPU: 240.1 +-2.1", 240.1, Scope::kGpu},
      {"samples/sec per device: 240.1", 240.1, Scope::kGpu},
      {"Total img/sec on 8 GPU(s): 1920.8 +-16.8", 1920.8, Scope::kJob},
      {"total images/sec: 1920.8", 1920.8, Scope::kJob},
  };
  for (const Scoped& c : kCases) {
    const std::optional<Reading> reading = Find(ReadLine(c.line), Measure::kSamplesPerSecond);
    ASSERT_TRUE(reading) << c.line;
    EXPECT_DOUBLE_EQ(reading->value, c.value) << c.line;
    EXPECT_EQ(reading->scope, c.scope) << c.line;
  }
}

TEST(ReadLine, EvaluationAndLoadingAreNotTraining) {
  for (const char* line : {
           "Test: [10/196]\tTime 0.1 (0.2)\tLoss 6.9",
           "Epoch(val) [1][50/100]  time: 0.1",
           "Validation DataLoader 0:  34%|### | 34/100 [00:01<00:02, 45.2it/s]",
           "Evaluating:  34%|### | 34/100 [00:01<00:02, 45.2it/s]",
           "2026-01-02 10:00:00 | INFO | valid | epoch 001 | loss 5.1 | wps 91234",
           "Map: 100%|####| 3668/3668 [00:01<00:00, 2891.9 examples/s]",
           "Loading checkpoint shards: 100%|####| 2/2 [00:05<00:00,  2.5s/it]",
           "Class     Images  Instances      Box(P: 100%|###| 7/7 [00:01<00:00,  5.1it/s]",
           "Running validation at 12/60",
       }) {
    const LineReadings readings = ReadLine(line);
    EXPECT_NE(readings.phase, Phase::kTraining) << line;
    EXPECT_TRUE(readings.empty()) << line;
  }
  const LineReadings mixed =
      ReadLine("{'eval_samples_per_second': 3903.6, 'eval_steps_per_second': 487.9, 'epoch': 3.0}");
  EXPECT_FALSE(Find(mixed, Measure::kSamplesPerSecond));
  EXPECT_FALSE(Find(mixed, Measure::kStepSeconds));
}

TEST(ReadLine, TheLossOfTheValidationAndNamesOfFilesDoNotEndTheTraining) {
  for (const char* line :
       {"val loss 4.2 at step 100", "[test.py:12] step 100", "/opt/eval/run step 100", "my-test-job step 100"}) {
    EXPECT_EQ(ReadLine(line).phase, Phase::kTraining) << line;
    EXPECT_TRUE(Find(ReadLine(line), Measure::kStep)) << line;
  }
}

TEST(ReadLine, WhatIsLeftOfAnEpochOfKerasIsAnAverage) {
  const std::optional<Reading> reading =
      Find(ReadLine("20/60 [==>...] - ETA: 1:19 - loss: 0.3"), Measure::kStepSeconds);
  EXPECT_NEAR(reading.value().value, 79.5 / 40, 1e-9);
  EXPECT_EQ(reading.value().averaged_over, 19);
  EXPECT_FALSE(Find(ReadLine("20/60 [==>...] - ETA: 3s - loss: 0.3"), Measure::kStepSeconds)) << "too coarse";
}

TEST(ReadLine, WhatHasPassedOnABarWithoutASpeedIsAnAverage) {
  const std::optional<Reading> reading =
      Find(ReadLine("Epoch [1/3]: [30/60]  50%|#####     , loss=0.3 [00:40<00:41]"), Measure::kStepSeconds);
  EXPECT_NEAR(reading.value().value, 40.5 / 30, 1e-9);
  EXPECT_EQ(reading.value().averaged_over, 30);
  EXPECT_FALSE(Find(ReadLine("[3/60]  5%|# [00:04<01:20]"), Measure::kStepSeconds)) << "too coarse";
}

TEST(ReadLine, StepsOfPaddlePaddleAreAveragesSinceTheEpochBegan) {
  const std::optional<Reading> reading =
      Find(ReadLine("step 30/60 - loss: 0.4740 - 142ms/step"), Measure::kStepSeconds);
  EXPECT_EQ(reading.value().averaged_over, 30);
}

TEST(ReadLine, ARowOfATableOfEpochsIsNoStep) {
  const LineReadings row = ReadLine("[3, 0.15391062, 0.13504542, '00:03']");
  EXPECT_EQ(Find(row, Measure::kEpoch).value().value, 3);
  EXPECT_FALSE(Find(row, Measure::kStep));
  EXPECT_TRUE(ReadLine("[3, 4, 5]").empty());
}

TEST(ReadLine, ALineOfAnEvaluationWithoutANumberIsAHeading) {
  EXPECT_TRUE(ReadLine("Eval begin...").is_heading);
  EXPECT_EQ(ReadLine("Eval begin...").phase, Phase::kEvaluation);
  EXPECT_FALSE(ReadLine("Eval samples: 480").is_heading);
  EXPECT_EQ(ReadLine("Saving checkpoint").phase, Phase::kOther);
}

TEST(ReadLine, UnitsAtTheirLimits) {
  const Case kCases[] = {
      {"1.5e-3 s/it", Measure::kStepSeconds, 0.0015},
      {"2.5E+02 ms/step", Measure::kStepSeconds, 0.25},
      {"1.2M tokens/s", Measure::kTokensPerSecond, 1.2e6},
      {"345 Ktok/s", Measure::kTokensPerSecond, 345e3},
      {"0.25 it/s", Measure::kStepSeconds, 4},
      {"12 us/step", Measure::kStepSeconds, 12e-6},
      {"3 min/step", Measure::kStepSeconds, 180},
      {"tokens/s: 1,234,567.8", Measure::kTokensPerSecond, 1234567.8},
      {"samples/sec=-3", Measure::kSamplesPerSecond, -3},
      {"speed: -45 ms/step", Measure::kStepSeconds, -0.045},
      {"12/60 -45ms/step", Measure::kStepSeconds, -0.045},
      {"12/60 - 45ms/step", Measure::kStepSeconds, 0.045},
  };
  ExpectValues(kCases);
  for (const char* line : {"nan it/s", "inf samples/s", "time: nan", "step_time=inf", "it/s", "throughput: -"}) {
    EXPECT_TRUE(ReadLine(line).empty()) << line;
  }
}

TEST(ReadLine, SettingsAreNoCounters) {
  for (const char* line : {"total steps: 1000", "steps_per_epoch: 60", "save every steps: 100", "max_iters: 600000",
                           "batch size: 32", "nothing to see here", "loss: nan, lr: 1e-3", ""}) {
    EXPECT_FALSE(Find(ReadLine(line), Measure::kStep)) << line;
  }
}

TEST(ReadLine, ABatchCountsOnlyIfItIsSaidToBeOfAllGpus) {
  struct Batch {
    const char* line;
    double samples;
  };
  for (const Batch& c : {Batch{"global batch size: 256", 256}, Batch{"total_batch_size=128", 128},
                         Batch{"  Total train batch size (w. parallel, distributed & accumulation) = 64", 64},
                         Batch{"Batch size: 32", 0}, Batch{"Namespace(batch_size=64, lr=0.1)", 0},
                         Batch{"per_device_train_batch_size=8,", 0}, Batch{"train_batch_size: 16", 0}}) {
    EXPECT_DOUBLE_EQ(ReadLine(c.line).samples_per_step, c.samples) << c.line;
  }
}

TEST(ReadLine, APartOfAStepIsNoStep) {
  for (const char* line : {"data time/iter: 0.0250 s", "optimizer step time 0.0500 s", "dataloader iter time: 0.0100",
                           "micro batch time: 0.0625 s", "dataloader 2000.1 samples/s per worker", "Cost 9.12345",
                           ":::MLLOG {\"time_ms\": 1767323095616, \"key\": \"epoch_start\"}"}) {
    EXPECT_TRUE(ReadLine(line).empty()) << line;
  }
  EXPECT_TRUE(Find(ReadLine("optimizer step: 100"), Measure::kStep)) << "that is a counter";
}

TEST(ReadLine, AUnitBelongsToItsOwnNumberAndMayHaveThousands) {
  struct Rate {
    const char* line;
    double value;
  };
  for (const Rate& c : {Rate{"Step: 10 | Loss: 6.90 | Tokens/s: 65.1K | MFU: 40.12%", 65100},
                        Rate{"step 10 loss 6.11 tokens/s/gpu: 16381", 16381},
                        Rate{"step 3 | loss 6.1 | total tokens/s: 1.08M", 1.08e6}}) {
    const auto rate = Find(ReadLine(c.line), Measure::kTokensPerSecond);
    ASSERT_TRUE(rate) << c.line;
    EXPECT_NEAR(rate->value, c.value, 1e-6 * c.value) << c.line;
  }
}

TEST(ReadLine, CountersOfKnownFormatsAndNoPercentages) {
  struct Counter {
    const char* line;
    double step;  // 0: none.
  };
  for (const Counter& c :
       {Counter{"DEBUG TRAIN Batch 0/280 loss 80.1 lr 0.001 rank 0", 280}, Counter{"[1,  2000] loss: 2.173", 2000},
        Counter{"30\timages/sec: 1453.0 +/- 2.1", 30},
        Counter{"Steps:  10%|#  | 100/1000 [01:10<07:32, 1.99it/s]", 100}, Counter{"Steps:  10%", 0}}) {
    const auto step = Find(ReadLine(c.line), Measure::kStep);
    EXPECT_DOUBLE_EQ(step ? step->value : 0, c.step) << c.line;
  }
}

TEST(ReadLine, StepsPerSecondUnderATimingPathAreARate) {
  const auto step = Find(ReadLine("[20] timing/steps_per_second=2.0"), Measure::kStepSeconds);
  ASSERT_TRUE(step);
  EXPECT_DOUBLE_EQ(step->value, 0.5);
}

TEST(ReadLine, ABarOfSamplesCountsSamples) {
  const LineReadings read = ReadLine("Epoch 1/5:  10%|x | 640/60000 [00:05<05:00, 128.00img/s, loss (batch)=0.3]");
  EXPECT_FALSE(Find(read, Measure::kStep));
  ASSERT_TRUE(Find(read, Measure::kSampleCount));
  const LineReadings prefixed = ReadLine("INFO Train Epoch: 1 [640/60000 (1%)]  loss=2.3");
  EXPECT_FALSE(Find(prefixed, Measure::kStep));
  EXPECT_TRUE(Find(prefixed, Measure::kSampleCount));
}

TEST(ReadLine, ARateIsOfTheJobOrOfAGpuOnlyWhereThatIsSaidOrKnown) {
  struct Rate {
    const char* line;
    Scope scope;
  };
  const Rate cases[] = {
      {"Iter #2: 615.7 img/sec per GPU", Scope::kGpu},
      {"throughput/device/samples_per_sec: 128.0", Scope::kGpu},
      {"completed step: 8, seconds: 2.014, Tokens/s/device: 4068.509", Scope::kGpu},
      {"step: 60  loss:  0.15  memory: 31.31GiB(31.31%)  tps: 10,163  tflops: 10.16  mfu: 3.26%", Scope::kGpu},
      {"speed: 90 samples/s per worker", Scope::kProcess},
      {"Total img/sec on 8 GPU(s): 4695.1", Scope::kJob},
      {"train.total_ips : 10278.03 images/s train.lr : 0.256 None", Scope::kJob},
      {"global_step=70, RunningAvgSamplesPerSec=416.3, CurrSamplesPerSec=652.1, MemAllocated=0.55GB", Scope::kJob},
      {"throughput/samples_per_sec: 512.0", Scope::kJob},
      {"Train: 0 [ 50/1251 (  4%)]  Loss: 6.9  Time: 0.495s,  517.23/s  (0.564s,  453.97/s)  LR: 1e-05", Scope::kJob},
      {"step 8/20000 | loss 10.8 | norm 15.3 | lr 8e-07 | 1408.10 ms | 45.1% bf16 MFU | 372337 tok/s", Scope::kJob},
      {"epoch 001: 80 / 100 loss=0.1, wps=66461.4, ups=16.62, wpb=4000", Scope::kJob},
      {"Epoch[0] Batch [30-35]\tSpeed: 641.72 samples/sec", Scope::kNotSaid},
      {"step 10: 128.0 img/s total_loss: 6.91", Scope::kNotSaid},
      {"speed 128.0 images/sec global_step 10", Scope::kNotSaid},
      {"128.0 img/s (total elapsed 0:01:00)", Scope::kNotSaid},
      {"total loss = n/a -- speed: 128.0 samples/s", Scope::kNotSaid},
      {"Total throughput of this rank: 128.0 samples/s", Scope::kNotSaid},
      {"global rank zero: throughput 128.0 samples/s", Scope::kNotSaid},
      {"local total: 128.0 img/s", Scope::kNotSaid},
      {"overall average speed 128.0 samples/s", Scope::kNotSaid},
      {"Train: loss 6.9, 128.0 img/s, LR: 0.1", Scope::kNotSaid},
      {"loss 9.1 wps 16384 param groups 2", Scope::kNotSaid},
      {"total speed 128.0 samples/s", Scope::kJob},
      {"30\timages/sec: 1453.0 +/- 2.1 (jitter = 3.4)\t7.903", Scope::kNotSaid},
      {"Step 20/100000; acc: 38.5; 21375/20840 tok/s", Scope::kNotSaid},
  };
  for (const Rate& c : cases) {
    const LineReadings read = ReadLine(c.line);
    const auto rate = std::find_if(read.all().begin(), read.all().end(), [](const Reading& reading) {
      return reading.measure == Measure::kSamplesPerSecond || reading.measure == Measure::kTokensPerSecond;
    });
    ASSERT_NE(rate, read.all().end()) << c.line;
    EXPECT_EQ(rate->scope, c.scope) << c.line;
  }
}

TEST(ReadLine, AStepTimeThatHasTheValidationInItIsMarked) {
  const std::optional<Reading> last =
      Find(ReadLine("60/60 [====] - 4s 61ms/step - loss: 0.1 - val_loss: 0.2"), Measure::kStepSeconds);
  EXPECT_EQ(last.value().trust, Trust::kMixed);
  const std::optional<Reading> running =
      Find(ReadLine("30/60 [==>.] - 2s 55ms/step - loss: 0.1"), Measure::kStepSeconds);
  EXPECT_EQ(running.value().trust, Trust::kStated);
  EXPECT_EQ(running.value().averaged_over, 29);
}

}  // namespace
}  // namespace grus
