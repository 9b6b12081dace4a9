// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodeagent/fake_driver.h"

namespace grus {
namespace {

using kube::ErrorCode;
using ::testing::ElementsAre;
using testing::FakeDriver;
using testing::FakeNvmlPath;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kDriver[] = "driver version=580.95.05\n";
constexpr char kGpu[] =
    "gpu uuid=GPU-a model=H100 util=37 memutil=12 used=1000 reserved=24 total=4096 power=250500 pcierx=3 pcietx=4 "
    "nvrx=5 nvtx=6\n";

class NvmlTest : public ::testing::Test {
 protected:
  // Opens the driver while it says this.
  std::vector<Gpu> Open(const std::string& script) {
    driver_.Play(script);
    auto gpus = library_.Open();
    EXPECT_TRUE(gpus.ok()) << (gpus ? "" : gpus.error().message());
    return gpus ? *gpus : std::vector<Gpu>();
  }
  // The second look: the first one has no share of the multiprocessors.
  std::vector<GpuProcess> SecondLook(const std::string& gpu, const std::string& processes) {
    Open(gpu + processes + "now us=1000\n");
    EXPECT_TRUE(library_.Processes(0).ok());
    driver_.Play(gpu + processes + "now us=2000\n");
    auto second = library_.Processes(0);
    EXPECT_TRUE(second.ok());
    return second ? *second : std::vector<GpuProcess>();
  }

  FakeDriver driver_;
  NvmlLibrary library_{driver_.path()};
};

TEST_F(NvmlTest, ListsGpusWithModelAndDriver) {
  EXPECT_THAT(Open(std::string(kDriver) + kGpu + "gpu uuid=GPU-b\n"),
              ElementsAre(Gpu{"GPU-a", 0, "H100", "580.95.05"}, Gpu{"GPU-b", 1, "", "580.95.05"}));
}

TEST_F(NvmlTest, AGpuSaysWhatItsBusCanDoAndWhetherItIsDivided) {
  const std::vector<Gpu> gpus = Open("gpu uuid=GPU-a pciegen=5 pcielanes=16 mig=1\ngpu uuid=GPU-b mig=0\n");

  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].pcie_generation, 5u);
  EXPECT_EQ(gpus[0].pcie_lanes, 16u);
  EXPECT_TRUE(gpus[0].is_divided);
  EXPECT_EQ(gpus[1].pcie_generation, std::nullopt);
  EXPECT_EQ(gpus[1].pcie_lanes, std::nullopt);
  EXPECT_FALSE(gpus[1].is_divided);
}

TEST_F(NvmlTest, LostGpusThatTheDriverStillCountsAreCounted) {
  EXPECT_THAT(Open("gpu uuid=GPU-a\ngpu uuid=GPU-b error=15\ngpu uuid=GPU-c error=15\n"), SizeIs(1));
  EXPECT_EQ(library_.left_out(), 2u);
  EXPECT_THAT(Open("gpu uuid=GPU-a\ngpu uuid=GPU-b\n"), SizeIs(2));
  EXPECT_EQ(library_.left_out(), 0u);
}

TEST_F(NvmlTest, ASampleHasTheNumbersInTheirUnits) {
  Open(std::string(kDriver) + kGpu);

  const auto sample = library_.Sample(0);
  const auto rates = library_.Pcie(0);

  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(sample->utilization_percent, 37u);
  EXPECT_EQ(sample->memory_controller_percent, 12u);
  EXPECT_EQ(sample->memory_used_bytes, 1000u) << "without what the driver keeps for itself";
  EXPECT_EQ(sample->memory_total_bytes, 4096u);
  EXPECT_EQ(sample->power_milliwatts, 250500u);
  EXPECT_EQ(sample->nvlink_received_bytes, 5u * 1024);
  EXPECT_EQ(sample->nvlink_transmitted_bytes, 6u * 1024);
  ASSERT_TRUE(rates.ok());
  EXPECT_EQ(rates->receive, 3000u);
  EXPECT_EQ(rates->transmit, 4000u);
}

TEST_F(NvmlTest, WhatTheDriverDoesNotSupportIsLeftOut) {
  Open("gpu uuid=GPU-a\nprocess gpu=0 pid=7\n");

  const auto sample = library_.Sample(0);
  const auto rates = library_.Pcie(0);
  const auto processes = library_.Processes(0);

  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(sample->utilization_percent, std::nullopt);
  EXPECT_EQ(sample->memory_controller_percent, std::nullopt);
  EXPECT_EQ(sample->memory_used_bytes, std::nullopt);
  EXPECT_EQ(sample->memory_total_bytes, std::nullopt);
  EXPECT_EQ(sample->power_milliwatts, std::nullopt);
  EXPECT_EQ(sample->nvlink_received_bytes, std::nullopt);
  EXPECT_EQ(sample->nvlink_transmitted_bytes, std::nullopt);
  ASSERT_TRUE(rates.ok());
  EXPECT_EQ(rates->receive, std::nullopt);
  EXPECT_EQ(rates->transmit, std::nullopt);
  ASSERT_TRUE(processes.ok());
  ASSERT_THAT(*processes, SizeIs(1));
  EXPECT_EQ((*processes)[0].memory_bytes, std::nullopt);
  EXPECT_EQ((*processes)[0].sm_percent, std::nullopt);
}

TEST_F(NvmlTest, AnOlderLibraryIsAskedByItsOlderEntryPoints) {
  FakeDriver older(FakeNvmlPath("fake-nvml-old"));
  older.Play(std::string(kGpu) + "process gpu=0 pid=7 memory=512\n");
  NvmlLibrary library(older.path());

  const auto gpus = library.Open();
  ASSERT_TRUE(gpus.ok());
  EXPECT_THAT(*gpus, SizeIs(1));
  const auto sample = library.Sample(0);
  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(sample->memory_used_bytes, 1024u);
  EXPECT_EQ(sample->nvlink_received_bytes, std::nullopt);
  const auto processes = library.Processes(0);
  ASSERT_TRUE(processes.ok());
  ASSERT_THAT(*processes, SizeIs(1));
  EXPECT_EQ((*processes)[0].pid, 7);
  EXPECT_EQ((*processes)[0].memory_bytes, 512u);
  EXPECT_THAT(library.NewXids(), IsEmpty());
}

TEST_F(NvmlTest, AnEntryPointThatTheDriverLacksIsReplacedByTheOneBefore) {
  Open(std::string("driver no_v3=1\n") + kGpu + "process gpu=0 pid=7 memory=512\n");

  for (int look = 0; look < 2; ++look) {
    const auto processes = library_.Processes(0);
    ASSERT_TRUE(processes.ok());
    ASSERT_THAT(*processes, SizeIs(1));
    EXPECT_EQ((*processes)[0].memory_bytes, 512u);
  }
}

TEST_F(NvmlTest, AMachineWithoutTheLibraryHasNoDriver) {
  const auto gpus = NvmlLibrary("libnvidia-ml-that-is-not-there.so.1").Open();

  ASSERT_FALSE(gpus.ok());
  EXPECT_EQ(gpus.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(gpus.error().message(), HasSubstr("libnvidia-ml-that-is-not-there.so.1"));
}

TEST_F(NvmlTest, ADriverThatIsNotLoadedIsUnavailable) {
  driver_.Play("driver init=9\n");
  EXPECT_EQ(library_.Open().error().code(), ErrorCode::kUnavailable);
}

TEST_F(NvmlTest, ALostGpuIsGoneAndTheOthersGoOn) {
  Open("gpu uuid=GPU-a used=1 total=2 pcierx=1 pcietx=1\ngpu uuid=GPU-b used=1 total=2\n");
  driver_.Play("gpu uuid=GPU-a error=15\ngpu uuid=GPU-b used=1 total=2\n");

  EXPECT_EQ(library_.Sample(0).error().code(), ErrorCode::kGone);
  EXPECT_EQ(library_.Pcie(0).error().code(), ErrorCode::kGone);
  EXPECT_EQ(library_.Processes(0).error().code(), ErrorCode::kGone);
  EXPECT_TRUE(library_.Sample(1).ok());
  EXPECT_TRUE(library_.Processes(1).ok());
  const auto again = library_.Open();
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(*again, ElementsAre(Gpu{.uuid = "GPU-b", .index = 1}));
}

TEST_F(NvmlTest, ALostDriverIsUnavailableUntilItIsOpenedAgain) {
  for (const char* code : {"1", "9", "18", "999"}) {
    Open(kGpu);
    driver_.Play("driver error=" + std::string(code) + "\n" + kGpu);
    EXPECT_EQ(library_.Sample(0).error().code(), ErrorCode::kUnavailable) << code;
    driver_.Play(kGpu);
    ASSERT_TRUE(library_.Open().ok()) << code;
    EXPECT_TRUE(library_.Sample(0).ok()) << code;
  }
}

TEST_F(NvmlTest, AProcessInSeveralListsIsCountedOnce) {
  const auto processes = SecondLook(kGpu,
                                    "process gpu=0 pid=9 memory=300 use=graphics sm=20 mem=10\n"
                                    "process gpu=0 pid=7 memory=100 sm=5\n"
                                    "process gpu=0 pid=9 memory=300 use=compute\n"
                                    "process gpu=0 pid=11 memory=50 use=mps\n");

  ASSERT_THAT(processes, SizeIs(3));
  EXPECT_EQ(processes[0].pid, 7);
  EXPECT_EQ(processes[0].memory_bytes, 100u);
  EXPECT_EQ(processes[0].sm_percent, 5u);
  EXPECT_EQ(processes[1].pid, 9);
  EXPECT_EQ(processes[1].memory_bytes, 300u);
  EXPECT_EQ(processes[1].sm_percent, 20u);
  EXPECT_EQ(processes[1].memory_controller_percent, 10u);
  EXPECT_EQ(processes[2].pid, 11);
  EXPECT_EQ(processes[2].sm_percent, 0u) << "the driver lists no process that ran no kernel";
}

TEST_F(NvmlTest, InstancesOfADividedGpuAddUp) {
  Open(std::string(kGpu) +
       "process gpu=0 pid=7 memory=100 instance=1\nprocess gpu=0 pid=7 memory=30 instance=2\nprocess gpu=0 pid=8\n");

  const auto processes = library_.Processes(0);

  ASSERT_TRUE(processes.ok());
  ASSERT_THAT(*processes, SizeIs(2));
  EXPECT_EQ((*processes)[0].memory_bytes, 130u);
  EXPECT_EQ((*processes)[1].memory_bytes, std::nullopt);
}

TEST_F(NvmlTest, TheShareOfTheMultiprocessorsIsOfTheTimeSinceTheLastLook) {
  const std::string busy = "process gpu=0 pid=7 sm=40\n";
  Open(std::string(kGpu) + busy + "now us=1000\n");

  const auto first = library_.Processes(0);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->at(0).sm_percent, std::nullopt) << "what was before the agent began is not told";
  driver_.Play(std::string(kGpu) + busy + "now us=2000\n");
  EXPECT_EQ(library_.Processes(0)->at(0).sm_percent, 40u);
  EXPECT_EQ(library_.Processes(0)->at(0).sm_percent, 0u) << "no new sample";
}

TEST_F(NvmlTest, WildNumbersOfTheDriverAreNotTaken) {
  EXPECT_EQ(SecondLook(kGpu, "process gpu=0 pid=7 sm=4294967295\n").at(0).sm_percent, 0u);
}

TEST_F(NvmlTest, LongListsAreReadWhole) {
  std::string script = kGpu;
  for (int pid = 1; pid <= 500; ++pid) script += "process gpu=0 pid=" + std::to_string(pid) + " memory=1 sm=1\n";

  const auto processes = SecondLook(script, "");

  ASSERT_THAT(processes, SizeIs(500));
  EXPECT_EQ(processes.back().pid, 500);
  EXPECT_EQ(processes.back().sm_percent, 1u);
}

TEST_F(NvmlTest, AnXidIsToldOnceWithItsGpu) {
  Open("gpu uuid=GPU-a\ngpu uuid=GPU-b\nxid gpu=1 code=79 id=first\nxid gpu=0 code=31 id=second\n");

  const std::vector<Xid> xids = library_.NewXids();

  ASSERT_THAT(xids, SizeIs(2));
  EXPECT_EQ(xids[0].gpu, 1u);
  EXPECT_EQ(xids[0].code, 79u);
  EXPECT_EQ(xids[1].gpu, 0u);
  EXPECT_EQ(xids[1].code, 31u);
  EXPECT_THAT(library_.NewXids(), IsEmpty());
}

}  // namespace
}  // namespace grus
