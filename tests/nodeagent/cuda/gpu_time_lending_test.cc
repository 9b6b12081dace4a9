// SPDX-License-Identifier: Apache-2.0
// Containers side by side on a GPU in virtual time, with the agent's lending: 7:3 within 5 %, equal ones alike, and a
// share that was lent back within 200 ms.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/cuda/gpu_time.h"
#include "tests/nodeagent/cuda/gpu_time_sim.h"
#include "tests/nodeagent/cuda/sim_agent.h"

namespace grus::cuda {
namespace {

using Sharing = SimGpu::Sharing;

class GpuTimeLending : public ::testing::TestWithParam<Sharing> {};
INSTANTIATE_TEST_SUITE_P(, GpuTimeLending, ::testing::Values(Sharing::kTimeSlices, Sharing::kAtOnce),
                         [](const auto& one) { return one.param == Sharing::kTimeSlices ? "InTurns" : "AtOnce"; });

SimProgram Kernels(std::uint64_t ns) {
  return {.next = [ns](std::uint64_t) { return SimWork{1, ns}; }};
}

SimContainer Container(std::uint32_t milli, const SimProgram& program) {
  return {.milli = milli, .processes = {{.programs = {program}}}};
}

TEST_P(GpuTimeLending, TwoBusyOnesShareTheGpuAsIsGuaranteed) {
  for (const auto& [seven, three] : {std::pair(20 * kUs, 2 * kMs), std::pair(2 * kMs, 20 * kUs), std::pair(kMs, kMs)}) {
    SimNode node({Container(700, Kernels(seven)), Container(300, Kernels(three))}, GetParam());
    node.SetAgent(LendingAgent());
    node.RunUntil(6 * kSec);
    const double first = node.Points(0, kSec, 6 * kSec), second = node.Points(1, kSec, 6 * kSec);
    const std::string name = std::to_string(seven) + " ns beside " + std::to_string(three);
    EXPECT_NEAR(first / second, 7.0 / 3, 0.05 * 7 / 3) << name;
    EXPECT_GE(first + second, 98) << name;
  }
}

TEST_P(GpuTimeLending, TenEqualOnesGetTheSame) {
  for (const std::uint64_t kernel : {20 * kUs, 20 * kMs}) {
    SimNode node(std::vector<SimContainer>(10, Container(100, Kernels(kernel))), GetParam());
    node.SetAgent(LendingAgent());
    node.RunUntil(6 * kSec);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < node.size(); ++i) {
      const double points = node.Points(i, kSec, 6 * kSec);
      sum += points;
      squares += points * points;
    }
    EXPECT_GE(sum * sum / (10 * squares), 0.99) << kernel << " ns";
    EXPECT_GE(sum, 90) << kernel << " ns";
  }
}

TEST_P(GpuTimeLending, WhatAnIdleOneLeavesIsLentAndComesBackWithin200Ms) {
  for (const std::uint64_t kernel : {200 * kUs, 2 * kMs, 20 * kMs}) {
    for (const std::uint64_t phase : {1U, 50U, 99U}) {
      const std::uint64_t wake = 3 * kSec + phase * kMs, back = 3 * kSec + 100 * kMs + phase / 10 * 10 * kMs;
      SimProgram before = Kernels(200 * kUs), after = before;
      before.stop = kSec;
      after.start = wake;
      SimNode node({{.milli = 700, .processes = {{.programs = {before, after}}}}, Container(300, Kernels(kernel))},
                   GetParam());
      node.SetAgent(LendingAgent());
      node.RunUntil(4 * kSec);
      double best = 0;
      for (std::uint64_t from = back; from <= back + 100 * kMs; from += SimGpu::kBin)
        best = std::max(best, node.Points(0, from, from + 100 * kMs));
      EXPECT_GE(node.Points(1, 2 * kSec, 3 * kSec), 95) << kernel << " ns";
      EXPECT_GE(best, 67) << kernel << " ns, " << phase << " ms";
    }
  }
}

// In turns, each of its launches waits for the other's turn; that is no time of its own.
TEST_P(GpuTimeLending, OneThatWaitsForEachLaunchIsNotChargedForOthersTurns) {
  SimProgram waits = Kernels(200 * kUs);
  waits.sync_every = 1;
  SimNode node({Container(300, waits), Container(700, Kernels(200 * kUs))}, GetParam());
  node.SetAgent(LendingAgent());
  node.RunUntil(6 * kSec);
  EXPECT_GE(node.Points(0, kSec, 6 * kSec), 27);
  EXPECT_GE(node.Points(1, kSec, 6 * kSec), 60);
}

}  // namespace
}  // namespace grus::cuda
