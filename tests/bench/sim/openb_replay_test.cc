// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "bench/sim/csv.h"
#include "tests/kit/must.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

// Every 20th node, and every 20th pod, of this list.
OpenbTrace Slice(const std::string& list) {
  constexpr std::size_t kEvery = 20;
  const auto read = [](const std::string& name) {
    return kit::Must(ReadCsvFile(kit::TreePath("bench/data/openb/openb_" + name + ".csv")));
  };
  const auto thin = [](auto& all) {
    for (std::size_t i = 0; i * kEvery < all.size(); ++i) all[i] = all[i * kEvery];
    all.resize((all.size() + kEvery - 1) / kEvery);
  };
  OpenbTrace trace = kit::Must(ReadOpenbTrace(read("node_list_gpu_node"), read("pod_list_" + list)));
  thin(trace.nodes);
  thin(trace.pods);
  return trace;
}

TEST(OpenbReplay, GivesNothingTwiceAndNothingThatDoesNotFit) {
  for (const char* list : {"default", "gpuspec25", "multigpu40"}) {
    const OpenbTrace trace = Slice(list);
    for (const OpenbPolicy& policy : OpenbPolicies()) {
      for (const Ties ties : {Ties::kName, Ties::kRandom}) {
        SCOPED_TRACE(std::string(list) + ", " + std::string(policy.name) + (ties == Ties::kName ? ", by name" : ""));

        const OpenbOutcome outcome = ReplayOpenb(trace, policy, ties, 7);

        std::vector<OpenbNode> left = trace.nodes;
        std::int64_t allocated = 0;
        for (const OpenbPlacement& placed : outcome.placed) {
          const OpenbPod& pod = trace.pods[placed.pod];
          OpenbNode& node = left[placed.node];
          ASSERT_EQ(placed.devices.size(), static_cast<std::size_t>(pod.request.devices));
          ASSERT_EQ(std::set(placed.devices.begin(), placed.devices.end()).size(), placed.devices.size());
          ASSERT_TRUE(pod.request.devices == 0 || (pod.request.models >> node.free.model & 1) != 0);
          for (const int device : placed.devices) {
            int& milli = node.free.device_milli.at(static_cast<std::size_t>(device));
            ASSERT_GE(milli -= pod.request.device_milli, 0);
          }
          ASSERT_GE(node.free.milli_cpu -= pod.request.milli_cpu, 0);
          ASSERT_GE(node.memory_mib -= pod.memory_mib, 0);
          allocated += pod.gpu_milli();
        }
        EXPECT_DOUBLE_EQ(outcome.allocated_percent_130,
                         100.0 * static_cast<double>(allocated) / static_cast<double>(trace.gpu_milli()));
        EXPECT_LE(outcome.allocated_percent_100, outcome.allocated_percent_130);
        EXPECT_GT(outcome.allocated_percent_100, 50);
        EXPECT_EQ(outcome.arrived, OpenbArrivals(trace, 7).size());
        EXPECT_LT(outcome.placed.size(), outcome.arrived);
      }
    }
  }
}

TEST(OpenbReplay, DropsAPodOnlyIfNoNodeHasRoomForIt) {
  const OpenbTrace trace = Slice("default");

  const OpenbOutcome outcome = ReplayOpenb(trace, OpenbPolicies()[0], Ties::kRandom, 3);

  // Nobody departs: what has room at the end had room when it arrived.
  std::vector<OpenbNode> left = trace.nodes;
  std::vector<std::size_t> placed;
  for (const OpenbPlacement& placement : outcome.placed) {
    const OpenbPod& pod = trace.pods[placement.pod];
    left[placement.node].free = After(left[placement.node].free, pod.request, placement.devices);
    left[placement.node].memory_mib -= pod.memory_mib;
    placed.push_back(placement.pod);
  }
  std::size_t dropped = 0;
  auto next = placed.begin();
  for (const std::size_t arrived : OpenbArrivals(trace, 3)) {
    if (next != placed.end() && *next == arrived) {
      ++next;
      continue;
    }
    ++dropped;
    const OpenbPod& pod = trace.pods[arrived];
    for (const OpenbNode& node : left) {
      EXPECT_FALSE(node.memory_mib >= pod.memory_mib && Fits(node.free, pod.request))
          << pod.name << " on " << node.name;
    }
  }
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(next, placed.end());
}

// Ten nodes of two GPUs, and pods of one; to this policy, all nodes with room are equal.
std::vector<std::size_t> NodesOfEqualScores(Ties ties, std::uint64_t seed) {
  OpenbTrace trace;
  for (int i = 0; i < 10; ++i) trace.nodes.push_back({"node-" + std::to_string(i), {8000, {1000, 1000}, 0}, 8000});
  trace.pods.push_back({"pod", {1000, 1, kWholeDevice}, 1000});
  const OpenbPolicy indifferent{
      "indifferent",
      [](const FreeGpus& node, const GpuRequest& pod, std::span<const TypicalPod>) -> std::optional<GpuPlacement> {
        const auto choices = DeviceChoices(node, pod);
        return choices.empty() ? std::nullopt : std::optional(GpuPlacement{choices.front(), 0});
      },
      ties};
  std::vector<std::size_t> nodes;
  for (const OpenbPlacement& placed : ReplayOpenb(trace, indifferent, ties, seed).placed) nodes.push_back(placed.node);
  return nodes;
}

std::size_t Changes(const std::vector<std::size_t>& nodes) {
  std::size_t changes = 0;
  for (std::size_t i = 1; i < nodes.size(); ++i) changes += nodes[i] != nodes[i - 1] ? 1 : 0;
  return changes;
}

TEST(OpenbReplay, FillsEqualNodesOneByOneIfTiesGoByName) {
  const std::vector<std::size_t> nodes = NodesOfEqualScores(Ties::kName, 1);

  EXPECT_EQ(nodes.size(), 20u);
  EXPECT_EQ(Changes(nodes), 9u);
  EXPECT_NE(nodes, NodesOfEqualScores(Ties::kName, 2)) << "names are drawn anew for each seed";
}

TEST(OpenbReplay, SpreadsOverEqualNodesIfTiesAreRandom) {
  const std::vector<std::size_t> nodes = NodesOfEqualScores(Ties::kRandom, 1);

  EXPECT_EQ(nodes.size(), 20u);
  EXPECT_GT(Changes(nodes), 12u);
  EXPECT_EQ(nodes, NodesOfEqualScores(Ties::kRandom, 1));
}

TEST(OpenbArrivals, AskForAsMuchOf130PercentAsTheNextPodLeaves) {
  for (const char* list : {"default", "multigpu40"}) {  // The one asks for less than 130 % in all, the other for more.
    const OpenbTrace trace = Slice(list);
    const std::vector<std::size_t> arrivals = OpenbArrivals(trace, 5);
    std::int64_t asked = 0;
    for (const std::size_t pod : arrivals) asked += trace.pods.at(pod).gpu_milli();

    EXPECT_LE(asked, trace.gpu_milli() * 130 / 100) << list;
    EXPECT_GT(asked, trace.gpu_milli() * 130 / 100 - 8 * kWholeDevice) << list;
  }
}

TEST(OpenbArrivals, BringEachPodOnceBeforeAnyTwice) {
  const OpenbTrace trace = Slice("default");

  std::vector<std::size_t> first = OpenbArrivals(trace, 5);

  ASSERT_GT(first.size(), trace.pods.size());
  first.resize(trace.pods.size());
  EXPECT_FALSE(std::ranges::is_sorted(first));
  std::ranges::sort(first);
  std::vector<std::size_t> each(trace.pods.size());
  std::iota(each.begin(), each.end(), std::size_t{0});
  EXPECT_EQ(first, each);
}

TEST(OpenbArrivals, FollowFromTheSeed) {
  const OpenbTrace trace = Slice("default");

  EXPECT_EQ(OpenbArrivals(trace, 5), OpenbArrivals(trace, 5));
  EXPECT_NE(OpenbArrivals(trace, 5), OpenbArrivals(trace, 6));
}

}  // namespace
}  // namespace grus
