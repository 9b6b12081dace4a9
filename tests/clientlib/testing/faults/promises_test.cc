// SPDX-License-Identifier: Apache-2.0
// The books that the network keeps: breaches of promises, takeovers, counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/clientlib/testing/faults/net.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NetworkBooks, ARequestBeforeItsRetryAfterIsABreach) {
  struct Case {
    const char* rule;
    Duration wait;
    HttpRequest next;
    bool is_breach;
  };
  for (const Case& c : {Case{"at once", 0s, Post("a"), true}, Case{"a second too early", 6s, Post("a"), true},
                        Case{"in time", 7s, Post("a"), false}, Case{"another object", 0s, Post("b"), false},
                        Case{"another verb", 0s, Get("a"), false}}) {
    Net net("busy-retry-after@0");
    net.Play([&](Transport& line) {
      const auto answer = line.Send(Post("a"), {});
      ASSERT_EQ(What(answer), "429");
      EXPECT_EQ(answer->Header("retry-after"), "7");
      net.Wait(c.wait);
      (void)line.Send(c.next, {});
    });
    EXPECT_EQ(!net.network.breaches().empty(), c.is_breach) << c.rule;
    for (const std::string& breach : net.network.breaches()) EXPECT_THAT(breach, HasSubstr("Retry-After")) << c.rule;
  }
}

TEST(NetworkBooks, AWatchOrAReadBeforeItsRetryAfterIsABreach) {
  Net net("open-busy@0 read-busy@0");
  net.Make("a");
  net.Play([&](Transport& line) {
    for (int i = 0; i < 2; ++i) (void)line.Open({.target = std::string(kMaps) + "?watch=1"}, {});
    for (int i = 0; i < 2; ++i) (void)line.Send(Get("a"), {});
  });
  EXPECT_EQ(net.network.breaches().size(), 2U);
}

TEST(NetworkBooks, WatchesOfOneKindWithOtherSelectorsWaitForThemselves) {
  for (const auto& [selector, breaches] : {std::pair("a", 1U), std::pair("b", 0U)}) {
    Net net("open-busy@0");
    net.Play([&, selector = selector](Transport& line) {
      (void)line.Open({.target = std::string(kMaps) + "?watch=1&labelSelector=a&resourceVersion=1"}, {});
      (void)line.Open({.target = std::string(kMaps) + "?watch=1&labelSelector=" + selector}, {});
    });
    EXPECT_EQ(net.network.breaches().size(), breaches) << selector;
  }
}

TEST(NetworkBooks, AProcessStartedAnewKnowsOfNoRetryAfter) {
  Net net("busy-retry-after@0");
  for (int start = 0; start < 2; ++start) net.Play([&](Transport& line) { (void)line.Send(Post("a"), {}); });
  EXPECT_THAT(net.network.breaches(), IsEmpty());
}

TEST(NetworkBooks, AWriteWithoutALeaseThatLastsIsABreach) {
  struct Case {
    const char* rule;
    std::string identity;
    std::vector<HttpRequest> before;
    Duration wait;
    bool is_breach;
  };
  const HttpRequest event{.method = "POST", .target = "/api/v1/namespaces/default/events", .body = "{}"};
  for (const Case& c : {
           Case{"who holds none by design may write", "", {}, 0s, false},
           Case{"who should hold one and does not may not", "me", {}, 0s, true},
           Case{"who has just got one may", "me", {PostLease("l", "me")}, 14s, false},
           Case{"who has not renewed it for 15 s may not", "me", {PostLease("l", "me")}, 16s, true},
           Case{"who failed to get it may not", "me", {PostLease("l", "me"), PostLease("l", "me")}, 16s, true},
           Case{"who gave it back may not", "me", {PostLease("l", "me"), PatchLease("l", "")}, 0s, true},
           Case{"whose lease is another one's may not", "me", {PostLease("l", "you")}, 0s, true},
       }) {
    Net net;
    net.Play(
        [&](Transport& line) {
          for (const HttpRequest& request : c.before) (void)line.Send(request, {});
          net.Wait(c.wait);
          (void)line.Send(event, {});  // Events may always be written.
          EXPECT_THAT(net.network.breaches(), IsEmpty()) << c.rule;
          (void)line.Send(Post("a"), {});
        },
        c.identity);
    EXPECT_EQ(net.network.breaches().size(), c.is_breach ? 1U : 0U) << c.rule;
    for (const std::string& breach : net.network.breaches()) {
      EXPECT_THAT(breach, HasSubstr("a write after the lease of me had run out"));
    }
  }
}

TEST(NetworkBooks, ATakeoverTakesFromTheLeadersSuddenEndToTheNextLeaseUnlessItWasGivenBack) {
  for (const bool is_given_back : {false, true}) {
    Net net(is_given_back ? "crash-before@0" : "leader-crash@1");
    net.Play(
        [&](Transport& line) {
          (void)line.Send(PostLease("l", "one"), {});
          net.Wait(2s);
          (void)line.Send(PatchLease("l", is_given_back ? "" : "one"), {});
          if (is_given_back) (void)line.Send(Post("a"), {});
        },
        "one", 0);
    EXPECT_EQ(net.network.longest_takeover(), 0s);
    net.Play(
        [&](Transport& line) {
          net.Wait(13s);
          (void)line.Send(PatchLease("l", "two"), {});
        },
        "two", 1);
    EXPECT_GE(net.network.longest_takeover(), is_given_back ? 0s : 13s);
    EXPECT_LE(net.network.longest_takeover(), is_given_back ? 0s : 14s);
  }
}

TEST(NetworkBooks, CountsEachPointAndWritesButForLeases) {
  Net net;
  net.Play([&](Transport& line) {
    (void)line.Send(Post("a"), {});
    (void)line.Send(PostLease("l", "me"), {});
    (void)line.Send({.method = "POST", .target = std::string(kMaps) + "?dryRun=All", .body = Post("b").body}, {});
    (void)line.Send({.method = "POST", .target = "/api/v1/namespaces/default/events", .body = "{}"}, {});
    for (int i = 0; i < 2; ++i) (void)line.Send(Get("a"), {});
    (void)line.Open({.target = std::string(kMaps) + "?watch=1"}, {});
  });
  EXPECT_EQ(net.network.count(FaultPoint::kWrite), 2) << "events do not count: nobody waits for them";
  EXPECT_EQ(net.network.count(FaultPoint::kRead), 2);
  EXPECT_EQ(net.network.count(FaultPoint::kOpen), 1);
  EXPECT_EQ(net.network.count(FaultPoint::kRenewal), 1);
  EXPECT_EQ(net.network.writes(), 2) << "all that reached the server, but for leases and dry runs";
}

}  // namespace
}  // namespace kube::testing
