// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_planner.h"

#include <gtest/gtest.h>

#include <set>

namespace grus {
namespace {

OpenbPod PodOf(const std::string& name, int devices, int milli, GpuModels models = kAnyModel) {
  return {name, {.milli_cpu = 1000, .devices = devices, .device_milli = milli, .models = models}, 1000};
}

// Twelve nodes of eight GPUs of two models, which half of the pods choose between; parts and whole GPUs.
OpenbTrace Mixed() {
  OpenbTrace trace;
  for (int i = 0; i < 12; ++i) {
    trace.nodes.push_back({"node-" + std::to_string(i), {64'000, std::vector<int>(8, kWholeDevice), i % 2}, 64'000});
  }
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    trace.pods.push_back(PodOf("part-" + number, 1, 300 + 130 * i));
    trace.pods.push_back(PodOf("choosy-part-" + number, 1, 300 + 130 * i, GpuModels{1} << (i % 2)));
    trace.pods.push_back(PodOf("whole-" + number, 1 + i, kWholeDevice));
    trace.pods.push_back(PodOf("choosy-whole-" + number, 1 + 2 * i, kWholeDevice, GpuModels{1} << (i % 2)));
    trace.pods.push_back(PodOf("none-" + number, 0, 0));
  }
  return trace;
}

TEST(OpenbPlanner, GivesNoGpuTwiceWholeOrInParts) {
  const OpenbTrace trace = Mixed();
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);

    const OpenbOutcome outcome = ReplayThroughPlanner(trace, seed);

    std::vector<OpenbNode> left = trace.nodes;
    std::set<std::string> kinds;
    for (const OpenbPlacement& placed : outcome.placed) {
      const OpenbPod& pod = trace.pods[placed.pod];
      OpenbNode& node = left[placed.node];
      kinds.insert(pod.name.substr(0, pod.name.rfind('-')));
      ASSERT_EQ(placed.devices.size(), static_cast<std::size_t>(pod.request.devices));
      ASSERT_EQ(std::set(placed.devices.begin(), placed.devices.end()).size(), placed.devices.size());
      ASSERT_TRUE(pod.request.devices == 0 || (pod.request.models >> node.free.model & 1) != 0);
      for (const int device : placed.devices) {
        ASSERT_GE(node.free.device_milli.at(static_cast<std::size_t>(device)) -= pod.request.device_milli, 0);
      }
      ASSERT_GE(node.free.milli_cpu -= pod.request.milli_cpu, 0);
      ASSERT_GE(node.memory_mib -= pod.memory_mib, 0);
    }
    EXPECT_EQ(kinds.size(), 5u);
    EXPECT_LT(outcome.placed.size(), outcome.arrived);
    EXPECT_GT(outcome.allocated_percent_130, 85);
  }
}

TEST(OpenbPlanner, DropsAPodOnlyIfNoNodeHasRoomForIt) {
  const OpenbTrace trace = Mixed();

  const OpenbOutcome outcome = ReplayThroughPlanner(trace, 5);

  // Nobody departs: what has room at the end had room when it arrived.
  std::vector<OpenbNode> left = trace.nodes;
  for (const OpenbPlacement& placed : outcome.placed) {
    left[placed.node].free = After(left[placed.node].free, trace.pods[placed.pod].request, placed.devices);
    left[placed.node].memory_mib -= trace.pods[placed.pod].memory_mib;
  }
  std::size_t dropped = 0;
  auto next = outcome.placed.begin();
  for (const std::size_t arrived : OpenbArrivals(trace, 5)) {
    if (next != outcome.placed.end() && next->pod == arrived) {
      ++next;
      continue;
    }
    ++dropped;
    const OpenbPod& pod = trace.pods[arrived];
    for (const OpenbNode& node : left) {
      EXPECT_FALSE(node.memory_mib >= pod.memory_mib && Fits(node.free, pod.request)) << pod.name << node.name;
    }
  }
  EXPECT_GT(dropped, 0u);
}

}  // namespace
}  // namespace grus
