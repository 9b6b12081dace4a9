// SPDX-License-Identifier: Apache-2.0
// How exchanges share connections.
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "clientlib/http/url.h"
#include "tests/clientlib/http/transport_fixture.h"

namespace kube {
namespace {

using testing::CertifiedKey;
using testing::Event;
using testing::TestConnection;
using testing::TestRequest;
using testing::TestServer;

class CurlPoolTest : public testing::TransportFixture {};

TEST_F(CurlPoolTest, H4EachPoolHasConnectionsOfItsOwn) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(200); });
  auto transport = Connect(OptionsFor(*server));

  for (const HttpPool pool : {HttpPool::kRequest, HttpPool::kWatch, HttpPool::kLease, HttpPool::kRequest}) {
    ASSERT_TRUE(transport->Send({.target = "/", .pool = pool}, {}));
  }

  EXPECT_EQ(transport->connections_opened(), 3);
}

// A server on the same machine often answers before the I/O thread has begun to wait for the answer.
TEST_F(CurlPoolTest, AnAnswerThatIsThereBeforeTheWaitIsHandedOverAtOnce) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(200); });
  auto transport = Connect(OptionsFor(*server));
  const TimePoint until = Soon();

  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(transport->Send({.target = "/"}, {}));
    ASSERT_LT(clock_.Now(), until) << "after " << i << " requests";
  }
}

TEST_F(CurlPoolTest, NewConnectionsResumeTheTlsSession) {
  auto server = Serve([](const TestRequest&, TestConnection& connection) {
    connection.Respond(200, "ok", {{"Connection", "close"}});
    connection.Close();
  });
  auto transport = Connect(OptionsFor(*server));

  ASSERT_TRUE(transport->Send({.target = "/"}, {}));
  ASSERT_TRUE(transport->Send({.target = "/"}, {}));

  EXPECT_EQ(server->connections(), 2);
  EXPECT_EQ(server->resumed_sessions(), 1);
}

TEST_F(CurlPoolTest, H4WithoutHttp2EachWatchGetsAConnection) {
  constexpr int kWatches = 20;
  const CertifiedKey key = ca_.Issue();
  for (const bool is_tls : {true, false}) {
    Event all_came;
    std::atomic<int> came{0};
    TestServer server(
        is_tls ? TestServer::Options{.cert_pem = key.cert_pem, .key_pem = key.key_pem} : TestServer::Options{},
        [&](const TestRequest&, TestConnection& connection) {
          if (++came == kWatches) all_came.Set();
          connection.StartChunks();
          connection.AwaitClosing();
        });
    TransportOptions options = OptionsFor(server);
    options.watch_connections = 2;
    auto transport = Connect(options);

    std::vector<std::future<Result<StreamResponse>>> opening;
    for (int i = 0; i < kWatches; ++i) {
      opening.push_back(std::async(std::launch::async,
                                   [&] { return transport->Open({.target = "/", .pool = HttpPool::kWatch}, {}); }));
    }
    EXPECT_TRUE(all_came.Wait()) << came;
    for (auto& one : opening) EXPECT_TRUE(one.get());
  }
}

TEST_F(CurlPoolTest, H4ManyThreadsShareFewConnections) {
  auto server = Serve([](const TestRequest& request, TestConnection& c) { c.Respond(200, request.target); });
  auto transport = Connect(OptionsFor(*server));
  std::atomic<int> wrong{0};

  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        const std::string target = QueryBuilder("/").Add("thread", thread).Add("i", i).target();
        Result<HttpResponse> got = transport->Send({.target = target}, {});
        if (!got || got->body != target) ++wrong;
      }
    });
  }
  threads.clear();

  EXPECT_EQ(wrong, 0);
  EXPECT_LE(server->connections(),
            8 + 2);  // Without HTTP/2; a few more if handshakes were given up for that.
}

}  // namespace
}  // namespace kube
