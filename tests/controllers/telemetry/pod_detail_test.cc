// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/pod_detail.h"

#include <gmock/gmock.h>

#include <cmath>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

PodDetail Of(const std::vector<std::pair<QueryLabels, double>>& rows) {
  PodDetail detail;
  for (const auto& [labels, value] : rows) AddDetail(labels, value, detail);
  return detail;
}

TEST(DetailQueries, AreTwelveWithTheOthersAndAskOnlyForWhatIsTrusted) {
  const auto window = [](const std::string&) -> std::int64_t { return 65; };
  EXPECT_LE(UsageQueries(window).size() + DetailQueries(window).size(), 12U);
  for (const DetailQuery& query : DetailQueries(window, "job=\"x\"")) {
    std::size_t series = 0, trusted = 0, open = 0;
    for (std::size_t at = 0; at < query.text.size(); ++at) {
      series += query.text[at] == '{' ? 1 : 0;
      trusted += query.text.compare(at, 8, "job=\"x\"}") == 0 ? 1 : 0;
      open += query.text[at] == '(' ? 1 : 0;
      open -= query.text[at] == ')' ? 1 : 0;
    }
    EXPECT_EQ(series, trusted) << query.text;
    EXPECT_GT(series, 0U);
    EXPECT_EQ(open, 0U) << query.text;
  }
}

TEST(AddDetail, KnowsGpusAndProcesses) {
  const PodDetail detail = Of({{{{"series", "busy"}, {"gpu", "0"}}, 90},
                               {{{"series", "busy"}, {"gpu", "0"}}, 80},
                               {{{"series", "busy"}, {"gpu", "0"}, {"pid", "4711"}}, 60},
                               {{{"series", "bandwidth"}, {"gpu", "1"}, {"pid", "4711"}}, 11},
                               {{{"series", "mebibytes"}, {"gpu", "0"}}, 2},
                               {{{"series", "bytes"}, {"gpu", "0"}}, 1 << 20},
                               {{{"series", "sent"}}, 1000},
                               {{{"series", "writing"}}, 0.5}});
  EXPECT_THAT(detail.utilization, ElementsAre(Pair(GpuProcessId{0, 0}, 90), Pair(GpuProcessId{0, 4711}, 60)));
  EXPECT_THAT(detail.memory_utilization, ElementsAre(Pair(GpuProcessId{1, 4711}, 11)));
  EXPECT_THAT(detail.gpu_memory, ElementsAre(Pair(0, 2 << 20)));
  EXPECT_THAT(detail.sent, Optional(1000));
  EXPECT_THAT(detail.writing, Optional(0.5));
}

TEST(AddDetail, KeepsSoManyProcessesOfAPodAndNoMore) {
  PodDetail detail;
  for (int pid = 1; pid <= 2000; ++pid) {
    for (const char* series : {"busy", "bandwidth"}) {
      AddDetail({{"series", series}, {"gpu", "0"}, {"pid", std::to_string(pid)}}, 1, detail);
    }
    AddDetail({{"series", "bytes"}, {"gpu", std::to_string(pid % 1000)}}, 1, detail);
  }
  EXPECT_EQ(detail.utilization.size(), 256U);
  EXPECT_EQ(detail.memory_utilization.size(), 256U);
  EXPECT_EQ(detail.gpu_memory.size(), 256U);
  AddDetail({{"series", "busy"}, {"gpu", "0"}, {"pid", "7"}}, 50, detail);
  EXPECT_EQ(detail.utilization.at({0, 7}), 50) << "those that are known still rise";
}

TEST(AddDetail, LeavesOutWhatIsNoValue) {
  constexpr double kBlank = 9223372036854775794.0;
  for (const double value : {kBlank, -1.0, std::nan(""), HUGE_VAL}) {
    const PodDetail detail = Of({{{{"series", "busy"}, {"gpu", "0"}}, value},
                                 {{{"series", "bandwidth"}, {"gpu", "0"}}, value},
                                 {{{"series", "bytes"}, {"gpu", "0"}}, value},
                                 {{{"series", "mebibytes"}, {"gpu", "0"}}, value},
                                 {{{"series", "sent"}}, value},
                                 {{{"series", "writing"}}, value}});
    EXPECT_THAT(detail.utilization, IsEmpty());
    EXPECT_THAT(detail.memory_utilization, IsEmpty());
    EXPECT_THAT(detail.gpu_memory, IsEmpty());
    EXPECT_FALSE(detail.sent || detail.writing) << value;
  }
  for (const char* gpu : {"", "x", "-1", "1024", "0 ", "0x1"}) {
    EXPECT_THAT(Of({{{{"series", "busy"}, {"gpu", gpu}}, 1}}).utilization, IsEmpty()) << gpu;
  }
  for (const char* pid : {"x", "-1", "99999999999", "1.5"}) {
    EXPECT_THAT(Of({{{{"series", "busy"}, {"gpu", "0"}, {"pid", pid}}, 1}}).utilization, IsEmpty()) << pid;
  }
  EXPECT_THAT(Of({{{{"gpu", "0"}}, 1}}).utilization, IsEmpty());
}

TEST(Merge, KeepsWhatBothQueriesSay) {
  PodDetail detail = Of({{{{"series", "busy"}, {"gpu", "0"}}, 90}, {{{"series", "sent"}}, 5}});
  Merge(Of({{{{"series", "bandwidth"}, {"gpu", "0"}}, 9}, {{{"series", "bytes"}, {"gpu", "0"}}, 7}}), detail);
  EXPECT_EQ(detail.utilization.size() + detail.memory_utilization.size() + detail.gpu_memory.size(), 3U);
  EXPECT_THAT(detail.sent, Optional(5));
}

}  // namespace
}  // namespace grus
