// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/pod.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>

#include "tests/clientlib/model/pod_fixture.h"

namespace kube {
namespace {

TEST(Pod, ReadsWhatAnOperatorNeeds) {
  const Result<std::shared_ptr<Pod>> read = Decode<Pod>(PodText(1));
  ASSERT_TRUE(read) << read.error().message();
  const Pod& pod = **read;

  EXPECT_EQ(pod.metadata.Key().ToString(), "team-nlp/bert-large-workers-10001");
  EXPECT_EQ(pod.metadata.Label("grus.io/job"), "bert-large");
  ASSERT_NE(pod.metadata.Controller(), nullptr);
  EXPECT_EQ(pod.metadata.Controller()->kind, "StatefulSet");
  EXPECT_EQ(pod.spec.node_name, "gpu-node-0007.example.internal");
  EXPECT_EQ(pod.spec.tolerations.at(1).toleration_seconds, 300);
  const ResourceList& requests = pod.spec.containers.at(0).resources.requests;
  ASSERT_NE(FindResource(requests, "memory"), nullptr);
  EXPECT_EQ(FindResource(requests, "memory")->Value(), std::int64_t{64} << 30);
  EXPECT_EQ(FindResource(requests, "ephemeral-storage"), nullptr);
  EXPECT_TRUE(IsConditionTrue(pod.status.conditions, "Ready"));
  EXPECT_TRUE(pod.status.container_statuses.at(0).state.running.has_value());
  EXPECT_FALSE(pod.status.container_statuses.at(0).last_state.terminated.has_value());
}

TEST(Pod, I6LeavesOutWhatKubectlAndTheServerKeepForThemselves) {
  const Result<std::shared_ptr<Pod>> pod = Decode<Pod>(PodText(1));
  ASSERT_TRUE(pod);
  EXPECT_EQ((*pod)->metadata.annotations, (StringMap{{"grus.io/template-hash", "9f86d081884c7d65"}}));
  EXPECT_EQ(EncodeObject(Pod::ResourceKind(), **pod).find("managedFields"), std::string::npos);
}

TEST(Pod, KeepsOnlyVolumesThatHaveAClaim) {
  const auto volumes = [](const std::string& list) {
    const Result<std::shared_ptr<Pod>> pod =
        Decode<Pod>(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"volumes":)" + list + "}}");
    return pod ? (*pod)->spec.volumes : std::vector<Volume>(9);
  };
  const auto two = volumes(R"([{"name":"token","projected":{"sources":[]}},
                               {"name":"data","persistentVolumeClaim":{"claimName":"d"}},
                               {"name":"scratch","ephemeral":{"volumeClaimTemplate":{"spec":{}}}},null])");
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].claim->claim_name, "d");
  EXPECT_EQ(two[1].name, "scratch");
  EXPECT_EQ(volumes(R"([{"name":"token","projected":{"sources":[]}}])").capacity(), 0U) << "a pod without pays nothing";
}

// Sanitizers have their own allocator: there is nothing to measure under them.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Pod, TakesLessThanTwoKilobytesInMemory) {
  constexpr int kPods = 5000;
  std::vector<std::string> texts;
  std::size_t bytes = 0;
  for (int i = 0; i < kPods; ++i) bytes += texts.emplace_back(PodText(i)).size();
  std::vector<std::shared_ptr<Pod>> pods(kPods);
  ASSERT_TRUE(Decode<Pod>(texts[0]));  // Buffers that are used again.

  const std::size_t before = mallinfo2().uordblks;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kPods; ++i) {
    Result<std::shared_ptr<Pod>> pod = Decode<Pod>(texts[i]);
    ASSERT_TRUE(pod);
    pods[i] = *std::move(pod);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::size_t per_pod = (mallinfo2().uordblks - before) / kPods;

  RecordProperty("bytes_per_pod", static_cast<int>(per_pod));
  std::printf("pod: %zu bytes of JSON, %zu in memory (sizeof %zu), %.0f MB/s\n", bytes / kPods, per_pod, sizeof(Pod),
              static_cast<double>(bytes) / seconds / 1e6);
  EXPECT_LT(per_pod, 2000u);
}
#endif

}  // namespace
}  // namespace kube
