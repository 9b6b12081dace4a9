// SPDX-License-Identifier: Apache-2.0
// The law of GPU time by itself, without a GPU: what it charges and admits in cases that programs seldom come to.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "nodeagent/cuda/gpu_time.h"
#include "tests/nodeagent/cuda/sim_gpu.h"

namespace grus::cuda {
namespace {

class GpuTimeLawTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kKey = 77, kStream = 1;

  GpuTimeLawTest() : limits_(std::make_unique<Limits>()), time_(std::make_unique<GpuTime>()) {
    limits_->gpus[0].milli = 300;
    SetRate(300);
    time_->filled = now_;
  }
  std::unique_ptr<GpuTimeLaw> NewProcess(std::uint32_t number) {
    auto law = std::make_unique<GpuTimeLaw>();
    law->Bind(*limits_, 0, *time_, number);
    return law;
  }
  void SetRate(std::uint32_t rate) { limits_->gpus[0].rate = rate; }
  void Pass(std::uint64_t ns) {
    now_ += ns;
    limits_->beat = now_;
  }
  static void Teach(GpuTimeLaw& law, std::uint64_t ns) {
    for (std::uint32_t i = 0; i < LaunchCosts::kMostLearned; ++i) law.costs().Learn(kKey, ns);
  }
  // How much it is let launch within so long, while none of it runs.
  std::uint64_t Queued(GpuTimeLaw& law, std::uint64_t within) {
    std::uint64_t queued = 0;
    for (const std::uint64_t end = now_ + within; now_ < end;) {
      const Admission admission = law.Admit(now_, kKey, kStream);
      if (admission.wait == 0) {
        law.Launched(now_, kKey, kStream, admission);
        queued += admission.took;
      }
      Pass(100 * kUs);
      if (beside_) beside_();
    }
    return queued;
  }
  std::uint64_t Waited(GpuTimeLaw& law) {
    const std::uint64_t from = now_;
    while (const std::uint64_t wait = law.Admit(now_, kKey, kStream).wait) Pass(wait);
    return now_ - from;
  }

  std::unique_ptr<Limits> limits_;
  std::unique_ptr<GpuTime> time_;
  std::uint64_t now_ = 100 * kSec;
  std::function<void()> beside_;
};

TEST_F(GpuTimeLawTest, AKernelThatIsSeldomLaunchedIsNotChargedThePauseBefore) {
  const auto law = NewProcess(1);
  law->Launched(now_, kKey, kStream, law->Admit(now_, kKey, kStream));
  Pass(60 * kSec);
  const Admission again = law->Admit(now_, kKey, kStream);
  EXPECT_EQ(again.wait, 0u);
  EXPECT_LE(again.cost, kSec) << "no longer than launches wait for a measure";
}

TEST_F(GpuTimeLawTest, OldDebtIsNoneOnceTheWholeGpuIsLent) {
  const auto law = NewProcess(1);
  Teach(*law, kMs);
  law->Launched(now_, kKey, kStream, law->Admit(now_, kKey, kStream));
  time_->balance = -5 * static_cast<std::int64_t>(kSec);
  Pass(2 * kSec);
  EXPECT_GT(law->Admit(now_, kKey, kStream).wait, 0u) << "it is while that is not lent";
  SetRate(1000);
  EXPECT_LE(Waited(*law), 50 * kMs);
}

TEST_F(GpuTimeLawTest, WhatAnotherProcessHasQueuedIsNotForgotten) {
  const auto first = NewProcess(1), second = NewProcess(2);
  Teach(*first, kMs);
  Teach(*second, kMs);
  SetRate(1000);
  time_->balance = 20 * static_cast<std::int64_t>(kMs);
  beside_ = [&] {  // Small ones of the other, which end at once.
    const Admission admission = second->Admit(now_, kKey, kStream + 1);
    if (admission.wait > 0) return;
    const Mark mark = second->Launched(now_, kKey, kStream + 1, admission);
    if (admission.mark) second->Completed(now_ + 20 * kUs, mark, now_, now_ + 20 * kUs);
  };
  EXPECT_LE(Queued(*first, 100 * kMs), 150 * kMs);
}

TEST_F(GpuTimeLawTest, ALongLaunchAfterManyShortOnesIsChargedAsLongAsTheyCanHaveRun) {
  for (const std::uint64_t before : {100 * kMs, 200 * kMs, 290 * kMs}) {
    const auto law = NewProcess(1);
    time_->charged = 0;
    const Mark mark = {.key = kKey,
                       .stream = kStream,
                       .launched = now_ + before,
                       .took = 8 * kUs,
                       .begin = now_,
                       .last = now_ + before,
                       .one_in = 128};
    law->Completed(now_ + before + kSec, mark, now_ + before, now_ + before + kSec);
    EXPECT_NEAR(static_cast<double>(time_->charged), static_cast<double>(before + kSec), 5e6) << before;
    Pass(10 * kSec);
  }
}

}  // namespace
}  // namespace grus::cuda
