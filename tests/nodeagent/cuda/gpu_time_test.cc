// SPDX-License-Identifier: Apache-2.0
// The law of GPU time against a GPU in virtual time (gpu_time_sim.h). What is asked for: within 3 points over 10 s,
// each second within 8.
#include "nodeagent/cuda/gpu_time.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/nodeagent/cuda/gpu_time_sim.h"

namespace grus::cuda {
namespace {

SimContainer Busy(std::uint32_t milli, std::uint64_t kernel, std::size_t streams = 1) {
  SimContainer container{.milli = milli, .processes = {SimProcess{}}};
  for (std::size_t i = 0; i < streams; ++i) {
    container.processes.front().programs.push_back({.next = [kernel](std::uint64_t) { return SimWork{1, kernel}; }});
  }
  return container;
}

TEST(GpuTime, AContainerThatIsAloneIsHeldToItsShare) {
  for (const std::uint32_t milli : {100U, 250U, 500U, 750U}) {
    for (const std::uint64_t kernel : {20 * kUs, 200 * kUs, 2 * kMs, 20 * kMs}) {
      for (const std::size_t streams : {1U, 4U}) {
        SimNode node({Busy(milli, kernel, streams)});
        node.RunUntil(11 * kSec);
        const double asked = milli / 10.0;
        const std::string name =
            std::to_string(milli) + " " + std::to_string(kernel) + " ns, streams " + std::to_string(streams);
        EXPECT_NEAR(node.Points(0, kSec, 11 * kSec), asked, 3) << name;
        EXPECT_LE(node.WorstSecond(0, kSec, 11 * kSec, asked), 8) << name;
      }
    }
  }
}

// More marks than there is room for.
TEST(GpuTime, ShortKernelsOfSeveralStreamsAreHeldToTheShare) {
  SimNode node({Busy(750, 5 * kUs, 4)});
  node.RunUntil(5 * kSec);
  EXPECT_NEAR(node.Points(0, 0, 5 * kSec), 75, 3);
}

TEST(GpuTime, KernelsOfHalfASecondArePaidBack) {
  SimNode node({Busy(250, 500 * kMs)});
  node.RunUntil(21 * kSec);
  EXPECT_NEAR(node.Points(0, kSec, 21 * kSec), 25, 3);
}

TEST(GpuTime, ALaunchWhoseCostJumpsIsChargedWhatItTook) {
  SimContainer container{.milli = 300, .processes = {SimProcess{}}};
  container.processes.front().programs.push_back({.next = [](std::uint64_t number) {
    return SimWork{1, number % 2 == 0 ? 10 * kUs : 10 * kMs};
  }});
  SimNode node({container});
  node.RunUntil(11 * kSec);
  EXPECT_NEAR(node.Points(0, kSec, 11 * kSec), 30, 3);
}

TEST(GpuTime, ALaunchThatIsRarelyLongIsChargedWhatItTook) {
  SimContainer container{.milli = 500, .processes = {SimProcess{}}};
  container.processes.front().programs.push_back({.next = [](std::uint64_t number) {
    return SimWork{1, number % 101 == 100 ? 10 * kMs : 20 * kUs};
  }});
  SimNode node({container});
  node.RunUntil(11 * kSec);
  EXPECT_NEAR(node.Points(0, kSec, 11 * kSec), 50, 3);
}

SimContainer NewKernels(std::uint32_t milli, std::uint64_t kernel) {
  SimContainer container{.milli = milli, .processes = {SimProcess{}}};
  container.processes.front().programs.push_back({.next = [kernel](std::uint64_t number) {
    return SimWork{number + 1, kernel};
  }});
  return container;
}

TEST(GpuTime, KernelsThatAreLaunchedOnceAreChargedWhatTheyTook) {
  SimNode node({NewKernels(500, 20 * kUs)});
  node.RunUntil(6 * kSec);
  EXPECT_NEAR(node.Points(0, kSec, 6 * kSec), 50, 3);
}

TEST(GpuTime, OfNewKernelsFewAreLaunchedBeforeOneIsMeasured) {
  SimNode node({NewKernels(100, 20 * kMs)});
  node.RunUntil(10 * kSec);
  EXPECT_NEAR(node.Points(0, 0, 10 * kSec), 10, 3);
  EXPECT_LE(node.WorstSecond(0, 0, 10 * kSec, 10), 8);
}

TEST(GpuTime, WhoMayHaveTheWholeGpuForNowFillsItWithLittleQueuedAhead) {
  for (const std::uint64_t kernel : {20 * kUs, 2 * kMs, 20 * kMs}) {
    SimNode node({Busy(300, kernel)});
    node.SetRate(0, 1000);
    node.RunUntil(3 * kSec);
    EXPECT_GE(node.Points(0, kSec, 3 * kSec), 97) << kernel;
    EXPECT_LE(node.gpu().Queued(0, 0) * kernel, 60 * kMs) << kernel;
  }
}

// A share of nothing is no limit.
TEST(GpuTime, WithoutALimitTheGpuIsBusy) {
  SimNode node({Busy(1000, 200 * kUs)});
  node.RunUntil(3 * kSec);
  EXPECT_GE(node.Points(0, kSec, 3 * kSec), 97);
}

}  // namespace
}  // namespace grus::cuda
