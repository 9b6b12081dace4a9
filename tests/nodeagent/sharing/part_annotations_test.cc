// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::vector<SharedGpu> kGpus = {{"GPU-0", 0, 80'000, true}, {"GPU-1", 1, 40'000, false}};

HeldParts Holding(const std::string& container, PartResource resource, const std::string& gpu, int count) {
  HeldParts part{.pod = {"a", "p"}, .container = container};
  for (int i = 0; i < count; ++i) part.ids[resource].push_back({gpu, i});
  return part;
}

TEST(PodPartAnnotations, OfAlnairsResources) {
  HeldParts main = Holding("main", PartResource::kMemory, "GPU-1", 2);
  main.ids.merge(Holding("main", PartResource::kCompute, "GPU-1", 50).ids);
  const std::vector<HeldParts> parts = {main, Holding("aside", PartResource::kMemory, "GPU-0", 1)};

  AnnotationTexts texts = PodPartAnnotations(parts, kGpus);
  EXPECT_EQ(texts[kAlnairGpuIdAnnotation], "GPU-0_0,GPU-1_0,GPU-1_1");
  EXPECT_EQ(texts[kAlnairIdAnnotation], "aside,main");
  EXPECT_EQ(texts[api::kHeldGpusAnnotation], R"({"aside":{"gpu":"GPU-0","milli":0,"memoryMiB":1024},)"
                                             R"("main":{"gpu":"GPU-1","milli":500,"memoryMiB":2048}})");
  EXPECT_EQ(texts[api::kEnforcementAnnotation], "None");
}

TEST(EnforcementOf, IsTheWayOfAllContainersOrNone) {
  std::vector<HeldParts> parts(2);
  const auto set = [&](Enforcement first, Enforcement second) {
    parts[0].enforcement = first;
    parts[1].enforcement = second;
    return EnforcementOf(parts);
  };
  EXPECT_EQ(set(Enforcement::kMps, Enforcement::kMps), "MPS");
  EXPECT_EQ(set(Enforcement::kCooperative, Enforcement::kCooperative), "Cooperative");
  EXPECT_EQ(set(Enforcement::kCooperative, Enforcement::kMps), "None");
  EXPECT_EQ(set(Enforcement::kNone, Enforcement::kCooperative), "None");
  EXPECT_EQ(set(Enforcement::kCooperative, Enforcement::kNone), "None");
}

TEST(PodPartAnnotations, OfThousandthsNameTheGpuAndNotEachOne) {
  const std::vector<HeldParts> parts = {Holding("main", PartResource::kMilli, "GPU-0", 300)};
  AnnotationTexts texts = PodPartAnnotations(parts, kGpus);
  EXPECT_EQ(texts[kAlnairGpuIdAnnotation], "GPU-0");
  EXPECT_EQ(texts[api::kHeldGpusAnnotation], R"({"main":{"gpu":"GPU-0","milli":300,"memoryMiB":24000}})");
}

TEST(PodPartAnnotations, OfWholeGpusNameAllByIndexWithAllTheirMemory) {
  const std::vector<SharedGpu> gpus = {{"GPU-b", 0, 80'000, true}, {"GPU-a", 1, 40'000, true}};
  HeldParts whole = Holding("main", PartResource::kMilli, "GPU-a", 1000);
  std::ranges::copy(Holding("", PartResource::kMilli, "GPU-b", 1000).ids[PartResource::kMilli],
                    std::back_inserter(whole.ids[PartResource::kMilli]));
  SetSaidMemory(5000, whole);
  HeldParts part = Holding("aside", PartResource::kMilli, "GPU-c", 300);
  SetSaidMemory(5000, part);
  AnnotationTexts texts = PodPartAnnotations(std::vector<HeldParts>{whole, part}, gpus);
  EXPECT_EQ(texts[api::kHeldGpusAnnotation], R"({"aside":{"gpu":"GPU-c","milli":300,"memoryMiB":5000},)"
                                             R"("main":{"gpu":"GPU-b","milli":1000,"memoryMiB":80000,)"
                                             R"("more":[{"gpu":"GPU-a","milli":1000,"memoryMiB":40000}]}})");
  EXPECT_EQ(texts[kAlnairGpuIdAnnotation], "GPU-a,GPU-b,GPU-c");
  EXPECT_EQ(texts[kAlnairIdAnnotation], "aside,main");
}

TEST(PodPartAnnotations, OfGpushareSayWhatTheContractKnows) {
  const std::vector<HeldParts> parts = {Holding("aside", PartResource::kGpuMem, "GPU-0", 1),
                                        Holding("main", PartResource::kGpuMem, "GPU-1", 3)};
  AnnotationTexts texts = PodPartAnnotations(parts, kGpus);
  EXPECT_EQ(texts["ALIYUN_COM_GPU_MEM_IDX"], "1") << "of the container that has most";
  EXPECT_EQ(texts["ALIYUN_COM_GPU_MEM_POD"], "4");
  EXPECT_EQ(texts["ALIYUN_COM_GPU_MEM_DEV"], "39") << "of this GPU, not of the first";
  EXPECT_EQ(texts["ALIYUN_COM_GPU_MEM_ASSIGNED"], "true");
  EXPECT_EQ(texts[api::kHeldGpusAnnotation], R"({"aside":{"gpu":"GPU-0","milli":0,"memoryMiB":1024},)"
                                             R"("main":{"gpu":"GPU-1","milli":0,"memoryMiB":3072}})");
}

TEST(PodPartAnnotations, OfGpushareAreLeftAloneWhereItsGpuIsGone) {
  const std::vector<HeldParts> parts = {Holding("main", PartResource::kGpuMem, "GPU-7", 3)};
  EXPECT_FALSE(PodPartAnnotations(parts, kGpus).contains("ALIYUN_COM_GPU_MEM_IDX"));
}

TEST(PodPartAnnotations, SayWhereThePodChoosesItsGpusItself) {
  std::vector<HeldParts> parts = {Holding("main", PartResource::kMilli, "GPU-0", 300)};
  parts.front().overrides_gpu = true;
  EXPECT_EQ(PodPartAnnotations(parts, kGpus)[api::kHeldGpusAnnotation],
            R"({"main":{"gpu":"GPU-0","milli":300,"memoryMiB":24000,"overridden":true}})");
}

TEST(PodPartAnnotations, StayShort) {
  const std::string uuid = "GPU-4f2c0a61-9e3b-4d58-8a77-0c1d2e3f4a5b";
  const auto length = [&](int count) {
    const std::vector<HeldParts> parts = {Holding("main", PartResource::kMemory, uuid, count)};
    return PodPartAnnotations(parts, kGpus)[kAlnairGpuIdAnnotation].size();
  };
  EXPECT_GT(length(140), 140u * 40) << "the largest GPU there is, as the original would";
  EXPECT_EQ(length(300), uuid.size());
}

TEST(PodPartAnnotations, OfAPodThatHoldsNothingAreNotThere) {
  const AnnotationTexts texts = PodPartAnnotations({}, kGpus);
  EXPECT_EQ(texts.size(), 4u) << "what gpushare's extender has assumed stays";
  EXPECT_THAT(texts, Each(Pair(::testing::_, IsEmpty())));
}

TEST(NodePartAnnotations, SayWhatIsThere) {
  AnnotationTexts texts = NodePartAnnotations(SharingMode::kAlnair, kGpus);
  EXPECT_EQ(texts[kPhysicalGpuCountAnnotation], "2");
  EXPECT_EQ(texts[kPhysicalGpuUuidsAnnotation], "GPU-0,GPU-1");
  EXPECT_EQ(texts[kVirtualGpuCountAnnotation], "117");
  EXPECT_EQ(texts[api::kGpuInventoryAnnotation],
            R"([{"uuid":"GPU-0","memoryMiB":80000,"milli":1000,"mode":"alnair"},)"
            R"({"uuid":"GPU-1","memoryMiB":40000,"milli":1000,"mode":"alnair","healthy":false}])");
  EXPECT_EQ(std::string(kVirtualGpuCountAnnotation), "ai.centaurus.io/vitual-gpu-count") << "as the original spells it";
}

TEST(NodePartAnnotations, OfTheOriginalAreThereInItsModeOnly) {
  AnnotationTexts texts = NodePartAnnotations(SharingMode::kMilli, kGpus);
  EXPECT_EQ(texts[kPhysicalGpuCountAnnotation], "");
  EXPECT_THAT(texts[api::kGpuInventoryAnnotation], HasSubstr(R"("mode":"milli")"));
  EXPECT_THAT(NodePartAnnotations(SharingMode::kNone, kGpus), Each(Pair(::testing::_, IsEmpty())));
}

}  // namespace
}  // namespace grus
