// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/hardware_labels.h"

#include <gtest/gtest.h>

#include "tests/nodeagent/gpu_states.h"

namespace grus {
namespace {

using kube::StringMap;
using testing::LookAt;
using testing::WorkingGpu;

const StringMap kTwo = {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                        {"nvidia.com/gpu.count", "2"},
                        {"nvidia.com/gpu.memory", "81920"},
                        {"nvidia.com/cuda.driver-version.full", "580.95.05"}};

// The node as it is after the change, which it must take.
kube::ObjectMeta After(kube::ObjectMeta node, const LabelChange& change) {
  const auto merge = [](StringMap& into, const kube::Json& patch) {
    for (const auto& [key, value] : *patch.AsObject()) {
      if (value.is_null()) into.erase(key.view());
      else into.insert_or_assign(key.view(), *value.AsString());
    }
  };
  merge(node.labels, change.labels);
  merge(node.annotations, change.annotations);
  return node;
}

kube::ObjectMeta Labelled(const StringMap& wanted, const StringMap& before = {}) {
  kube::ObjectMeta node;
  node.labels = before;
  return After(node, PlanLabels(node, wanted));
}

bool IsEmpty(const LabelChange& change) {
  return change.labels.AsObject()->empty() && change.annotations.AsObject()->empty();
}

TEST(HardwareLabels, SayWhatAllGpusAre) { EXPECT_EQ(HardwareLabels(LookAt({WorkingGpu(0), WorkingGpu(1)})), kTwo); }

TEST(HardwareLabels, AProductIsAValueOfALabel) {
  struct Case {
    const char *model, *want;
  };
  for (const Case& c : {Case{"TITAN X (Pascal)", "TITAN-X-Pascal"}, Case{"A100-SXM4-80GB", "A100-SXM4-80GB"},
                        Case{" Quadro  RTX / 6000_", "Quadro-RTX-6000"}, Case{"(TM)", "TM"}, Case{"--", ""}}) {
    EXPECT_EQ(HardwareLabels(LookAt({WorkingGpu(0, c.model)})).Get("nvidia.com/gpu.product"), c.want) << c.model;
  }
  const std::string longest = std::string(62, 'a') + " b";
  EXPECT_EQ(HardwareLabels(LookAt({WorkingGpu(0, longest)})).Get("nvidia.com/gpu.product"), std::string(62, 'a'));
}

TEST(HardwareLabels, WhatDiffersBetweenGpusHasNoLabel) {
  GpuState other = WorkingGpu(1, "NVIDIA A100");
  other.sample->memory_total_bytes = 40 * testing::kGiB;
  EXPECT_EQ(HardwareLabels(LookAt({WorkingGpu(0), other})),
            (StringMap{{"nvidia.com/gpu.count", "2"}, {"nvidia.com/cuda.driver-version.full", "580.95.05"}}));
}

TEST(HardwareLabels, WhatTheDriverDoesNotTellHasNoLabel) {
  GpuState gpu = WorkingGpu(0, "");
  gpu.sample->memory_total_bytes = std::nullopt;
  gpu.gpu.driver_version = "";
  EXPECT_EQ(HardwareLabels(LookAt({gpu})), (StringMap{{"nvidia.com/gpu.count", "1"}}));
  EXPECT_TRUE(HardwareLabels(LookAt({})).empty());
}

TEST(PlanLabels, WritesThemWithTheListOfThem) {
  const kube::ObjectMeta node = Labelled(kTwo, {{"zone", "a"}});

  for (const auto& [key, value] : kTwo) EXPECT_EQ(node.Label(key.view()), value.view());
  EXPECT_EQ(node.Label("zone"), "a");
  EXPECT_EQ(node.Annotation(kGpuLabelsAnnotation),
            "nvidia.com/cuda.driver-version.full=580.95.05,nvidia.com/gpu.count=2,nvidia.com/gpu.memory=81920,"
            "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3");
  EXPECT_TRUE(IsEmpty(PlanLabels(node, kTwo))) << "nothing is left to do";
}

TEST(PlanLabels, AnyLabelOfAnotherToolKeepsThemAway) {
  for (const char* key : {"nvidia.com/gpu.product", "nvidia.com/gpu.present", "nvidia.com/gpu.deploy.dcgm",
                          "nvidia.com/cuda.driver-version.full"}) {
    kube::ObjectMeta node;
    node.labels = {{key, "true"}};
    const LabelChange change = PlanLabels(node, kTwo);
    EXPECT_TRUE(change.is_others) << key;
    EXPECT_TRUE(IsEmpty(change)) << key;
  }
}

TEST(PlanLabels, OtherLabelsOfNvidiaAreNoObstacle) {
  kube::ObjectMeta node;
  node.labels = {{"nvidia.com/mig.capable", "false"}, {"nvidia.com/gpu", "x"}};
  EXPECT_FALSE(PlanLabels(node, kTwo).is_others);
  EXPECT_EQ(After(node, PlanLabels(node, kTwo)).Label("nvidia.com/gpu.count"), "2");
}

TEST(PlanLabels, WhatBecameFalseIsCorrected) {
  const kube::ObjectMeta before = Labelled(kTwo);
  const StringMap swapped = {{"nvidia.com/gpu.product", "NVIDIA-A100"}, {"nvidia.com/gpu.count", "3"}};

  const LabelChange change = PlanLabels(before, swapped);
  EXPECT_FALSE(change.is_others);
  EXPECT_EQ(After(before, change).labels, swapped);

  const kube::ObjectMeta none = After(before, PlanLabels(before, {}));
  EXPECT_TRUE(none.labels.empty());
  EXPECT_TRUE(none.annotations.empty());
}

TEST(PlanLabels, OneThatSomebodyTookAwayIsWrittenAgain) {
  kube::ObjectMeta node = Labelled(kTwo);
  node.labels.erase("nvidia.com/gpu.count");
  EXPECT_EQ(After(node, PlanLabels(node, kTwo)).labels, kTwo);
}

// It owns what it wrote, also where that is what grus wrote before.
TEST(PlanLabels, AToolThatComesLaterGetsThemAndKeepsThem) {
  struct Case {
    const char *key, *value;
  };
  for (const Case& c : {Case{"nvidia.com/gpu.family", "hopper"}, Case{"nvidia.com/gpu.product", "H100-SHARED"}}) {
    kube::ObjectMeta node = Labelled(kTwo);
    node.labels.insert_or_assign(c.key, c.value);

    const LabelChange change = PlanLabels(node, kTwo);
    EXPECT_TRUE(change.is_others);
    EXPECT_TRUE(change.labels.AsObject()->empty()) << c.key;
    const kube::ObjectMeta given_up = After(node, change);
    EXPECT_TRUE(given_up.annotations.empty());

    const LabelChange later = PlanLabels(given_up, {{"nvidia.com/gpu.count", "9"}});
    EXPECT_TRUE(later.is_others) << "also of those that are as grus had written them";
    EXPECT_TRUE(IsEmpty(later));
  }
}

TEST(PlanLabels, AListThatIsGarbageMakesNothingOurs) {
  for (const char* text : {"nvidia.com/gpu.count", "=2", ",,=,", "nvidia.com/gpu.count=3", ""}) {
    kube::ObjectMeta node;
    node.labels = {{"nvidia.com/gpu.count", "2"}};
    node.annotations = {{kGpuLabelsAnnotation, text}};
    const LabelChange change = PlanLabels(node, kTwo);
    EXPECT_TRUE(change.is_others) << text;
    EXPECT_TRUE(change.labels.AsObject()->empty()) << text;
  }
}

}  // namespace
}  // namespace grus
