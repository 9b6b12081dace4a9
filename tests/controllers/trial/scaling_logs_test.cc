// SPDX-License-Identifier: Apache-2.0
// Logs of one training on 1, 2, 4 and 8 GPUs, as ten frameworks print them, read by the speed reader and judged by a
// TrialJob. The training scales nearly ideally with a batch of 64 samples on each GPU, so the knee is 8. The formats
// are written after the sources of the frameworks.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/controllers/measure/log_writer.h"
#include "tests/controllers/trial/trial_world.h"

namespace grus {
namespace {

using ::testing::HasSubstr;
using testing::TestTrialJob;
using testing::TrialWorld;

constexpr int kBatch = 64, kTokensPerSample = 128;
constexpr int kSteps = 120;

double StepSeconds(int gpus) { return 0.5 * (1 + 0.01 * std::log2(gpus)); }

template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

struct Training {
  int gpus = 1;
  double step_s = 0.5;  // With a little noise.
  int step = 0;         // From 1 on.

  double gpu_rate() const { return kBatch / step_s; }
  double rate() const { return gpus * gpu_rate(); }
  int global_batch() const { return gpus * kBatch; }
};

struct Framework {
  const char* name;
  std::function<std::string(const Training&)> head;  // Before the first step; may have several lines.
  std::function<std::string(const Training&)> line;  // Of a step; empty: none.
  bool is_answered;                                  // False: Unknown, with what to do about it.
};

std::string NoHead(const Training&) { return "loading"; }
std::string Every(int n, const Training& t, const std::string& text) { return t.step % n == 0 ? text : ""; }

const std::vector<Framework>& Frameworks() {
  static const std::vector<Framework> kAll = {
      {"tqdm and argparse", [](const Training&) { return "Namespace(batch_size=64, epochs=3, lr=0.1)"; },
       [](const Training& t) {
         return Format("Epoch 0:  12%%|#1        | %d/1000 [%02d:%02d<08:12, %5.2fit/s, loss=2.3]", t.step,
                       static_cast<int>(t.step * t.step_s) / 60, static_cast<int>(t.step * t.step_s) % 60,
                       1 / t.step_s);
       },
       true},
      {"Hugging Face Trainer",
       [](const Training&) {
         return "TrainingArguments(\n_n_gpu=1,\nper_device_train_batch_size=64,\nsave_steps=500,\n)";
       },
       [](const Training& t) {
         return Format("  1%%|1         | %d/1000 [%02d:%02d<08:15, %5.2fit/s]", t.step,
                       static_cast<int>(t.step * t.step_s) / 60, static_cast<int>(t.step * t.step_s) % 60,
                       1 / t.step_s);
       },
       true},
      {"torchtitan", NoHead,
       [](const Training& t) {
         return Every(10, t,
                      Format("[titan] 2026-11-22 05:59:17,515 - root - INFO - step: %d  loss:  0.15000  memory: "
                             "31.31GiB(31.31%%)  tps: %.0f  tflops: 10.16  mfu: 3.26%%",
                             t.step, t.gpu_rate() * kTokensPerSample));
       },
       true},
      {"tf_cnn_benchmarks", [](const Training&) { return "Batch size:  64 global\nStep\tImg/sec\ttotal_loss"; },
       [](const Training& t) {
         return Every(5, t, Format("%d\timages/sec: %.1f +/- 2.1 (jitter = 3.4)\t7.903", t.step, t.gpu_rate()));
       },
       true},
      {"MNIST under DistributedDataParallel", NoHead,
       [](const Training& t) {
         return Every(5, t,
                      Format("Train Epoch: 1 [%d/60000 (%d%%)]\tLoss: 2.300000", t.step * kBatch,
                             100 * t.step * kBatch / 60000));
       },
       true},
      {"Composer", NoHead,
       [](const Training& t) {
         return Every(5, t,
                      Format("[batch=%d/1000]:\n\t Train time/batch: %d\n\t Train throughput/batches_per_sec: %.4f\n\t "
                             "Train throughput/samples_per_sec: %.3f\n\t Train throughput/device/batches_per_sec: "
                             "%.4f\n\t Train throughput/device/samples_per_sec: %.3f",
                             t.step, t.step - 1, 1 / t.step_s, t.rate(), 1 / t.step_s / t.gpus, t.gpu_rate()));
       },
       true},
      {"DeepSpeed", NoHead,
       [](const Training& t) {
         return Every(
             5, t,
             Format("[2026-11-22 05:58:24,418] [INFO] [timer.py:264:stop] epoch=0/micro_step=%d/global_step=%d, "
                    "RunningAvgSamplesPerSec=%.3f, CurrSamplesPerSec=%.3f, MemAllocated=0.55GB, "
                    "MaxMemAllocated=0.55GB",
                    t.step, t.step, t.rate(), t.rate()));
       },
       true},
      {"Horovod's synthetic benchmark",
       [](const Training& t) { return Format("Model: ResNet50\nBatch size: 64\nNumber of GPUs: %d", t.gpus); },
       [](const Training& t) {
         return Every(5, t, Format("Iter #%d: %.1f img/sec per GPU", t.step / 5, t.gpu_rate()));
       },
       true},
      {"Keras", [](const Training&) { return "Epoch 1/3"; },
       [](const Training& t) {
         return Format("%d/1000 [>.............................] - ETA: 8:11 - loss: 2.3026 %.0fms/step", t.step,
                       1000 * t.step_s);
       },
       true},
      {"Megatron-LM", NoHead,
       [](const Training& t) {
         return Every(
             5, t,
             Format(" [2026-11-22 05:58:24] iteration %8d/ 1000 | consumed samples: %d | elapsed time per iteration "
                    "(ms): %.1f | learning rate: 1.5E-04 | global batch size: %5d | lm loss: 8.1E+00 |",
                    t.step, t.step * t.global_batch(), 1000 * t.step_s, t.global_batch()));
       },
       true},
      {"timm", NoHead,
       [](const Training& t) {
         return Every(
             5, t,
             Format("Train: 0 [%4d/1251 ( 28%%)]  Loss: 6.95 (6.93)  Time: %.3fs, %7.2f/s  (%.3fs, %7.2f/s)  LR: "
                    "1.000e-05  Data: 0.010 (0.034)",
                    t.step, t.step_s, t.rate(), t.step_s, t.rate()));
       },
       true},
      {"fairseq", NoHead,
       [](const Training& t) {
         return Every(5, t,
                      Format("2026-11-22 05:42:02 | INFO | train_inner | epoch 001: %d / 1000 loss=0.133, wps=%.1f, "
                             "ups=%.3f, wpb=4000, num_updates=%d, train_wall=1",
                             t.step, t.rate() * kTokensPerSample, 1 / t.step_s, t.step));
       },
       true},
      {"MXNet's Speedometer", NoHead,
       [](const Training& t) {
         return Every(5, t,
                      Format("INFO:root:Epoch[0] Batch [%d-%d]\tSpeed: %.2f samples/sec\taccuracy=0.2", t.step - 5,
                             t.step, t.gpu_rate()));
       },
       false},
  };
  return kAll;
}

SpeedObservation Read(const Framework& framework, int gpus) {
  LogWriter log;
  Training training{.gpus = gpus};
  const auto write = [&](const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      log.Line(text.substr(at, end - at));
      at = end + 1;
    }
  };
  SpeedReader reader = *SpeedReader::Make({});
  write(framework.head(training));
  for (training.step = 1; training.step <= kSteps; ++training.step) {
    training.step_s = StepSeconds(gpus) * (1 + 0.01 * std::sin(training.step * 2.4));
    log.Wait(training.step_s);
    write(framework.line(training));
  }
  reader.Add(log.bytes);
  return reader.Observe(log.now);
}

const api::Recommendation& KneeOf(const api::TrialJobStatus& status) {
  static const api::Recommendation kNone;
  for (const api::Recommendation& r : status.recommendation) {
    if (r.goal == api::Goal::kKnee) return r;
  }
  return kNone;
}

class ScalingLogs : public ::testing::TestWithParam<bool> {};

TEST_P(ScalingLogs, TheKneeIsRightOrUnknownWithTheRemedy) {
  const bool has_batch_sizes = GetParam();
  for (const Framework& framework : Frameworks()) {
    TrialWorld world(TestTrialJob({1, 2, 4, 8}, has_batch_sizes ? std::vector<int>{kBatch} : std::vector<int>{}));
    world.RunSeen([&](const api::TrialConfig& config) { return Read(framework, config.gpus); });
    ASSERT_TRUE(world.status().completion_time) << framework.name << ": " << world.ReadyMessage();
    for (const api::Trial& trial : world.status().trials) {
      EXPECT_EQ(trial.phase, api::TrialPhase::kSucceeded)
          << framework.name << " on " << trial.config.gpus << ": " << trial.message;
    }
    const api::Recommendation& knee = KneeOf(world.status());
    if (!framework.is_answered) {
      EXPECT_FALSE(knee.gpus) << framework.name;
      EXPECT_THAT(knee.message, HasSubstr("set measure.patterns: [{")) << framework.name;
      EXPECT_THAT(knee.message, HasSubstr("scope: PerGpu, regex: '")) << framework.name;
      continue;
    }
    ASSERT_TRUE(knee.gpus) << framework.name << ": " << knee.message;
    EXPECT_EQ(*knee.gpus, 8) << framework.name << ": " << knee.message;
  }
}

INSTANTIATE_TEST_SUITE_P(BatchSizes, ScalingLogs, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Given" : "NotGiven"; });

}  // namespace
}  // namespace grus
