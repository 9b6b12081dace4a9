// SPDX-License-Identifier: Apache-2.0
// What a server refused without a look at it is sent again, also a write; what it may have carried out is not.
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/clientlib/http/http2_fixture.h"

namespace kube {
namespace {

using testing::Fate;
using testing::TestRequest;
using Seen = std::vector<std::pair<int, std::string>>;  // Connection, and body of each request to "/once".

class Http2RetryTest : public testing::Http2Fixture {
 protected:
  // The first request to "/once" meets `fate`; "/stream" is streamed, and all else is answered.
  void StartServerThatOnce(Fate fate) {
    {
      std::lock_guard lock(mutex_);
      seen_.clear();
    }
    StartServer([this, fate](const TestRequest& request, int connection) {
      if (request.target == "/stream") return Fate::kStream;
      if (request.target != "/once") return Fate::kAnswer;
      std::lock_guard lock(mutex_);
      seen_.emplace_back(connection, request.body);
      return seen_.size() == 1 ? fate : Fate::kAnswer;
    });
  }
  Seen seen() {
    std::lock_guard lock(mutex_);
    return seen_;
  }
  // What the connection of the request to "/once" has carried or still carries. All use one pool.
  enum Before { kNothing, kARequest, kAStream };
  static std::string Name(Fate fate, Before before) {
    return ", fate " + std::to_string(static_cast<int>(fate)) + " after " + std::to_string(before);
  }
  std::unique_ptr<ByteStream> Begin(Transport& transport, Before before) {
    if (before == kARequest) {
      EXPECT_TRUE(transport.Send({.target = "/"}, {}));
    }
    if (before != kAStream) return nullptr;
    Result<StreamResponse> opened = transport.Open({.target = "/stream"}, {});
    EXPECT_TRUE(opened);
    return opened ? std::move(opened->stream) : nullptr;
  }
  static HttpRequest Once(const std::string& method) {
    HttpRequest request{.method = method, .target = "/once"};
    if (method != "GET" && method != "DELETE") request.body = "body";
    return request;
  }

 private:
  std::mutex mutex_;  // Guards seen_.
  Seen seen_;
};

TEST_F(Http2RetryTest, H6WhatTheServerRefusedIsSentAgainOnANewConnection) {
  struct Case {
    Fate fate;
    Before before;
  };
  for (const Case& c : {Case{Fate::kRefuse, kNothing}, Case{Fate::kRefuse, kARequest}, Case{Fate::kRefuse, kAStream},
                        Case{Fate::kGoAwayBefore, kAStream}}) {
    for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
      SCOPED_TRACE(method + Name(c.fate, c.before));
      StartServerThatOnce(c.fate);
      auto transport = Connect(ThroughTheNetwork());
      const auto stream = Begin(*transport, c.before);

      const HttpRequest request = Once(method);
      const Result<HttpResponse> got = transport->Send(request, {});

      EXPECT_TRUE(got) << got.error().message();
      EXPECT_EQ(seen(), (Seen{{1, request.body}, {2, request.body}}));
      if (!stream) continue;
      server_->Stream("event");
      EXPECT_EQ(*stream->Read(Soon(), {}), "event");
    }
  }
}

// A read that meets the end of the old connection may be lost with it; the next one has a new connection.
bool IsAnswered(CurlTransport& transport) {
  for (int tries = 0; tries < 3; ++tries) {
    const Result<HttpResponse> got = transport.Send({.target = "/"}, {});
    if (got) return true;
    EXPECT_EQ(got.error().reason(), kConnectionLost) << got.error().message();
  }
  return false;
}

TEST_F(Http2RetryTest, H6AWriteThatMayHaveBeenCarriedOutIsNotSentAgain) {
  for (const Fate fate : {Fate::kGoAwayAfter, Fate::kReset, Fate::kResetAndClose, Fate::kClose, Fate::kBreak}) {
    for (const Before before : {kNothing, kARequest, kAStream}) {
      for (const std::string method : {"POST", "PUT", "PATCH", "DELETE"}) {
        SCOPED_TRACE(method + Name(fate, before));
        StartServerThatOnce(fate);
        auto transport = Connect(ThroughTheNetwork());
        const auto stream = Begin(*transport, before);

        const Result<HttpResponse> got = transport->Send(Once(method), {});

        ASSERT_FALSE(got);
        EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
        EXPECT_EQ(got.error().reason(), kConnectionLost);
        EXPECT_EQ(seen().size(), 1U);
        EXPECT_TRUE(IsAnswered(*transport));
      }
    }
  }
}

// curl reports it as a connection that broke.
TEST_F(Http2RetryTest, H6AWriteThatGoAwayRefusesAloneIsTheCallersMatter) {
  StartServerThatOnce(Fate::kGoAwayBefore);
  auto transport = Connect(ThroughTheNetwork());

  const Result<HttpResponse> got = transport->Send(Once("POST"), {});

  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason(), kConnectionLost);
  EXPECT_EQ(seen().size(), 1U);
  EXPECT_TRUE(transport->Send(Once("POST"), {}));
}

TEST_F(Http2RetryTest, H6AServerThatRefusesEverythingIsAskedAFewTimesOnly) {
  std::atomic<int> requests{0};
  StartServer([&](const TestRequest&, int) {
    ++requests;
    return Fate::kRefuse;
  });
  auto transport = Connect(ThroughTheNetwork());

  const Result<HttpResponse> got = transport->Send({.method = "POST", .target = "/", .body = "x"}, {});

  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  EXPECT_LE(requests, 6);
}

TEST_F(Http2RetryTest, H6AfterGoAwayStreamsGoOnAndRequestsUseANewConnection) {
  StartServerThatOnce(Fate::kAnswerAndGoAway);
  auto transport = Connect(ThroughTheNetwork());
  Result<StreamResponse> watch = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});
  ASSERT_TRUE(watch);

  HttpRequest last = Once("GET");
  last.pool = HttpPool::kWatch;
  ASSERT_TRUE(transport->Send(last, {}));
  ASSERT_TRUE(transport->Send({.target = "/", .pool = HttpPool::kWatch}, {}));

  EXPECT_EQ(server_->connections(), 2);
  server_->Stream("event");
  EXPECT_EQ(*watch->stream->Read(Soon(), {}), "event");
}

}  // namespace
}  // namespace kube
