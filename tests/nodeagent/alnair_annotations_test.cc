// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/alnair_annotations.h"

#include <gtest/gtest.h>

#include "tests/nodeagent/gpu_states.h"

namespace grus {
namespace {

using testing::kGiB;
using testing::kMiB;
using testing::LookAt;
using testing::WorkingGpu;

GpuState Titan(int index) {
  GpuState state = WorkingGpu(index, "TITAN X (Pascal)");
  state.gpu.pcie_generation = 3;
  state.sample->memory_total_bytes = 12196 * kMiB;
  return state;
}

TEST(GpuStaticText, IsThatOfTheOriginal) {
  EXPECT_EQ(GpuStaticText(LookAt({Titan(0), Titan(1)})),
            "{'count': '2', 'model': 'TITAN X (Pascal)', 'mem_size': '12GB', 'pcie_gen_width': '3x16'}");
}

// UtilSched takes what stands between the first 25 and the last 48 characters.
TEST(GpuStaticText, TheModelIsCutOutByPlace) {
  for (const char* model : {"TITAN X (Pascal)", "NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", "NVIDIA A10"}) {
    const std::string text = GpuStaticText(LookAt({WorkingGpu(0, model)}));
    ASSERT_GT(text.size(), 73u);
    EXPECT_EQ(text.substr(25, text.size() - 25 - 48), model);
  }
}

TEST(GpuStaticText, MemoryIsRoundedUpAsInTheOriginal) {
  GpuState gpu = WorkingGpu(0);
  gpu.sample->memory_total_bytes = 81559 * kMiB;
  EXPECT_NE(GpuStaticText(LookAt({gpu})).find("'mem_size': '80GB'"), std::string::npos);
}

TEST(GpuStaticText, OfSeveralModelsItIsTheFirstGpusOne) {
  EXPECT_NE(GpuStaticText(LookAt({WorkingGpu(1, "B"), WorkingGpu(0, "A")})).find("{'count': '2', 'model': 'A', "),
            std::string::npos);
}

TEST(GpuStaticText, IsWholeOrEmpty) {
  EXPECT_EQ(GpuStaticText(LookAt({})), "");
  for (const auto& lose : std::vector<void (*)(GpuState&)>{
           [](GpuState& s) { s.gpu.model = ""; }, [](GpuState& s) { s.gpu.pcie_generation.reset(); },
           [](GpuState& s) { s.gpu.pcie_lanes.reset(); }, [](GpuState& s) { s.sample->memory_total_bytes.reset(); }}) {
    GpuState gpu = WorkingGpu(0);
    lose(gpu);
    EXPECT_EQ(GpuStaticText(LookAt({gpu})), "");
  }
}

GpuState Busy() {
  GpuState state = WorkingGpu(0);
  state.sample->memory_used_bytes = 30 * kGiB + 1;
  state.peak_utilization_percent = 60;
  state.peak_memory_controller_percent = 34;
  const auto owner = std::make_shared<const Owner>();
  state.processes.push_back({GpuProcess{.pid = 912, .memory_bytes = 500 * kMiB + 1}, owner});
  state.processes.push_back({GpuProcess{.pid = 77, .memory_bytes = 20 * kGiB}, owner});
  state.processes.push_back({GpuProcess{.pid = 5}, owner});
  return state;
}

TEST(AlnairUsage, HasTheKeysOfTheOriginal) {
  EXPECT_EQ(ToText(*AlnairUsageOf(Busy())),
            "{'mem_used': '31GB', 'mem_free': '49GB', 'process_cnt': 3, 'pid-mem': [(77, '20480MB'), (912, '501MB')], "
            "'max_mem_util': 34.0, 'max_gpu_util': 60.0}");
}

TEST(AlnairUsage, WhatIsNotKnownIsLeftOut) {
  GpuState state = WorkingGpu(0);
  state.sample = GpuSample{};
  EXPECT_EQ(ToText(*AlnairUsageOf(state)), "{'process_cnt': 0}");
  state.sample = std::nullopt;
  EXPECT_FALSE(AlnairUsageOf(state)) << "it is lost";
}

TEST(AlnairUsage, HasMovedByATenthOfEachScale) {
  const AlnairUsage before = *AlnairUsageOf(Busy());
  struct Case {
    const char* what;
    void (*change)(AlnairUsage&);
    bool want;
  };
  const Case cases[] = {
      {"nothing", [](AlnairUsage&) {}, false},
      {"7 GiB of 80", [](AlnairUsage& u) { *u.memory_used_bytes += 7 * kGiB; }, false},
      {"8 GiB of 80", [](AlnairUsage& u) { *u.memory_used_bytes -= 8 * kGiB; }, true},
      {"the memory is not known", [](AlnairUsage& u) { u.memory_used_bytes.reset(); }, true},
      {"9 % utilisation", [](AlnairUsage& u) { *u.peak_utilization_percent += 9; }, false},
      {"10 % utilisation", [](AlnairUsage& u) { *u.peak_utilization_percent -= 10; }, true},
      {"9 % of the controller", [](AlnairUsage& u) { *u.peak_memory_controller_percent += 9; }, false},
      {"10 % of the controller", [](AlnairUsage& u) { *u.peak_memory_controller_percent += 10; }, true},
      {"one of three processes", [](AlnairUsage& u) { u.processes = 2; }, true},
      {"another process", [](AlnairUsage& u) { u.process_bytes[0].first = 78; }, false},
      {"another memory", [](AlnairUsage& u) { u.memory_total_bytes = 40 * kGiB; }, true},
  };
  for (const Case& c : cases) {
    AlnairUsage after = before;
    c.change(after);
    EXPECT_EQ(HasMoved(before, after), c.want) << c.what;
  }
  AlnairUsage many = before, more = before;
  many.processes = 20;
  more.processes = 21;
  EXPECT_FALSE(HasMoved(many, more));
}

}  // namespace
}  // namespace grus
