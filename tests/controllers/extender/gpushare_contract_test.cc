// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/gpushare_contract.h"

#include <gmock/gmock.h>

#include <chrono>

#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/gpushare_nodes.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::ElementsAre;

std::shared_ptr<kube::Pod> PodOn(const std::string& name, const std::string& node) {
  auto pod = std::make_shared<kube::Pod>();
  pod->metadata.name = name;
  pod->metadata.ns = "team-a";
  pod->spec.node_name = node;
  return pod;
}

Resources Amount(const std::string& gpu, std::int64_t gib) {
  Resources resources;
  resources.AddExtended(std::string(api::kGpuMemResource) + "#" + gpu, gib);
  return resources;
}

TEST(GpushareContract, ABoundPodSaysItsGpuHowMuchThatHasAndWhen) {
  Json annotations = Json::MakeObject();
  AddGpushareAnnotations(*kit::NodeWith("n", kit::kTwoGpus), "GPU-a", 12,
                         kube::WallTime(std::chrono::duration_cast<kube::WallTime::duration>(
                             std::chrono::nanoseconds(1610364333371132383))),
                         annotations);
  EXPECT_EQ(annotations, Json::MakeObject({{"ALIYUN_COM_GPU_MEM_IDX", "1"},
                                           {"ALIYUN_COM_GPU_MEM_DEV", "39"},
                                           {"ALIYUN_COM_GPU_MEM_POD", "12"},
                                           {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
                                           {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1610364333371132383"}}));
}

TEST(GpushareContract, AGpuThatTheNodeDoesNotOfferHasNoNumber) {
  Json annotations = Json::MakeObject();
  AddGpushareAnnotations(*kit::NodeWith("n", kit::kTwoGpus), "GPU-b", 1, {}, annotations);
  AddGpushareAnnotations(*kit::NodeWith("n", ""), "GPU-a", 1, {}, annotations);
  EXPECT_EQ(annotations, Json::MakeObject());
}

TEST(GpushareContract, InspectionTellsWhatTheAccountHas) {
  const std::vector<std::shared_ptr<const kube::Node>> nodes = {kit::NodeWith("n", kit::kTwoGpus),
                                                                kit::NodeWith("plain", "")};
  // The second is on another node whose GPU has the same name, the third is being bound, the last holds nothing.
  const std::vector<std::shared_ptr<const kube::Pod>> pods = {PodOn("p", "n"), PodOn("q", "far"), PodOn("r", ""),
                                                              PodOn("s", "")};
  HoldingsLook look{{Amount("GPU-z", 7), {}}, {Amount("GPU-z", 5), {}}, {}, {"n", "far", "n", ""}};
  look.held = {Amount("GPU-z", 3), Amount("GPU-z", 4), Amount("GPU-z", 2), {}};
  const auto inspected = Inspected(nodes, pods, look);
  EXPECT_THAT(inspected,
              ElementsAre(InspectedNode{"n", {{7, 5, true, {{"p", "team-a", 3}, {"r", "team-a", 2}}}, {39, 0, false}}},
                          InspectedNode{"plain", {}}));
  EXPECT_EQ(InspectAnswer(inspected),
            R"({"nodes":[{"name":"n","totalGPU":46,"usedGPU":5,"devs":[)"
            R"({"id":0,"totalGPU":7,"usedGPU":5,"pods":[{"name":"p","namespace":"team-a","usedGPU":3},)"
            R"({"name":"r","namespace":"team-a","usedGPU":2}]},)"
            R"({"id":1,"totalGPU":39,"usedGPU":0,"healthy":false,"pods":[]}]},)"
            R"({"name":"plain","totalGPU":0,"usedGPU":0,"devs":[]}]})");
  EXPECT_EQ(InspectAnswer({}, "there is no node \"x\""), R"({"nodes":[],"error":"there is no node \"x\""})");
}

}  // namespace
}  // namespace grus
