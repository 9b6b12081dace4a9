// SPDX-License-Identifier: Apache-2.0
// What tests/contract cannot reach from outside: virtual time, compaction, broken streams, observers, seeds.
#include "clientlib/testing/api_server/fake_api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/testing/api_server/fake_api_socket.h"
#include "clientlib/testing/fake_clock.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

Json ConfigMap(std::string_view name) {
  return Json::MakeObject({{"metadata", Json::MakeObject({{"name", name}, {"namespace", "default"}})}});
}

class FakeApiServerTest : public ::testing::Test {
 protected:
  void Make(std::string_view name) { ASSERT_TRUE(server_.Create("configmaps", ConfigMap(name))); }

  std::unique_ptr<ByteStream> Watch(const std::string& query) {
    Result<StreamResponse> opened =
        server_.Open({.target = "/api/v1/namespaces/default/configmaps?watch=1" + query}, {});
    return opened ? std::move(opened->stream) : nullptr;
  }
  // What is there to read now; the error's message if it failed.
  std::string ReadNow(ByteStream& stream) {
    Result<std::string> bytes = stream.Read(clock_.Now(), {});
    return bytes ? *bytes : "error: " + bytes.error().message();
  }
  std::string Version() const { return std::to_string(server_.revision()); }

  FakeClock clock_;
  FakeApiServer server_{clock_, {.bookmark_period = 60s}};
};

TEST_F(FakeApiServerTest, TellsNewWatchesThatTheirVersionWasCompacted) {
  const std::string before = Version();
  Make("a");
  server_.Compact();

  const auto stream = Watch("&resourceVersion=" + before);

  EXPECT_THAT(ReadNow(*stream), HasSubstr(R"("reason":"Expired","code":410)"));
  EXPECT_EQ(ReadNow(*stream), "");
}

TEST_F(FakeApiServerTest, ForgetsTheOldestEventsByItself) {
  FakeApiServer server(clock_, {.events_kept = 2});
  const std::string first = std::to_string(server.revision());
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(server.Create("configmaps", ConfigMap(name)));

  Result<StreamResponse> opened = server.Open({.target = "/api/v1/configmaps?watch=1&resourceVersion=" + first}, {});

  ASSERT_TRUE(opened);
  EXPECT_THAT(ReadNow(*opened->stream), HasSubstr(R"("code":410)"));
}

TEST_F(FakeApiServerTest, SendsBookmarksByItsClock) {
  const auto stream = Watch("&allowWatchBookmarks=true&resourceVersion=" + Version());
  ASSERT_TRUE(server_.Create("secrets", ConfigMap("elsewhere")));
  clock_.Advance(59s);
  EXPECT_EQ(ReadNow(*stream), "error: no bytes in time");

  clock_.Advance(1s);

  EXPECT_THAT(ReadNow(*stream), HasSubstr(R"("BOOKMARK")"));
  clock_.Advance(60s);
  EXPECT_THAT(ReadNow(*stream), HasSubstr(R"("resourceVersion":")" + Version()));
}

TEST_F(FakeApiServerTest, BreaksStreams) {
  const auto stream = Watch("&resourceVersion=" + Version());
  server_.BreakStreams();
  Make("a");

  EXPECT_EQ(ReadNow(*stream), "error: connection reset");
}

TEST_F(FakeApiServerTest, StreamsOutliveTheServer) {
  auto server = std::make_unique<FakeApiServer>(clock_);
  Result<StreamResponse> opened = server->Open({.target = "/api/v1/configmaps?watch=1&resourceVersion=1"}, {});
  ASSERT_TRUE(opened);
  server.reset();

  EXPECT_EQ(ReadNow(*opened->stream), "error: connection reset");
}

TEST_F(FakeApiServerTest, TellsObserversInOrder) {
  std::vector<std::string> seen;
  server_.AddObserver([&](const ServerChange& change) {
    const Json& object = change.after ? *change.after : *change.before;
    seen.push_back((change.before ? change.after ? "~" : "-" : "+") + std::string(change.resource) + " " +
                   *object.At({"metadata", "name"})->AsString());
  });
  Make("a");
  Json labelled = *server_.Get("configmaps", {"default", "a"});
  labelled["metadata"]["labels"] = Json::MakeObject({{"x", "y"}});
  ASSERT_TRUE(server_.Update("configmaps", std::move(labelled)));
  ASSERT_TRUE(server_.Delete("configmaps", {"default", "a"}));

  EXPECT_THAT(seen, ElementsAre("+configmaps a", "~configmaps a", "-configmaps a"));
}

TEST_F(FakeApiServerTest, RefusesWatchListIfItHasNone) {
  FakeApiServer server(clock_, {.has_watch_list = false});

  Result<StreamResponse> opened = server.Open(
      {.target = "/api/v1/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"}, {});

  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->head.status, 422);
  EXPECT_EQ(opened->stream, nullptr);
}

TEST(FakeApiSocket, ServesOverHttp) {
  SystemClock clock;
  FakeApiServer server(clock);
  const Result<std::unique_ptr<FakeApiSocket>> socket = FakeApiSocket::Open(server);
  ASSERT_TRUE(socket);
  EXPECT_THAT((*socket)->url(), StartsWith("http://127.0.0.1:"));
}

}  // namespace
}  // namespace kube::testing
