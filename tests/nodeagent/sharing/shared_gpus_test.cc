// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/shared_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodeagent/gpu_states.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::kMiB;
using testing::LookAt;
using ::testing::SizeIs;
using testing::WorkingGpu;

GpuState GpuOf(int index, std::uint64_t bytes) {
  GpuState state = WorkingGpu(index);
  state.sample->memory_total_bytes = bytes;
  return state;
}
GpuState Lost(GpuState state) {
  state.sample.reset();
  return state;
}

TEST(SharedGpus, HaveWhatIsLeftAfterTheReserve) {
  const std::vector<SharedGpu> gpus = SharedGpus(500).Of(LookAt({GpuOf(1, 81'559 * kMiB), GpuOf(0, 16 * kGiB)}));

  const std::string model = "NVIDIA H100 80GB HBM3", driver = "580.95.05";
  EXPECT_THAT(gpus, ElementsAre(SharedGpu{"GPU-0", 0, 16 * 1024 - 500, true, model, driver},
                                SharedGpu{"GPU-1", 1, 81'059, true, model, driver}))
      << "by index";
  EXPECT_EQ(gpus[0].count(PartResource::kMemory), 15) << "rounded down";
  EXPECT_EQ(gpus[1].count(PartResource::kMemory), 79);
  EXPECT_EQ(gpus[1].count(PartResource::kCompute), 100);
  EXPECT_EQ(gpus[1].count(PartResource::kMilli), 1000);
}

TEST(SharedGpus, ALostOneStaysAndIsSickUntilItIsBack) {
  SharedGpus gpus(500);
  const std::vector<SharedGpu> before = gpus.Of(LookAt({GpuOf(0, 16 * kGiB), GpuOf(1, 16 * kGiB)}));
  for (int i = 0; i < 3; ++i) {
    std::vector<SharedGpu> lost = gpus.Of(LookAt({GpuOf(0, 16 * kGiB), Lost(GpuOf(1, 0))}));
    ASSERT_THAT(lost, SizeIs(2));
    EXPECT_TRUE(lost[0].is_healthy);
    EXPECT_FALSE(lost[1].is_healthy);
    lost[1].is_healthy = true;
    EXPECT_EQ(lost, before) << "with the same ids";
  }
  EXPECT_EQ(gpus.Of(LookAt({GpuOf(0, 16 * kGiB), GpuOf(1, 16 * kGiB)})), before);
}

TEST(SharedGpus, OneWithAFaultThatNoApplicationCausesIsSick) {
  SharedGpus gpus(500);
  GpuState faulty = GpuOf(0, 16 * kGiB);
  faulty.fault_xid = 79;
  EXPECT_FALSE(gpus.Of(LookAt({faulty})).front().is_healthy);
  EXPECT_TRUE(gpus.Of(LookAt({GpuOf(0, 16 * kGiB)})).front().is_healthy);
}

TEST(SharedGpus, OneThatWasNeverReachedOrIsDividedIsLeftOut) {
  SharedGpus gpus(500);
  GpuState divided = GpuOf(1, 16 * kGiB);
  divided.gpu.is_divided = true;
  EXPECT_THAT(gpus.Of(LookAt({Lost(GpuOf(0, 0)), divided})), IsEmpty());
  EXPECT_THAT(gpus.Of(LookAt({GpuOf(0, 16 * kGiB), GpuOf(1, 16 * kGiB)})), SizeIs(2)) << "it is no more";
}

TEST(SharedGpus, OneThatWasTakenOutIsForgotten) {
  SharedGpus gpus(500);
  ASSERT_THAT(gpus.Of(LookAt({GpuOf(0, 16 * kGiB)})), SizeIs(1));
  EXPECT_THAT(gpus.Of(LookAt({})), IsEmpty());
  EXPECT_THAT(gpus.Of(LookAt({Lost(GpuOf(0, 0))})), IsEmpty());
}

TEST(SharedGpus, OneWithoutMemoryBesideTheReserveIsLeftOut) {
  EXPECT_THAT(SharedGpus(500).Of(LookAt({GpuOf(0, 400 * kMiB)})), IsEmpty());
  const SharedGpu small = SharedGpus(500).Of(LookAt({GpuOf(0, 1000 * kMiB)})).front();
  EXPECT_EQ(small.count(PartResource::kMemory), 0);
  EXPECT_EQ(small.count(PartResource::kCompute), 0) << "nobody could use it";
  EXPECT_EQ(small.count(PartResource::kMilli), 1000);
}

TEST(SharedGpus, AMeasuredPartIsInProportion) {
  const SharedGpu gpu{"GPU-0", 0, 81'059, true};
  PartAmounts amounts;
  amounts[PartResource::kMilli] = 300;
  EXPECT_EQ(MemoryMiBOf(amounts, gpu), 24'317);
  EXPECT_EQ(MilliOf(amounts), 300);
  amounts = {};
  amounts[PartResource::kMemory] = 2;
  amounts[PartResource::kCompute] = 50;
  EXPECT_EQ(MemoryMiBOf(amounts, gpu), 2048);
  EXPECT_EQ(MilliOf(amounts), 500);
}

}  // namespace
}  // namespace grus
