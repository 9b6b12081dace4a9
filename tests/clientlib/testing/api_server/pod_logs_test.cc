// SPDX-License-Identifier: Apache-2.0
// The logs of pods, as far as tests/contract cannot play them: containers that wait, end and start again, time,
// rotation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"

namespace kube::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr WallTime kNoon{1767355200s};  // 2026-01-02T12:00:00Z

class PodLogsTest : public ::testing::Test {
 protected:
  PodLogsTest() {
    Result<Json> pod = ParseJson(R"({"metadata":{"name":"train-0","namespace":"default"},
        "spec":{"nodeName":"node-0","containers":[{"name":"main","image":"i"}]}})");
    EXPECT_TRUE(server_.Create("pods", *std::move(pod)));
  }
  // `state` as in containerStatuses.
  void SetState(const std::string& state) {
    Json pod = *server_.Get("pods", kPod);
    Result<Json> status =
        ParseJson(R"({"phase":"Running","containerStatuses":[{"name":"main","state":)" + state + "}]}");
    ASSERT_TRUE(status);
    pod["status"] = *std::move(status);
    ASSERT_TRUE(server_.Update("pods", std::move(pod), "status"));
  }
  void Run() { SetState(R"({"running":{}})"); }
  void Finish() { SetState(R"({"terminated":{"exitCode":0}})"); }
  void Log(std::string_view text, Duration after_noon = 0s) {
    server_.AppendPodLog(kPod, "main", kNoon + std::chrono::duration_cast<WallTime::duration>(after_noon), text);
  }
  HttpResponse Get(const std::string& query = "") {
    Result<HttpResponse> got = server_.Send({.target = kLog + query}, {});
    return got ? *std::move(got) : HttpResponse{};
  }
  std::unique_ptr<ByteStream> Follow(const std::string& query = "") {
    Result<StreamResponse> opened = server_.Open({.target = kLog + "?follow=true" + query}, {});
    return opened ? std::move(opened->stream) : nullptr;
  }
  // What is there to read now: "(nothing)", "(end)", or the error's message.
  std::string ReadNow(ByteStream& stream) {
    Result<std::string> bytes = stream.Read(clock_.Now(), {});
    if (bytes) return bytes->empty() ? "(end)" : *bytes;
    return bytes.error().code() == ErrorCode::kTimeout ? "(nothing)" : bytes.error().message();
  }

  const ObjectKey kPod{"default", "train-0"};
  const std::string kLog = "/api/v1/namespaces/default/pods/train-0/log";
  FakeClock clock_;
  FakeApiServer server_{clock_};
};

TEST_F(PodLogsTest, AContainerThatWaitsHasNone) {
  EXPECT_EQ(Get().status, 400);
  EXPECT_THAT(Get().body, HasSubstr(R"(container \"main\" in pod \"train-0\" is not available)"));
  SetState(R"({"waiting":{"reason":"ContainerCreating"}})");
  EXPECT_EQ(Get().status, 400);
  EXPECT_THAT(Get().body, HasSubstr("is waiting to start: ContainerCreating"));
}

TEST_F(PodLogsTest, AFollowersStreamEndsWithTheContainer) {
  Run();
  const auto stream = Follow();
  Log("last\n");
  Finish();
  EXPECT_EQ(ReadNow(*stream), "last\n");
  EXPECT_EQ(ReadNow(*stream), "(end)");
  EXPECT_EQ(ReadNow(*Follow()), "last\n") << "and the log stays";
}

TEST_F(PodLogsTest, AContainerThatStartsAgainHasANewLog) {
  Run();
  Log("before\n");
  Finish();
  Run();
  Log("after\n");
  EXPECT_EQ(Get().body, "after\n");
}

TEST_F(PodLogsTest, TheLogGoesWithThePod) {
  Run();
  Log("a\n");
  const auto stream = Follow();
  EXPECT_EQ(ReadNow(*stream), "a\n");
  Json now = Json::MakeObject({{"gracePeriodSeconds", 0}});
  ASSERT_TRUE(server_.Delete("pods", kPod, now));
  EXPECT_EQ(ReadNow(*stream), "(end)");
  EXPECT_EQ(Get().status, 404);
}

TEST_F(PodLogsTest, RotationCutsTheFrontOff) {
  Run();
  Log("a\nb\nc\n");
  const auto stream = Follow();
  server_.RotatePodLog(kPod, "main", 1);
  EXPECT_EQ(Get().body, "c\n");
  EXPECT_EQ(ReadNow(*stream), "c\n");
  Log("d\n");
  EXPECT_EQ(ReadNow(*stream), "d\n");
}

TEST_F(PodLogsTest, BrokenStreamsFailAndNewOnesWork) {
  Run();
  const auto stream = Follow();
  Log("a\n");
  server_.BreakStreams();
  EXPECT_EQ(ReadNow(*stream), "connection reset");
  EXPECT_EQ(ReadNow(*Follow()), "a\n");
}

TEST_F(PodLogsTest, NothingIsLoggedByAPodThatIsNotThere) {
  server_.AppendPodLog({"default", "later"}, "main", kNoon, "a\n");
  server_.RotatePodLog({"default", "later"}, "main", 0);
  Result<Json> pod = ParseJson(R"({"metadata":{"name":"later","namespace":"default"},
      "spec":{"nodeName":"node-0","containers":[{"name":"main","image":"i"}]},
      "status":{"containerStatuses":[{"name":"main","state":{"running":{}}}]}})");
  ASSERT_TRUE(server_.Create("pods", *pod));
  pod = *server_.Get("pods", {"default", "later"});
  (*pod)["status"] = *ParseJson(R"({"containerStatuses":[{"name":"main","state":{"running":{}}}]})");
  ASSERT_TRUE(server_.Update("pods", *pod, "status"));
  Result<HttpResponse> got = server_.Send({.target = "/api/v1/namespaces/default/pods/later/log"}, {});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, "");
}

}  // namespace
}  // namespace kube::testing
