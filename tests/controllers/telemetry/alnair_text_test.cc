// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/alnair_text.h"

#include <gmock/gmock.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr PodUsage kUsage{.cpu_cores = 3.98123, .max_memory = 2'147'483'648.0};

PodDetail Detail() {
  return {.utilization = {{{0, 0}, 97}, {{0, 4711}, 60}, {{0, 4712}, 37}, {{1, 0}, 12.345}},
          .memory_utilization = {{{0, 4711}, 11}},
          .gpu_memory = {{0, 8e9}, {1, 1}},
          .sent = 1'234'567,
          .writing = 0.012345};
}

TEST(AlnairText, OfAPodIsThatOfTheOriginal) {
  EXPECT_THAT(
      AnnotationsOf(AlnairPodOf(kUsage, Detail())),
      ElementsAre(Pair("alnair.centaurusinfra.io/gpu_mem_util", "{'gpu_0_4711': 11}"),
                  Pair("alnair.centaurusinfra.io/gpu_util", "{'gpu_0_4711': 60, 'gpu_0_4712': 37, 'gpu_1': 12.35}"),
                  Pair("alnair.centaurusinfra.io/max_cpu_mem_mb", "2147.48"),
                  Pair("alnair.centaurusinfra.io/max_cpu_util", "398.12"),
                  Pair("alnair.centaurusinfra.io/max_disk_io", "0.0123"),
                  Pair("alnair.centaurusinfra.io/max_network_mbps", "1.23")));
}

TEST(AlnairText, OfAnOwnerIsThatOfTheOriginal) {
  EXPECT_EQ(TextOf(AlnairOwnedOf(kUsage, Detail(), "n1")),
            "{'cpu_mem_mb': 2147.48, 'cpu_util': 398.12, 'disk_io': 0.0123, 'n1-gpu-0_mem_mb': 7630.0, "
            "'n1-gpu-0_util': 97.0, 'n1-gpu-1_mem_mb': 1.0, 'n1-gpu-1_util': 12.35, 'network_mbps': 1.23, 'node': "
            "'n1'}");
}

TEST(AlnairText, WhatIsNotKnownHasNoKeyAndWhatIsZeroHas) {
  EXPECT_THAT(AnnotationsOf(AlnairPodOf({}, {})), IsEmpty());
  EXPECT_THAT(AnnotationsOf(AlnairPodOf({.cpu_cores = 0}, {})),
              ElementsAre(Pair("alnair.centaurusinfra.io/max_cpu_util", "0.0")));
  EXPECT_THAT(AlnairOwnedOf({}, {}, "n1").numbers, IsEmpty());
}

TEST(AlnairText, IsReadAsItIsWritten) {
  const AlnairPod pod = AlnairPodOf(kUsage, Detail());
  std::map<std::string, std::string> annotations = AnnotationsOf(pod);
  annotations["alnair.centaurusinfra.io/mine"] = "7";
  EXPECT_EQ(AnnotationsOf(ReadAlnairPod(annotations)), AnnotationsOf(pod));
  const std::string owned = TextOf(AlnairOwnedOf(kUsage, Detail(), R"(o'neil\)"));
  EXPECT_THAT(owned, ::testing::HasSubstr(R"('node': 'o\'neil\\')"));
  ASSERT_TRUE(ReadAlnairOwned(owned));
  EXPECT_EQ(TextOf(*ReadAlnairOwned(owned)), owned);
}

TEST(AlnairText, WhatIsNoneSaysNothing) {
  for (const std::string text : {"", "{", "}", "{'a'}", "{'a': }x", "{'a: 1}", "{'a': 1,}", "{a: 1}", "{'a': '",
                                 "{'a': 1", "{'a' 1}", "[1]", "{'a\\", "True"}) {
    const auto read = ReadAlnairOwned(text);
    EXPECT_TRUE(!read || read->numbers.empty()) << text;
  }
  EXPECT_THAT(ReadAlnairOwned("{}")->numbers, IsEmpty());
  const std::string much = "{'a': " + std::string(100'000, '1') + "}";
  EXPECT_FALSE(ReadAlnairOwned(much));
  for (const char* number : {"nan", "inf", "-1", "1e300", "0x10", "1 ", "many"}) {
    EXPECT_THAT(ReadAlnairOwned(std::string("{'a': ") + number + "}")->numbers, IsEmpty()) << number;
    EXPECT_TRUE(ReadAlnairPod({{"alnair.centaurusinfra.io/max_cpu_util", number}}).is_empty()) << number;
  }
}

TEST(AlnairText, NumbersOfAnySizeAreRounded) {
  for (const char* number : {"1e-300", "4.9e-324", "0.00004", "0"}) {
    const std::string owner = "{'cpu_util': " + std::string(number) + ", 'node': 'n1'}";
    ASSERT_TRUE(ReadAlnairOwned(owner));
    EXPECT_EQ(TextOf(*ReadAlnairOwned(owner)), "{'cpu_util': 0.0, 'node': 'n1'}") << number;
    const kube::StringMap pod = {{"alnair.centaurusinfra.io/max_cpu_util", number},
                                 {"alnair.centaurusinfra.io/gpu_util", "{'gpu_0': " + std::string(number) + "}"}};
    EXPECT_THAT(AnnotationsOf(ReadAlnairPod(pod)),
                ElementsAre(Pair("alnair.centaurusinfra.io/gpu_util", "{'gpu_0': 0}"),
                            Pair("alnair.centaurusinfra.io/max_cpu_util", "0.0")))
        << number;
  }
  EXPECT_EQ(TextOf({.numbers = {{"a", 1e-300}, {"b", 1e300}, {"c", 999'999'999'999'999.1234}}}),
            "{'a': 0.0, 'b': 1000000000000000.0, 'c': 999999999999999.1}");
  EXPECT_EQ(ReadAlnairOwned("{'a': 0.12344999}")->numbers.at("a"), 0.1234);
}

template <typename T>
bool Rises(const T& before, const T& now) {
  return RiseOf(before, now) > 0;
}

TEST(AlnairText, OnlyNewNumbersAndARiseByATenthAreNews) {
  const AlnairPod before = AlnairPodOf({.cpu_cores = 1}, {.utilization = {{{0, 7}, 50}}});
  EXPECT_FALSE(Rises(before, before));
  EXPECT_FALSE(Rises(before, AlnairPodOf({.cpu_cores = 1.09}, {.utilization = {{{0, 7}, 54}}})));
  EXPECT_FALSE(Rises(before, AlnairPod())) << "what is not told any more";
  EXPECT_TRUE(Rises(before, AlnairPodOf({.cpu_cores = 1.11}, {})));
  EXPECT_TRUE(Rises(before, AlnairPodOf({}, {.utilization = {{{0, 7}, 56}}})));
  EXPECT_TRUE(Rises(before, AlnairPodOf({}, {.utilization = {{{0, 8}, 1}}})));
  EXPECT_TRUE(Rises(before, AlnairPodOf({}, {.memory_utilization = {{{0, 7}, 1}}})));
  EXPECT_DOUBLE_EQ(RiseOf(before, AlnairPodOf({.cpu_cores = 3}, {.utilization = {{{0, 7}, 60}}})), 3);
  const AlnairOwned owned = AlnairOwnedOf({.cpu_cores = 1}, {}, "n1");
  EXPECT_FALSE(Rises(owned, owned));
  EXPECT_TRUE(Rises(owned, AlnairOwnedOf({.cpu_cores = 2}, {}, "n1")));
  EXPECT_TRUE(Rises(owned, AlnairOwnedOf({.cpu_cores = 1}, {}, "n2")));
}

TEST(AlnairText, MaximaStayAndThoseOfAnotherNodeGo) {
  AlnairPod pod = AlnairPodOf({.cpu_cores = 2, .max_memory = 1e6}, {});
  Raise(AlnairPodOf({.cpu_cores = 1, .max_memory = 5e6}, {}), pod);
  EXPECT_THAT(pod.numbers, ElementsAre(Pair("max_cpu_mem_mb", 5), Pair("max_cpu_util", 200)));
  AlnairOwned owned = AlnairOwnedOf({.cpu_cores = 2}, {.gpu_memory = {{0, 1 << 20}}}, "n1");
  Raise(AlnairOwnedOf({.cpu_cores = 1}, {}, "n1"), owned);
  EXPECT_EQ(TextOf(owned), "{'cpu_util': 200.0, 'n1-gpu-0_mem_mb': 1.0, 'node': 'n1'}");
  Raise(AlnairOwnedOf({.cpu_cores = 1}, {}, "n2"), owned);
  EXPECT_EQ(TextOf(owned), "{'cpu_util': 100.0, 'node': 'n2'}");
}

TEST(AlnairText, OfManyProcessesThoseThatAreThereNowStay) {
  AlnairPod pod = AlnairPodOf({}, {.utilization = {{{0, 0}, 99}}});
  EXPECT_THAT(pod.gpu_util, ElementsAre(Pair("gpu_0", 99)));
  for (std::int64_t pid = 1; pid <= 100; ++pid) {
    Raise(AlnairPodOf({}, {.utilization = {{{0, pid}, 10}}}), pod);
    EXPECT_LE(pod.gpu_util.size(), kMostProcesses);
    EXPECT_TRUE(pod.gpu_util.contains("gpu_0_" + std::to_string(pid)));
    EXPECT_FALSE(pod.gpu_util.contains("gpu_0")) << "its processes are known";
  }
  EXPECT_EQ(pod.gpu_util.size(), kMostProcesses);
}

TEST(AlnairText, OfMoreProcessesThanItHoldsTheSameOnesAreWrittenAtEachTime) {
  PodDetail detail;
  for (std::int64_t pid = 0; pid <= 40; ++pid) detail.utilization[{0, pid}] = static_cast<double>(pid);
  for (std::int64_t pid = 51; pid <= 55; ++pid) detail.utilization[{1, pid}] = 10;
  detail.memory_utilization = detail.utilization;
  AlnairPod pod;
  Raise(AlnairPodOf({}, detail), pod);
  EXPECT_EQ(RiseOf(pod, AlnairPodOf({}, detail)), 0);
  EXPECT_EQ(pod.gpu_util.size(), kMostProcesses);
  EXPECT_EQ(pod.gpu_mem_util.size(), kMostProcesses);
  EXPECT_TRUE(pod.gpu_util.contains("gpu_1_55")) << "each GPU has some";
  EXPECT_TRUE(pod.gpu_util.contains("gpu_0_27"));
  detail.utilization[{0, 1}] = 99;
  EXPECT_GT(RiseOf(pod, AlnairPodOf({}, detail)), 0);
}

}  // namespace
}  // namespace grus
