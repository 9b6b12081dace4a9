// SPDX-License-Identifier: Apache-2.0
// Connections that hang, over real HTTP/2: none is asked twice, and none is torn down that others can still use.
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <vector>

#include "tests/clientlib/http/http2_fixture.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using Fault = kit::Relay::Fault;
using testing::Event;
using testing::Fate;
using testing::TestRequest;

constexpr HttpPool kPools[] = {HttpPool::kRequest, HttpPool::kWatch, HttpPool::kLease};
constexpr Duration kShort = 300ms;  // Of a request that is to time out.

class Http2HangTest : public testing::Http2Fixture {
 protected:
  // "/stream", "/silent", and whatever is answered.
  static Fate Usual(const TestRequest& request, int) {
    if (request.target == "/stream") return Fate::kStream;
    return request.target == "/silent" ? Fate::kNoAnswer : Fate::kAnswer;
  }
};

TEST_F(Http2HangTest, H5AfterATimeOutRequestsUseANewConnection) {
  StartServer(Usual);
  for (const Fault fault : {Fault::kFreeze, Fault::kDrop}) {
    for (const HttpPool pool : kPools) {
      auto transport = Connect(ThroughTheNetwork());
      ASSERT_TRUE(transport->Send({.target = "/", .pool = pool}, {}));

      network_->BreakOpenOnes(fault);
      const Result<HttpResponse> hung = transport->Send({.target = "/", .timeout = kShort, .pool = pool}, {});

      ASSERT_FALSE(hung);
      EXPECT_EQ(hung.error().code(), ErrorCode::kTimeout);
      for (int i = 0; i < 3; ++i) {
        const Result<HttpResponse> next =
            transport->Send({.method = "PUT", .target = "/", .body = "x", .pool = pool}, {});
        EXPECT_TRUE(next) << next.error().message();
      }
      EXPECT_EQ(transport->connections_opened(), 2);
    }
  }
}

TEST_F(Http2HangTest, H5ManyTimeOutsOfOneConnectionCostOneNewOne) {
  StartServer(Usual);
  auto transport = Connect(ThroughTheNetwork());
  ASSERT_TRUE(transport->Send({.target = "/"}, {}));
  network_->BreakOpenOnes(Fault::kFreeze);

  std::vector<std::future<Result<HttpResponse>>> hung;
  for (int i = 0; i < 16; ++i) {
    hung.push_back(
        std::async(std::launch::async, [&] { return transport->Send({.target = "/", .timeout = kShort}, {}); }));
  }
  for (auto& one : hung) EXPECT_FALSE(one.get());

  EXPECT_TRUE(transport->Send({.target = "/"}, {}));
  EXPECT_EQ(transport->connections_opened(), 2);
}

TEST_F(Http2HangTest, H5ASlowAnswerEndsNoWatchOfItsConnection) {
  StartServer(Usual);
  auto transport = Connect(ThroughTheNetwork());
  Result<StreamResponse> watch = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});
  ASSERT_TRUE(watch);

  EXPECT_FALSE(transport->Open({.target = "/silent", .timeout = kShort, .pool = HttpPool::kWatch}, {}));
  Result<StreamResponse> second = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});

  ASSERT_TRUE(second);
  EXPECT_EQ(transport->connections_opened(), 2);
  server_->Stream("event");
  EXPECT_EQ(*watch->stream->Read(Soon(), {}), "event");
  EXPECT_EQ(*second->stream->Read(Soon(), {}), "event");
}

TEST_F(Http2HangTest, H5WhatWasSentToAConnectionThatOnlyPausedIsAnswered) {
  StartServer(Usual);
  auto transport = Connect(ThroughTheNetwork());
  ASSERT_TRUE(transport->Send({.target = "/"}, {}));
  network_->BreakOpenOnes(Fault::kFreeze);
  auto patient = std::async(std::launch::async, [&] { return transport->Send({.method = "POST", .target = "/"}, {}); });
  EXPECT_FALSE(transport->Send({.target = "/", .timeout = kShort}, {}));

  network_->Heal();

  EXPECT_TRUE(patient.get());
}

TEST_F(Http2HangTest, H5AStreamThatIsGivenUpForItsSilenceIsOpenedOnANewConnection) {
  StartServer(Usual);
  auto transport = Connect(ThroughTheNetwork());
  Result<StreamResponse> watch = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});
  ASSERT_TRUE(watch);
  network_->BreakOpenOnes(Fault::kFreeze);

  EXPECT_EQ(watch->stream->Read(clock_.Now() + kShort, {}).error().code(), ErrorCode::kTimeout);
  watch->stream.reset();
  watch = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});

  ASSERT_TRUE(watch) << watch.error().message();
  server_->Stream("event");
  EXPECT_EQ(*watch->stream->Read(Soon(), {}), "event");
}

TEST_F(Http2HangTest, H5AStreamThatGoesOnAfterASilenceKeepsTheConnection) {
  StartServer(Usual);
  auto transport = Connect(ThroughTheNetwork());
  Result<StreamResponse> watch = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});
  ASSERT_TRUE(watch);

  EXPECT_FALSE(watch->stream->Read(clock_.Now() + kShort, {}));
  server_->Stream("event");
  EXPECT_TRUE(watch->stream->Read(Soon(), {}));
  watch->stream.reset();

  EXPECT_TRUE(transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {}));
  EXPECT_EQ(transport->connections_opened(), 1);
}

TEST_F(Http2HangTest, H5ARequestThatIsStoppedKeepsTheConnection) {
  Event came;
  StartServer([&](const TestRequest& request, int connection) {
    if (request.target == "/silent") came.Set();
    return Usual(request, connection);
  });
  auto transport = Connect(ThroughTheNetwork());
  std::stop_source stop;
  auto sent = std::async(std::launch::async, [&] { return transport->Send({.target = "/silent"}, stop.get_token()); });
  ASSERT_TRUE(came.Wait());

  stop.request_stop();

  EXPECT_EQ(sent.get().error().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(transport->Send({.target = "/"}, {}));
  EXPECT_EQ(transport->connections_opened(), 1);
}

TEST_F(Http2HangTest, H5RequestsGoOnOnceTheNetworkIsBack) {
  StartServer(Usual);
  for (const Fault fault : {Fault::kFreeze, Fault::kDrop}) {
    for (const HttpPool pool : kPools) {
      auto transport = Connect(ThroughTheNetwork());
      ASSERT_TRUE(transport->Send({.target = "/", .pool = pool}, {}));
      network_->BreakAll(fault);
      for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(transport->Send({.target = "/", .timeout = kShort, .pool = pool}, {}));
      }

      network_->Heal();

      EXPECT_TRUE(transport->Send({.target = "/", .timeout = 5s, .pool = pool}, {}));
    }
  }
}

TEST_F(Http2HangTest, H4AConnectionCarriesAtMost100Streams) {
  constexpr std::size_t kStreams = 150;
  std::mutex mutex;
  std::map<int, int> by_connection;
  StartServer([&](const TestRequest&, int connection) {
    std::lock_guard lock(mutex);
    ++by_connection[connection];
    return Fate::kStream;
  });
  auto transport = Connect(ThroughTheNetwork());

  std::vector<std::unique_ptr<ByteStream>> streams;
  while (streams.size() < kStreams) {
    Result<StreamResponse> opened = transport->Open({.target = "/", .pool = HttpPool::kWatch}, {});
    ASSERT_TRUE(opened) << opened.error().message();
    streams.push_back(std::move(opened->stream));
  }

  std::lock_guard lock(mutex);
  EXPECT_EQ(by_connection, (std::map<int, int>{{1, 100}, {2, 50}}));
}

TEST_F(Http2HangTest, H4OverHttp2ManyThreadsShareAConnection) {
  StartServer(Usual);
  auto transport = Connect(ThroughTheNetwork());
  std::atomic<int> wrong{0};

  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        const std::string target = "/" + std::to_string(thread) + "/" + std::to_string(i);
        Result<HttpResponse> got = transport->Send({.target = target}, {});
        if (!got || got->body != target) ++wrong;
      }
    });
  }
  threads.clear();

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server_->connections(), 1);
}

}  // namespace
}  // namespace kube
