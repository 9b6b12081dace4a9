// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/utilization_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"
#include "controllers/extender/node_scores.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kMebibyte = 1 << 20;

// The test plays Prometheus: rows by a part of the query.
class UtilizationWatchTest : public ::testing::Test {
 protected:
  UtilizationWatchTest() {
    network_.Handle("GET", "/", [this](const kube::HttpRequest& request, const std::stop_token&) {
      return Answer(request.target);
    });
  }
  kube::Result<kube::HttpResponse> Answer(const std::string& target) {
    queries_.push_back(target);
    const bool fails = is_down_ || (!failing_.empty() && target.find(failing_) != std::string::npos);
    if (fails) return kube::Error(kube::ErrorCode::kUnavailable, "nobody answers");
    std::string rows;
    for (const auto& [part, row] : rows_) {
      if (target.find(part) != std::string::npos) rows += (rows.empty() ? "" : ",") + row;
    }
    return kube::HttpResponse{.status = 200,
                              .headers = {},
                              .body = R"({"status":"success","data":{"resultType":"vector","result":[)" + rows + "]}}"};
  }
  void Measure(const std::string& part, const std::string& labels, double value) {
    rows_.emplace_back(part, R"({"metric":{)" + labels + R"(},"value":[1,")" + std::to_string(value) + "\"]}");
  }
  // As grus-node-agent tells of a K80 of 12 GiB.
  void AddCard(const std::string& node, double used_mebibytes) {
    const std::string labels = R"("node":")" + node + R"(","uuid":"GPU-)" + node + R"(","model":"Tesla K80")";
    Measure("grus_gpu_memory_used_bytes", labels, used_mebibytes * kMebibyte);
    Measure("grus_gpu_memory_total_bytes", labels, 12288 * kMebibyte);
  }
  void Ask() {
    const auto next = watch_.Reconcile({"", "utilization"}, {});
    ASSERT_TRUE(next);
    EXPECT_EQ(next->delay(), UtilizationWatch::kEvery);
  }
  // What the account says of nodes that it packs.
  static std::vector<NodeRank> Packed(std::size_t count) {
    std::vector<NodeRank> ranks;
    for (std::size_t i = 0; i < count; ++i) ranks.push_back({PoolPlacement::kUtilSched, -double(i), true});
    return ranks;
  }
  std::vector<int> ScoresFor(std::vector<std::string_view> nodes, std::vector<NodeRank> ranks) {
    watch_.Rank(nodes, ranks);
    return ScoresOf(ranks);
  }
  std::vector<int> ScoresFor(const std::vector<std::string_view>& nodes) {
    return ScoresFor(nodes, Packed(nodes.size()));
  }

  kube::testing::FakeClock clock_;
  const kube::Log log_{kube::LogLevel::kOff};
  kube::testing::FakeTransport network_{clock_};
  std::vector<std::pair<std::string, std::string>> rows_;
  std::vector<std::string> queries_;
  bool is_down_ = false;
  std::string failing_;  // The metric whose query fails; empty: none.
  Prometheus prometheus_{[this](const std::string&) -> kube::Result<std::shared_ptr<kube::Transport>> {
                           return std::shared_ptr<kube::Transport>(&network_, [](kube::Transport*) {});
                         },
                         clock_,
                         {"http://p:9090"}};
  UtilizationWatch watch_{
      prometheus_, {.url = "http://p:9090", .selector = "job=\"mine\"", .weights = {}}, clock_, log_};
};

TEST_F(UtilizationWatchTest, TheNodeWhoseGpusAreFullestIsTheBest) {
  AddCard("a", 1000);
  AddCard("b", 9000);
  AddCard("c", 5200);
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b", "c"}), ElementsAre(0, 10, 5));
}

TEST_F(UtilizationWatchTest, DcgmAndTheNodeExporterAreRead) {
  for (const auto& [node, used] : {std::pair("a", 2000.0), {"b", 2000.0}}) {
    const std::string labels = R"("Hostname":")" + std::string(node) + R"(","UUID":"GPU-1","modelName":"Tesla V100")";
    Measure("DCGM_FI_DEV_FB_USED", labels, used);
    Measure("DCGM_FI_DEV_FB_FREE", labels, 16384 - used);
  }
  Measure("node_cpu_seconds_total", R"("instance":"10.0.0.1:9100","nodename":"b")", 0.9);
  Measure("node_cpu_seconds_total", R"("instance":"a:9100")", 0.2);
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(0, 10)) << "its CPUs are busier";
}

TEST_F(UtilizationWatchTest, BothExportersOfOneGpuCountOnce) {
  AddCard("a", 6000);
  AddCard("b", 7000);
  const std::string labels = R"("node":"a","UUID":"GPU-a","modelName":"Tesla K80")";
  Measure("DCGM_FI_DEV_FB_USED", labels, 12000);
  Measure("DCGM_FI_DEV_FB_FREE", labels, 288);
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(0, 10)) << "the agent's number is the one that counts";
}

TEST_F(UtilizationWatchTest, OnlyPoolsThatAskForItGoByIt) {
  AddCard("a", 9000);
  AddCard("b", 1000);
  Ask();
  std::vector<NodeRank> ranks = Packed(2);
  for (NodeRank& one : ranks) one.placement = PoolPlacement::kBinPack;
  ranks[1].rank = 1;
  EXPECT_THAT(ScoresFor({"a", "b"}, ranks), ElementsAre(0, 10));
}

TEST_F(UtilizationWatchTest, ANodeThatIsNotMeasuredHasNoScore) {
  AddCard("a", 1000);
  Ask();
  EXPECT_THAT(ScoresFor({"new", "a"}), ElementsAre(0, 10));
}

TEST_F(UtilizationWatchTest, AnOwnPlaceAndANodeWithoutRoomStayWhatTheyAre) {
  AddCard("a", 1000);
  AddCard("b", 9000);
  AddCard("c", 9500);
  Ask();
  std::vector<NodeRank> ranks = Packed(3);
  ranks[0].rank = std::numeric_limits<double>::infinity();
  ranks[2].is_known = false;
  watch_.Rank(std::vector<std::string_view>{"a", "b", "c"}, ranks);
  EXPECT_EQ(ranks[0].rank, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(ranks[2].is_known);
}

// Rule: metrics older than two minutes are unknown.
TEST_F(UtilizationWatchTest, WithoutPrometheusNodesArePackedAgain) {
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(10, 0)) << "nothing was asked yet";
  AddCard("a", 1000);
  AddCard("b", 9000);
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(0, 10));
  is_down_ = true;
  clock_.Advance(std::chrono::minutes(1));
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(0, 10)) << "what was known is not old yet";
  clock_.Advance(std::chrono::minutes(1) + std::chrono::seconds(1));
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(10, 0));
}

// Rule: what is not known of some nodes is no zero for them.
TEST_F(UtilizationWatchTest, OneQueryThatFailsChangesNothing) {
  AddCard("a", 1000);
  AddCard("b", 9000);
  Ask();
  failing_ = "DCGM_FI_DEV_FB_FREE";
  rows_.clear();
  AddCard("a", 12000);
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(0, 10));
  failing_.clear();
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(10, 0));
}

TEST_F(UtilizationWatchTest, SeriesOfCardsThatNoNodeHasAreCutOff) {
  AddCard("a", 9000);
  for (int i = 0; i < 100; ++i) {
    const std::string labels = R"("node":"b","uuid":"GPU-)" + std::to_string(i) + R"(","model":"Tesla K80")";
    Measure("grus_gpu_memory_used_bytes", labels, 10 * kMebibyte);
    Measure("grus_gpu_memory_total_bytes", labels, 10 * kMebibyte);
  }
  Measure("DCGM_FI_DEV_FB_USED", R"("node":"b","UUID":"GPU-0","modelName":"Tesla K80")", 2e6);
  Ask();
  std::vector<NodeRank> ranks = Packed(2);
  watch_.Rank(std::vector<std::string_view>{"a", "b"}, ranks);
  EXPECT_NEAR(ranks[1].rank, 64 * (5 * 6 * 10 / 12288.0 + 10), 1e-6);
}

TEST_F(UtilizationWatchTest, WhatCannotHaveBeenMeasuredDoesNotCount) {
  AddCard("a", 1000);
  AddCard("b", 2000);
  Measure("DCGM_FI_DEV_FB_USED", R"("node":"b","UUID":"GPU-x","modelName":"Tesla K80")", 9.2e18);
  Measure("DCGM_FI_DEV_FB_FREE", R"("node":"b","UUID":"GPU-x","modelName":"Tesla K80")", -5);
  Measure("node_cpu_seconds_total", R"("node":"a")", -3);
  Ask();
  EXPECT_THAT(ScoresFor({"a", "b"}), ElementsAre(0, 10));
}

TEST_F(UtilizationWatchTest, AsksForWhatIsTrustedAndNew) {
  Ask();
  ASSERT_EQ(queries_.size(), 5U);
  for (const std::string& query : queries_) {
    EXPECT_THAT(query, HasSubstr("job%3D%22mine%22"));
    EXPECT_THAT(query, HasSubstr("%5B120s%5D"));
  }
  // Two names of one instance are an error of PromQL, and would be the end of the query.
  EXPECT_THAT(queries_.back(), HasSubstr("%3D%3D%201"));
}

}  // namespace
}  // namespace grus
