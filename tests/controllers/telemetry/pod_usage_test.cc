// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/pod_usage.h"

#include <gmock/gmock.h>

#include <cmath>

namespace grus {
namespace {

const UsageQuery& Query(const std::vector<UsageQuery>& all, const std::string& name) {
  for (const UsageQuery& query : all) {
    if (query.name == name) return query;
  }
  ADD_FAILURE() << "there is no query for " << name;
  return all.front();
}

std::int64_t Minute(const std::string&) { return 60; }

TEST(UsageQueries, AreAtMostTwelve) {
  EXPECT_LE(UsageQueries(Minute).size(), 12U);
  const auto window = [](const std::string&) -> std::int64_t { return 65; };
  for (const UsageQuery& query : UsageQueries(window, "job=\"x\"")) {
    EXPECT_THAT(query.text, ::testing::ContainsRegex("\\[(65s|65s:15s|120s)\\]"));
    // Each series is one that the administrator trusts.
    const auto count = [&](const std::string& part) {
      std::size_t found = 0;
      for (std::size_t at = query.text.find(part); at != std::string::npos; at = query.text.find(part, at + 1)) ++found;
      return found;
    };
    EXPECT_EQ(count("{"), count("job=\"x\"}")) << query.text;
    EXPECT_GT(count("{"), 0U);
    EXPECT_THAT(query.text, ::testing::HasSubstr(" by ("));
  }
}

TEST(PodOfRow, KnowsTheLabelsOfEachSource) {
  using ::testing::Optional;
  const kube::ObjectKey pod{"team-a", "train-0"};
  EXPECT_THAT(PodOfRow({{"namespace", "team-a"}, {"pod", "train-0"}}), Optional(pod));
  // Without honorLabels, namespace and pod are those of the exporter.
  EXPECT_THAT(PodOfRow({{"namespace", "monitoring"},
                        {"pod", "dcgm-exporter-x"},
                        {"exported_namespace", "team-a"},
                        {"exported_pod", "train-0"}}),
              Optional(pod));
  EXPECT_THAT(PodOfRow({{"container_label_io_kubernetes_pod_namespace", "team-a"},
                        {"container_label_io_kubernetes_pod_name", "train-0"},
                        {"namespace", "monitoring"},
                        {"pod", "cadvisor-x"}}),
              Optional(pod));
  EXPECT_EQ(PodOfRow({{"namespace", "team-a"}}), std::nullopt);
  EXPECT_EQ(PodOfRow({}), std::nullopt);
}

class UsageColumnTest : public ::testing::Test {
 protected:
  void Take(const std::string& query, std::initializer_list<double> values, const std::string& pod = "p") {
    const auto queries = UsageQueries(Minute);
    UsageColumn column(Query(queries, query), name_of_, usage_);
    for (const double value : values) column.Take({{"namespace", "a"}, {"pod", pod}}, value);
    column.Add();
  }
  const UsageColumn::NameOf name_of_ = [](const kube::ObjectKey& pod) {
    return pod.name == "p" ? std::optional<kube::CompactKey>(pod) : std::nullopt;
  };
  UsageByPod usage_;
};

TEST_F(UsageColumnTest, LeavesOutWhatIsNoValue) {
  Take("GPU utilisation", {9223372036854775794.0, std::nan(""), -1, 101});  // The first is DCGM's blank.
  Take("GPU memory in MiB", {9223372036854775794.0});
  EXPECT_EQ(usage_.size(), 0U);
  Take("GPU utilisation", {0});
  Take("GPU memory in MiB", {1024});
  EXPECT_EQ((usage_[{"a", "p"}].gpu_utilization), 0) << "an idle GPU is not an unknown one";
  EXPECT_EQ((usage_[{"a", "p"}].max_gpu_memory), 1073741824.0);
}

TEST_F(UsageColumnTest, OfTwoRowsOrSourcesTheHigherValueCounts) {
  Take("GPU memory in MiB", {3, 5, 4});
  Take("GPU memory", {5 << 20, 6 << 20});
  EXPECT_EQ((usage_[{"a", "p"}].max_gpu_memory), 6 << 20);
  Take("GPU memory", {1});
  EXPECT_EQ((usage_[{"a", "p"}].max_gpu_memory), 6 << 20);
}

TEST_F(UsageColumnTest, NothingCountsOfAnAnswerThatIsCutOff) {
  const auto queries = UsageQueries(Minute);
  UsageColumn column(Query(queries, "CPU"), name_of_, usage_);
  column.Take({{"namespace", "a"}, {"pod", "p"}}, 1);
  EXPECT_FALSE((usage_[{"a", "p"}].cpu_cores));
}

TEST_F(UsageColumnTest, RowsOfOtherPodsTakeNoMemory) {
  Take("CPU", {1}, "stranger");
  EXPECT_EQ(usage_.size(), 0U);
}

}  // namespace
}  // namespace grus
