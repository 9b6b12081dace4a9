// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpu_annotations.h"

#include <gtest/gtest.h>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

TEST(GpuAnnotations, ThePodsGpusAreThoseOfTheAgentElseThatOfThePlan) {
  kube::Pod pod;
  EXPECT_EQ(GpusOf(pod), "");
  pod.metadata.annotations = {{api::kPlannedGpuAnnotation, "GPU-1"}};
  EXPECT_EQ(GpusOf(pod), "GPU-1");
  pod.metadata.annotations = {{api::kPlannedGpuAnnotation, "GPU-1"},
                              {api::kHeldGpusAnnotation, R"({"c":{"gpu":"GPU-2","milli":300}})"}};
  EXPECT_EQ(GpusOf(pod), "GPU-2");
  pod.metadata.annotations = {
      {api::kHeldGpusAnnotation, R"({"c":{"gpu":"GPU-2"},"d":{"gpu":"GPU-1"},"e":{"gpu":"GPU-2"}})"}};
  EXPECT_EQ(GpusOf(pod), "GPU-2,GPU-1");
  pod.metadata.annotations = {{api::kPlannedGpuAnnotation, "GPU-1,GPU-3,,x#y,GPU-1"}};
  EXPECT_EQ(GpusOf(pod), "GPU-1,GPU-3");
  pod.metadata.annotations = {
      {api::kHeldGpusAnnotation, R"({"c":{"gpu":"GPU-2","milli":1000,"more":[{"gpu":"GPU-3"},{"gpu":7},8]}})"}};
  EXPECT_EQ(GpusOf(pod), "GPU-2,GPU-3");
  for (const char* nonsense : {"x", "[]", "{}", R"({"c":{"gpu":"a#b"}})", R"({"c":7})", R"({"c":{"more":"GPU-1"}})"}) {
    pod.metadata.annotations = {{api::kHeldGpusAnnotation, nonsense}};
    EXPECT_EQ(GpusOf(pod), "") << nonsense;
  }
  pod.metadata.annotations = {{api::kPlannedGpuAnnotation, std::string(300, 'x')}};
  EXPECT_EQ(GpusOf(pod), "");
}

}  // namespace
}  // namespace grus
