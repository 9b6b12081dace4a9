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
  enum Before { kNothing, kARequest, kAStream };
  struct Case {
    Fate fate;
    Before before;
  };
  for (const Case& c : {Case{Fate::kRefuse, kNothing}, Case{Fate::kRefuse, kARequest}, Case{Fate::kRefuse, kAStream},
                        Case{Fate::kGoAwayBefore, kAStream}}) {
    for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
      SCOPED_TRACE(method + ", fate " + std::to_string(static_cast<int>(c.fate)) + " after " +
                   std::to_string(c.before));
      StartServerThatOnce(c.fate);
      auto transport = Connect(ThroughTheNetwork());
      Result<StreamResponse> stream = StreamResponse();
      if (c.before == kARequest) {
        ASSERT_TRUE(transport->Send({.target = "/"}, {}));
      }
      if (c.before == kAStream) {
        stream = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});
        ASSERT_TRUE(stream);
      }

      HttpRequest request = Once(method);
      if (c.before == kAStream) request.pool = HttpPool::kWatch;
      const Result<HttpResponse> got = transport->Send(request, {});

      EXPECT_TRUE(got) << got.error().message();
      EXPECT_EQ(seen(), (Seen{{1, request.body}, {2, request.body}}));
      if (!stream->stream) continue;
      server_->Stream("event");
      EXPECT_EQ(*stream->stream->Read(Soon(), {}), "event");
    }
  }
}

TEST_F(Http2RetryTest, H6AWriteThatMayHaveBeenCarriedOutIsNotSentAgain) {
  for (const Fate fate : {Fate::kGoAwayAfter, Fate::kReset, Fate::kClose, Fate::kBreak}) {
    for (const std::string method : {"POST", "PUT", "PATCH", "DELETE"}) {
      for (const bool is_first : {true, false}) {
        SCOPED_TRACE(method + (is_first ? " is the first" : " comes later") + ", fate " +
                     std::to_string(static_cast<int>(fate)));
        StartServerThatOnce(fate);
        auto transport = Connect(ThroughTheNetwork());
        if (!is_first) {
          ASSERT_TRUE(transport->Send({.target = "/"}, {}));
        }

        const Result<HttpResponse> got = transport->Send(Once(method), {});

        ASSERT_FALSE(got);
        EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
        EXPECT_EQ(got.error().reason(), kConnectionLost);
        EXPECT_EQ(seen().size(), 1U);
        EXPECT_TRUE(transport->Send({.target = "/"}, {}));
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
