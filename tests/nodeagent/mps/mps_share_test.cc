// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

PartToGive PartOf(PartResource resource, int count, std::int64_t memory_mib) {
  PartToGive part{.resource = resource, .memory_mib = memory_mib};
  for (int i = 0; i < count; ++i) part.ids.push_back({"GPU-0", i});
  return part;
}

TEST(MpsPercentOf, IsRoundedDownAndAtLeastOneAndNeverMoreThanThePartRoundedUp) {
  for (std::int64_t milli = 1; milli <= 1000; ++milli) {
    const std::int64_t percent = MpsPercentOf(milli);
    EXPECT_GE(percent, 1) << milli;
    EXPECT_LE(percent, (milli + 9) / 10) << milli;
  }
  EXPECT_EQ(MpsPercentOf(300), 30);
  EXPECT_EQ(MpsPercentOf(309), 30);
  EXPECT_EQ(MpsPercentOf(5), 1);
  EXPECT_EQ(MpsPercentOf(1000), 100);
}

TEST(AddMps, OfThousandthsOneAnswerHasAll) {
  ContainerSetup setup{.environment = {{"GRUS_GPU_MILLI", "300"}}};
  AddMps(PartOf(PartResource::kMilli, 300, 5000), "/run/grus/mps/GPU-0/pipe", "/dev/shm/grus", setup);

  EXPECT_THAT(setup.environment,
              UnorderedElementsAre(Pair("GRUS_GPU_MILLI", "300"), Pair("CUDA_MPS_PIPE_DIRECTORY", "/run/grus/mps"),
                                   Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30"),
                                   Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=5000M")));
  EXPECT_THAT(setup.mounts, ElementsAre(PluginMount{"/run/grus/mps/GPU-0/pipe", "/run/grus/mps", false},
                                        PluginMount{"/dev/shm/grus", "/dev/shm", false}));
}

TEST(AddMps, MemoryAndComputeOfAContainerAnswerWithDifferentVariablesAndOneOfThemWithMounts) {
  ContainerSetup memory, compute;
  AddMps(PartOf(PartResource::kMemory, 2, 2048), "/pipe", "", memory);
  AddMps(PartOf(PartResource::kCompute, 30, 0), "/pipe", "", compute);

  EXPECT_THAT(memory.environment, UnorderedElementsAre(Pair("CUDA_MPS_PIPE_DIRECTORY", "/run/grus/mps"),
                                                       Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2048M")));
  EXPECT_THAT(memory.mounts, ElementsAre(PluginMount{"/pipe", "/run/grus/mps", false}));
  EXPECT_THAT(compute.environment, UnorderedElementsAre(Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30")));
  EXPECT_THAT(compute.mounts, IsEmpty());
}

}  // namespace
}  // namespace grus
