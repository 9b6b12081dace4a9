// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpushare_gpus.h"

#include <gmock/gmock.h>

#include "controllers/policy/gpu_annotations.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/gpushare_nodes.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GpushareGpus, GpusAreCountedInTheOrderOfTheInventoryAndSickOnesToo) {
  EXPECT_THAT(GpushareGpusOf(*kit::NodeWith("n", kit::kTwoGpus)),
              ElementsAre(GpushareGpu{"GPU-z", 7}, GpushareGpu{"GPU-a", 39}));
}

TEST(GpushareGpus, AnInventoryOfAnotherKindOrOneThatMakesNoSenseIsNone) {
  for (const char* inventory :
       {"", "{", "{}", "[]", "[1]", R"([{"uuid":"a","memoryMiB":8192,"mode":"milli"}])",
        R"([{"memoryMiB":8192,"mode":"gpushare"}])", R"([{"uuid":1,"memoryMiB":8192,"mode":"gpushare"}])"}) {
    EXPECT_THAT(GpushareGpusOf(*kit::NodeWith("n", inventory)), IsEmpty()) << inventory;
  }
  EXPECT_THAT(GpushareGpusOf(*kit::NodeWith("n", R"([{"uuid":"a","memoryMiB":-5,"mode":"gpushare"},
                                                {"uuid":"b","memoryMiB":"x","mode":"gpushare"}])")),
              ElementsAre(GpushareGpu{"a", 0}, GpushareGpu{"b", 0}));
}

std::shared_ptr<kube::Node> NodeOfItsPlugin(const std::string& count, const std::string& sum) {
  auto node = kit::NodeWith("n", "");
  node->status.capacity = {{api::kGpushareCountResource, *kube::ParseQuantity(count)},
                           {api::kGpuMemResource, *kube::ParseQuantity(sum)}};
  return node;
}

TEST(GpushareGpus, WhereItsOwnPluginRunsAllAreEquallyLarge) {
  const auto node = NodeOfItsPlugin("3", "47");
  EXPECT_THAT(GpushareGpusOf(*node), ElementsAre(GpushareGpu{"0", 15}, GpushareGpu{"1", 15}, GpushareGpu{"2", 15}));
  Resources offered;
  offered.AddExtended(api::kGpuMemResource, 40);  // A sick one has left.
  AddGpushareGpus(*node, offered);
  EXPECT_EQ(offered.Extended(PartOn(api::kGpuMemResource, "2")), 15);
  WithholdGpushareGpus(*node, {2}, offered);
  Resources request;
  request.AddExtended(api::kGpuMemResource, 8);
  EXPECT_EQ(CopiesOnGpus(offered, {}, request, 100), 2);
}

TEST(GpushareGpus, CountsThatMakeNoSenseAreNone) {
  for (const char* count : {"0", "-1", "65", "9223372036854775807"}) {
    EXPECT_THAT(GpushareGpusOf(*NodeOfItsPlugin(count, "47")), IsEmpty()) << count;
    Resources offered, request;
    offered.AddExtended(api::kGpuMemResource, 47);
    AddGpushareGpus(*NodeOfItsPlugin(count, "47"), offered);
    request.AddExtended(api::kGpuMemResource, 8);
    EXPECT_EQ(CopiesOnGpus(offered, {}, request, 100), 0) << "nobody could be told a GPU; count " << count;
  }
  EXPECT_THAT(GpushareGpusOf(*NodeOfItsPlugin("2", "0")), IsEmpty());
  EXPECT_THAT(GpushareGpusOf(*NodeOfItsPlugin("2", "-4")), IsEmpty());
}

TEST(GpushareGpus, NodesOfTheAgentAreKnownByTheirInventoryAlone) {
  const auto node = NodeOfItsPlugin("2", "32");
  node->metadata.labels[api::kSharingModeLabel] = "gpushare";
  EXPECT_THAT(GpushareGpusOf(*node), IsEmpty()) << "the agent has not said yet which they are";
}

TEST(GpushareGpus, APodSaysItsNumber) {
  kube::Pod pod;
  EXPECT_EQ(AssumedGpuOf(pod), "");
  for (const auto& [text, gpu] : std::map<std::string, std::string>{
           {"0", "0"}, {"03", "3"}, {"63", "63"}, {"64", ""}, {"-1", ""}, {"1 ", ""}, {"x", ""}, {"1.0", ""}}) {
    pod.metadata.annotations[api::kGpushareIndex] = text;
    EXPECT_EQ(AssumedGpuOf(pod), gpu) << text;
  }
}

TEST(GpushareGpus, AListOfUnhealthyOnesIsOfANode) {
  EXPECT_EQ(NodeOfUnhealthyGpus("unhealthy-gpu-gpu-node-7.example.com"), "gpu-node-7.example.com");
  EXPECT_EQ(NodeOfUnhealthyGpus(UnhealthyGpusOf("n")), "n");
  for (const char* other : {"", "coredns", "unhealthy-gpu-", "unhealthy-n", "x-unhealthy-gpu-n"}) {
    EXPECT_EQ(NodeOfUnhealthyGpus(other), "") << other;
  }
}

TEST(GpushareGpus, AListOfUnhealthyOnesHasNumbersAndCommas) {
  using Numbers = std::set<std::size_t>;
  EXPECT_EQ(UnhealthyGpusIn("0,2"), (Numbers{0, 2}));
  EXPECT_EQ(UnhealthyGpusIn(" 3 , 1,\n"), (Numbers{1, 3}));
  EXPECT_EQ(UnhealthyGpusIn("63"), Numbers{63});
  EXPECT_EQ(UnhealthyGpusIn(""), Numbers());
  EXPECT_EQ(UnhealthyGpusIn(" \n"), Numbers());
  for (const char* text : {"GPU-1", "1;2", "-1", "64", "0x1", "1.5", ",", "1,,2", "99999999999999999999999"}) {
    EXPECT_EQ(UnhealthyGpusIn(text), std::nullopt) << text;
  }
}

TEST(GpushareGpus, OneThatIsOutOfUseHasNoRoomAndStaysKnown) {
  const auto node = kit::NodeWith("n", R"([{"uuid":"GPU-z","memoryMiB":8192,"mode":"gpushare"},
                                      {"uuid":"GPU-a","memoryMiB":16384,"mode":"gpushare"}])");
  Resources offered, request;
  offered.AddExtended(api::kGpuMemResource, 24);
  request.AddExtended(api::kGpuMemResource, 1);
  AddGpus(*node, offered);
  WithholdGpushareGpus(*node, {1, 17}, offered);
  EXPECT_EQ(ChooseGpu(offered, {}, request, PoolPlacement::kSpread, "GPU-a"), "GPU-z");
  EXPECT_EQ(CopiesOnGpus(offered, {}, request, 100), 8);
  WithholdGpushareGpus(*node, {0, 1}, offered);
  EXPECT_EQ(CopiesOnGpus(offered, {}, request, 100), 0);
  EXPECT_EQ(LackOnGpus(offered, {}, request), "1 aliyun.com/gpu-mem on one GPU: 0 are free at most");
  EXPECT_EQ(offered.Extended(api::kGpuMemResource), 24) << "pods that run there count in the sum";
}

}  // namespace
}  // namespace grus
