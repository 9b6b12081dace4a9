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

TEST(AddRow, LeavesOutWhatIsNoValue) {
  const auto queries = UsageQueries(Minute);
  const UsageQuery& utilization = Query(queries, "GPU utilisation");
  const UsageQuery& memory = Query(queries, "GPU memory in MiB");
  const QueryLabels labels = {{"namespace", "a"}, {"pod", "p"}};
  UsageByPod usage;
  AddRow(utilization, labels, 9223372036854775794.0, usage);  // DCGM's blank.
  AddRow(utilization, labels, std::nan(""), usage);
  AddRow(utilization, labels, -1, usage);
  AddRow(utilization, labels, 101, usage);
  AddRow(memory, labels, 9223372036854775794.0, usage);
  EXPECT_FALSE((usage[{"a", "p"}].gpu_utilization));
  EXPECT_FALSE((usage[{"a", "p"}].max_gpu_memory));
  AddRow(utilization, labels, 0, usage);
  AddRow(memory, labels, 1024, usage);
  EXPECT_EQ((usage[{"a", "p"}].gpu_utilization), 0) << "an idle GPU is not an unknown one";
  EXPECT_EQ((usage[{"a", "p"}].max_gpu_memory), 1073741824.0);
}

}  // namespace
}  // namespace grus
