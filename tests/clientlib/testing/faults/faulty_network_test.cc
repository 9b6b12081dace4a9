// SPDX-License-Identifier: Apache-2.0
// Each fault does what its line in fault.cc says.
#include "clientlib/testing/faults/faulty_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/clientlib/testing/faults/net.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// The lines of a watch until `until`, or its end; then how it ended: "end", "silence" or "broken".
std::vector<std::string> ReadAll(const Net& net, ByteStream& stream, Duration time) {
  const TimePoint until = net.simulation.Now() + time;
  std::string text, ended;
  while (ended.empty()) {
    const Result<std::string> read = stream.Read(until, {});
    if (!read) ended = read.error().code() == ErrorCode::kTimeout ? "silence" : "broken";
    else if (read->empty()) ended = "end";
    else text += *read;
  }
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(end == std::string::npos ? "half " + text.substr(at) : text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  for (std::string& line : lines) {  // Shortened to "ADDED a".
    const Result<Json> event = ParseJson(line);
    const Json* type = event ? event->Find("type") : nullptr;
    if (type == nullptr) continue;
    const Json *name = event->At({"object", "metadata", "name"}), *code = event->At({"object", "code"});
    line = *type->AsString() + (name ? " " + *name->AsString() : "") + (code ? " " + ToText(*code) : "");
  }
  lines.push_back(ended);
  return lines;
}

// What a watch from the start shows of `a` and `b`, made one after the other, within `time`.
std::vector<std::string> Watched(Net& net, Duration time) {
  std::vector<std::string> lines;
  net.Play([&](Transport& line) {
    auto opened = line.Open({.target = std::string(kMaps) + "?watch=1&resourceVersion=1"}, {});
    ASSERT_EQ(What(opened), "200");
    net.Make("a");
    net.Make("b");
    lines = ReadAll(net, *opened->stream, time);
  });
  return lines;
}

std::set<std::string_view> FaultsAt(FaultPoint point) {
  std::set<std::string_view> names;
  for (const FaultKind& kind : AllFaultKinds()) {
    if (kind.point == point) names.insert(kind.name);
  }
  return names;
}

TEST(FaultyNetwork, WithoutFaultsCarriesAllThrough) {
  Net net;
  net.Play([&](Transport& line) {
    const TimePoint sent = net.simulation.Now();
    EXPECT_EQ(What(line.Send(Post("x"), {})), "201");
    EXPECT_GT(net.Since(sent), 0s) << "it takes a little time";
    EXPECT_LT(net.Since(sent), kSoon);
    EXPECT_EQ(What(line.Send(Get("x"), {})), "200");
  });
  EXPECT_THAT(Watched(net, kSoon).back(), "silence");
  EXPECT_THAT(net.network.breaches(), IsEmpty());
  EXPECT_THAT(net.crashed, IsEmpty());
}

TEST(FaultyNetwork, EachFaultOfAWriteDoesWhatItsLineSays) {
  struct Case {
    std::string_view fault;
    bool is_written;     // Whether the server carried it out.
    std::string answer;  // What the client got.
  };
  const std::string unavailable = Code(ErrorCode::kUnavailable), dead = Code(ErrorCode::kCancelled);
  const std::vector<Case> cases = {
      {"crash-before", false, dead},
      {"crash-after", true, dead},
      {"reply-lost", true, unavailable},
      {"reply-garbage", true, "200"},
      {"reply-slow", true, Code(ErrorCode::kTimeout)},
      {"reply-truncated", true, "201"},
      {"refused", false, unavailable},
      {"conflict", false, "409"},
      {"busy", false, "429"},
      {"busy-retry-after", false, "429"},
      {"error-500", false, "500"},
      {"error-503", false, "503"},
      {"error-504", false, "504"},
      {"forbidden", false, "403"},
      {"invalid", false, "422"},
      {"child-deleted", true, "201"},
      {"child-labels-lost", true, "201"},
      {"child-edited", true, "201"},
      {"server-restart", true, "201"},
      {"server-lags", true, "201"},
      {"process-frozen", true, "201"},
      {"clock-forward", true, "201"},
      {"clock-back", true, "201"},
  };
  std::set<std::string_view> all = FaultsAt(FaultPoint::kWrite);
  for (const Case& c : cases) {
    all.erase(c.fault);
    Net net(std::string(c.fault) + "@1");
    net.Play([&](Transport& line) {
      EXPECT_EQ(What(line.Send(Post("first"), {})), "201") << c.fault << " is not due yet";
      EXPECT_EQ(What(line.Send(Post("second"), {})), c.answer) << c.fault;
    });
    EXPECT_EQ(net.Has("second"), c.is_written) << c.fault;
    const bool is_crash = c.fault.starts_with("crash-");
    EXPECT_EQ(net.crashed, is_crash ? std::vector<int>{0} : std::vector<int>{}) << c.fault;
    const bool is_tampering = c.fault.starts_with("child-");
    EXPECT_EQ(net.tampered, is_tampering ? std::vector<std::string>{std::string(c.fault)} : std::vector<std::string>{});
    EXPECT_TRUE(net.network.all_faults_happened()) << c.fault;
    EXPECT_THAT(net.network.breaches(), IsEmpty()) << c.fault;
  }
  EXPECT_THAT(all, IsEmpty()) << "faults without a test";
}

TEST(FaultyNetwork, EachFaultOfAReadDoesWhatItsLineSays) {
  struct Case {
    std::string_view fault;
    std::string answer;
    std::string_view body, retry_after = "";
  };
  const std::string unavailable = Code(ErrorCode::kUnavailable);
  const std::vector<Case> cases = {
      {"read-refused", unavailable, ""}, {"read-lost", unavailable, ""},   {"read-busy", "429", "{", "7"},
      {"read-503", "503", "{"},          {"read-504", "504", "{"},         {"read-garbage", "200", "<html>"},
      {"read-truncated", "200", "{"},    {"read-deep", "200", "[[[[[[[["},
  };
  std::set<std::string_view> all = FaultsAt(FaultPoint::kRead);
  for (const Case& c : cases) {
    all.erase(c.fault);
    Net net(std::string(c.fault) + "@1");
    net.Make("a");
    net.Play([&](Transport& line) {
      const auto good = line.Send(Get("a"), {});
      ASSERT_EQ(What(good), "200") << c.fault << " is not due yet";
      const auto bad = line.Send(Get("a"), {});
      EXPECT_EQ(What(bad), c.answer) << c.fault;
      if (!bad) return;
      EXPECT_THAT(bad->body, StartsWith(std::string(c.body))) << c.fault;
      EXPECT_EQ(bad->Header("retry-after"), c.retry_after) << c.fault;
      EXPECT_NE(c.answer == "200", static_cast<bool>(ParseJson(bad->body))) << c.fault << ": only errors can be read";
    });
    EXPECT_TRUE(net.network.all_faults_happened()) << c.fault;
  }
  EXPECT_THAT(all, IsEmpty()) << "faults without a test";
}

TEST(FaultyNetwork, EachFaultOfAnOpenDoesWhatItsLineSays) {
  struct Case {
    std::string_view fault;
    std::string answer;
    std::string query = "";
  };
  const std::vector<Case> cases = {
      {"open-refused", Code(ErrorCode::kUnavailable)},
      {"open-busy", "429"},
      {"open-503", "503"},
      {"open-gone", "410"},
      {"open-no-watch-list", "422",
       "&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"},
      {"open-no-watch-list", "200"},  // A plain watch it knows.
      {"open-html", "200"},
  };
  std::set<std::string_view> all = FaultsAt(FaultPoint::kOpen);
  for (const Case& c : cases) {
    all.erase(c.fault);
    Net net(std::string(c.fault) + "@0");
    net.Play([&](Transport& line) {
      auto opened = line.Open({.target = std::string(kMaps) + "?watch=1" + c.query}, {});
      EXPECT_EQ(What(opened), c.answer) << c.fault;
      if (c.fault == "open-html" && opened && opened->stream) {
        EXPECT_THAT(*opened->stream->Read(TimePoint::max(), {}), StartsWith("<html>"));
      }
      const auto again = line.Open({.target = std::string(kMaps) + "?watch=1"}, {});
      EXPECT_EQ(What(again), "200") << c.fault << " happens once";
    });
  }
  EXPECT_THAT(all, IsEmpty()) << "faults without a test";
}

TEST(FaultyNetwork, EachFaultOfAWatchDoesWhatItsLineSays) {
  struct Case {
    std::string_view fault;
    std::vector<std::string> seen;        // Within a second.
    std::vector<std::string> later = {};  // Within ten minutes, if that is more.
  };
  const std::vector<std::string> both = {"ADDED a", "ADDED b", "silence"};
  const std::vector<Case> cases = {
      {"watch-closed", {"ADDED a", "ADDED b", "end"}},
      {"watch-silent", {"ADDED a", "ADDED b", "silence"}},
      {"watch-gone", {"ADDED a", "ERROR 410", "end"}},
      {"watch-error", {"ADDED a", "ERROR 500", "end"}},
      {"watch-garbage", {"ADDED a", "<html>{\"type\":", "ADDED b", "silence"}},
      {"watch-unknown", {"ADDED a", "RENAMED", "ADDED b", "silence"}},
      {"watch-late", {"ADDED a", "silence"}, both},
      {"watch-hidden", {"ADDED a", "silence"}, both},
      {"watch-twice", {"ADDED a", "ADDED b", "ADDED b", "silence"}},
      {"watch-drip", both},
  };
  std::set<std::string_view> all = FaultsAt(FaultPoint::kEvent);
  all.erase("watch-cut");  // Below.
  for (const Case& c : cases) {
    all.erase(c.fault);
    Net soon(std::string(c.fault) + "@1");
    EXPECT_EQ(Watched(soon, kSoon), c.seen) << c.fault;
    if (c.later.empty()) continue;
    Net later(std::string(c.fault) + "@1");
    std::vector<std::string> seen = Watched(later, 10min);
    std::erase_if(seen, [](const std::string& line) { return line.starts_with("BOOKMARK"); });
    EXPECT_EQ(seen, c.later) << c.fault;
  }
  EXPECT_THAT(all, IsEmpty()) << "faults without a test";
}

TEST(FaultyNetwork, ACutWatchBreaksWithinTheEvent) {
  Net net("watch-cut@1");
  const std::vector<std::string> seen = Watched(net, kSoon);
  EXPECT_EQ(seen.front(), "ADDED a");
  EXPECT_EQ(seen.back(), "broken");
  EXPECT_LE(seen.size(), 3U);
  if (seen.size() == 3) {
    EXPECT_THAT(seen[1], StartsWith("half "));
  }
}

TEST(FaultyNetwork, ADrippingWatchGivesByteByByte) {
  Net net("watch-drip@0");
  net.Play([&](Transport& line) {
    auto opened = line.Open({.target = std::string(kMaps) + "?watch=1&resourceVersion=1"}, {});
    net.Make("a");
    for (int i = 0; i < 50; ++i) EXPECT_EQ(opened->stream->Read(net.simulation.Now() + kSoon, {})->size(), 1U);
  });
}

TEST(FaultyNetwork, LateMeans20SecondsHiddenFiveMinutesLaggingAllWatchesFor40Seconds) {
  struct Case {
    std::string faults;
    Duration least, most;
  };
  for (const Case& c : {Case{"", 0s, kSoon}, Case{"watch-late@0", 20s, 21s}, Case{"watch-hidden@0", 5min, 301s},
                        Case{"server-lags@0", 40s, 41s}}) {
    Net net(c.faults);
    net.Play([&](Transport& line) {
      auto opened = line.Open({.target = std::string(kMaps) + "?watch=1&resourceVersion=1"}, {});
      const TimePoint sent = net.simulation.Now();
      ASSERT_EQ(What(line.Send(Post("a"), {})), "201");
      ASSERT_TRUE(opened->stream->Read(sent + 10min, {}));
      EXPECT_GE(net.Since(sent), c.least) << c.faults;
      EXPECT_LE(net.Since(sent), c.most) << c.faults;
    });
  }
}

TEST(FaultyNetwork, AnUnreadableAnswerIsNoJson) {
  for (const char* fault : {"reply-garbage@0", "reply-truncated@0"}) {
    Net net(fault);
    net.Play([&](Transport& line) {
      const auto answer = line.Send(Post("a"), {});
      ASSERT_TRUE(answer);
      EXPECT_FALSE(ParseJson(answer->body)) << fault;
      EXPECT_FALSE(answer->body.empty()) << fault;
    });
  }
}

TEST(FaultyNetwork, ALostReplySaysThatTheWriteMayBeCarriedOut) {
  for (const auto& [fault, reason] :
       {std::pair("reply-lost@0", kConnectionLost), std::pair("refused@0", std::string_view())}) {
    Net net(fault);
    net.Play([&, reason = reason](Transport& line) { EXPECT_EQ(line.Send(Post("a"), {}).error().reason(), reason); });
  }
}

TEST(FaultyNetwork, ASlowReplyTakesTheClientsPatience) {
  Net net("reply-slow@0");
  net.Play([&](Transport& line) {
    HttpRequest request = Post("a");
    request.timeout = 17s;
    const TimePoint sent = net.simulation.Now();
    EXPECT_EQ(What(line.Send(request, {})), Code(ErrorCode::kTimeout));
    EXPECT_GE(net.Since(sent), 17s);
    EXPECT_LT(net.Since(sent), 18s);
  });
}

TEST(FaultyNetwork, WhatADeadProcessSendsReachesNobody) {
  for (const char* fault : {"crash-before@0", "crash-after@0"}) {
    Net net(fault);
    net.Play([&](Transport& line) {
      auto watch = line.Open({.target = std::string(kMaps) + "?watch=1&resourceVersion=1"}, {});
      ASSERT_TRUE(watch);
      (void)line.Send(Post("a"), {});
      EXPECT_EQ(What(line.Send(Post("b"), {})), Code(ErrorCode::kCancelled));
      EXPECT_EQ(What(line.Send(Get("b"), {})), Code(ErrorCode::kCancelled));
      EXPECT_EQ(What(line.Open({.target = kMaps}, {})), Code(ErrorCode::kCancelled));
      EXPECT_FALSE(watch->stream->Read(net.simulation.Now() + kSoon, {})) << "its watches are dead as well";
    });
    EXPECT_FALSE(net.Has("b")) << fault;
    EXPECT_THAT(net.crashed, ElementsAre(0)) << fault << ": told once";
    net.Play([&](Transport& line) { EXPECT_EQ(What(line.Send(Post("b"), {})), "201"); });  // The next start.
  }
}

TEST(FaultyNetwork, ARestartedServerIsAwayFor20SecondsAndForgetsOldEvents) {
  Net net("server-restart@0");
  net.Make("a");
  const std::string old_version = std::to_string(net.server.revision() - 1);
  net.Play([&](Transport& line) {
    auto watch = line.Open({.target = std::string(kMaps) + "?watch=1"}, {});
    ASSERT_EQ(What(line.Send(Post("b"), {})), "201");
    const TimePoint went = net.simulation.Now();
    EXPECT_EQ(ReadAll(net, *watch->stream, kSoon).back(), "broken") << "open watches break";
    EXPECT_EQ(What(line.Send(Get("a"), {})), Code(ErrorCode::kUnavailable));
    EXPECT_EQ(What(line.Open({.target = std::string(kMaps) + "?watch=1"}, {})), Code(ErrorCode::kUnavailable));
    net.Wait(went + 19s - net.simulation.Now());
    EXPECT_EQ(What(line.Send(Post("c"), {})), Code(ErrorCode::kUnavailable));
    net.Wait(went + 20s - net.simulation.Now());
    EXPECT_EQ(What(line.Send(Get("a"), {})), "200");
    auto resumed = line.Open({.target = std::string(kMaps) + "?watch=1&resourceVersion=" + old_version}, {});
    ASSERT_TRUE(resumed);
    const bool is_gone =
        resumed->head.status == 410 || (resumed->stream && ReadAll(net, *resumed->stream, kSoon)[0] == "ERROR 410");
    EXPECT_TRUE(is_gone) << resumed->head.status;
  });
  EXPECT_FALSE(net.Has("c"));
}

TEST(FaultyNetwork, AFrozenProcessStandsStillFor40SecondsOnceItsWriteIsIn) {
  struct Case {
    const char* fault;
    HttpRequest request;
  };
  for (const Case& c : {Case{"process-frozen@0", Post("a")}, Case{"leader-frozen@0", PostLease("a", "me")}}) {
    Net net(c.fault);
    std::optional<TimePoint> answered, other;
    const TimePoint start = net.simulation.Now();
    Thread frozen = net.Start([&](Transport& line) {
      EXPECT_EQ(What(line.Send(c.request, {})), "201");
      answered = net.simulation.Now();
    });
    Thread awake = net.Start(
        [&](Transport& line) {
          (void)line.Send(Get("x"), {});
          other = net.simulation.Now();
        },
        "", 1);
    net.simulation.RunFor(kSoon);
    EXPECT_EQ(net.server.List("configmaps").size() + net.server.List("leases.coordination.k8s.io").size(), 1U);
    frozen.Join();
    awake.Join();
    EXPECT_GE(*answered - start, 40s) << c.fault;
    EXPECT_LE(*answered - start, 41s) << c.fault;
    EXPECT_LE(*other - start, kSoon) << "other processes go on";
  }
}

TEST(FaultyNetwork, AJumpOfTheWallClockIsAnHour) {
  for (const auto& [fault, jump] : {std::pair<const char*, Duration>("clock-forward@0", 1h), {"clock-back@0", -1h}}) {
    Net net(fault);
    const WallTime wall = net.simulation.WallNow();
    const TimePoint start = net.simulation.Now();
    net.Play([&](Transport& line) { (void)line.Send(Post("a"), {}); });
    EXPECT_EQ(net.simulation.WallNow() - wall, std::chrono::duration_cast<WallTime::duration>(net.Since(start) + jump));
  }
}

TEST(FaultyNetwork, EachFaultOfARenewalDoesWhatItsLineSays) {
  struct Case {
    std::string_view fault;
    bool is_written;
    std::string answer;
  };
  const std::string unavailable = Code(ErrorCode::kUnavailable);
  const std::vector<Case> cases = {{"renewal-refused", false, unavailable},
                                   {"renewal-lost", true, unavailable},
                                   {"lease-stolen", true, "200"},
                                   {"leader-frozen", true, "200"},
                                   {"leader-crash", false, Code(ErrorCode::kCancelled)}};
  std::set<std::string_view> all = FaultsAt(FaultPoint::kRenewal);
  for (const Case& c : cases) {
    all.erase(c.fault);
    Net net(std::string(c.fault) + "@1");
    net.Play(
        [&](Transport& line) {
          ASSERT_EQ(What(line.Send(PostLease("l", "me"), {})), "201") << c.fault << " is not due yet";
          EXPECT_EQ(What(line.Send(PatchLease("l", "me2"), {})), c.answer) << c.fault;
        },
        "me");
    const auto lease = net.server.Get("leases.coordination.k8s.io", {"default", "l"});
    EXPECT_EQ(*lease->At({"spec", "holderIdentity"}) == Json("me2"), c.is_written) << c.fault;
    EXPECT_EQ(net.tampered.size(), c.fault == "lease-stolen" ? 1U : 0U) << c.fault;
    EXPECT_EQ(net.crashed.size(), c.fault == "leader-crash" ? 1U : 0U) << c.fault;
  }
  EXPECT_THAT(all, IsEmpty()) << "faults without a test";
}

TEST(FaultyNetwork, RefusedRenewalsAreSoFor30SecondsAndOtherWritesAreNot) {
  Net net("renewal-refused@0");
  net.Play([&](Transport& line) {
    const TimePoint start = net.simulation.Now();
    EXPECT_EQ(What(line.Send(PostLease("l", "me"), {})), Code(ErrorCode::kUnavailable));
    EXPECT_EQ(What(line.Send(Post("a"), {})), "201");
    net.Wait(start + 29s - net.simulation.Now());
    EXPECT_EQ(What(line.Send(PostLease("l", "me"), {})), Code(ErrorCode::kUnavailable));
    EXPECT_EQ(What(line.Send({.target = kLeases}, {})), "200") << "they can be read";
    net.Wait(start + 31s - net.simulation.Now());
    EXPECT_EQ(What(line.Send(PostLease("l", "me"), {})), "201");
  });
}

}  // namespace
}  // namespace kube::testing
