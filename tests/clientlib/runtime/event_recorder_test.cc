// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/event_recorder.h"

#include <gmock/gmock.h>

#include <future>

#include "clientlib/model/core_v1.h"
#include "clientlib/runtime/event_limiter.h"
#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::FakeClock;
using testing::FakeTransport;
using ::testing::HasSubstr;
using testing::JsonAnswer;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using testing::StatusAnswer;

constexpr char kEvents[] = "/apis/events.k8s.io/v1/namespaces/team-a/events";

ObjectMeta Bert() {
  ObjectMeta metadata;
  metadata.name = "bert";
  metadata.ns = "team-a";
  metadata.uid = "u-1";
  metadata.resource_version = "7";
  return metadata;
}

HttpResponse Echo(const HttpRequest& request) { return JsonAnswer(201, request.body); }

class EventRecorderTest : public ::testing::Test {
 protected:
  EventRecorderTest() {
    transport_.Handle("POST", "/apis/events.k8s.io/v1/", [](const HttpRequest& r, auto&) { return Echo(r); });
    transport_.Handle("PATCH", "/apis/events.k8s.io/v1/", [](auto&, auto&) { return JsonAnswer(200, kAnyEvent); });
  }

  void Start(std::size_t queue_limit = 1000) {
    recorder_.emplace(client_, clock_, log_, EventRecorderOptions{"example.com/manager", "manager-0", queue_limit},
                      &metrics_);
  }
  void Record(std::string_view note = "8 workers", std::string_view reason = "Scaled") {
    recorder_->Record(EventType::kNormal, KindOf<Pod>(), Bert(), reason, "ScaleWorkers", note);
  }
  // Until the recorder has nothing to do at this time.
  [[nodiscard]] bool AwaitIdle() { return clock_.AwaitWaiters(1); }

  Json Body(std::size_t request) {
    Result<Json> body = ParseJson(transport_.requests().at(request).body);
    return body ? *body : Json();
  }
  std::vector<std::string> Methods() {
    std::vector<std::string> out;
    for (const HttpRequest& request : transport_.requests()) out.push_back(request.method);
    return out;
  }
  std::uint64_t Dropped(const std::string& reason) {
    return metrics_
        .GetCounter("event_recorder_dropped_total", "Events that were recorded but not written.", {"reason"}, {reason})
        .value();
  }

  static constexpr char kAnyEvent[] = R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"x"}})";
  FakeClock clock_;
  FakeTransport transport_{clock_};
  Client client_{transport_, nullptr, clock_};
  Log log_{LogLevel::kOff};
  Registry metrics_;
  std::optional<EventRecorder> recorder_;
};

TEST_F(EventRecorderTest, WritesAnEventTheApiServerAccepts) {
  Start();
  Record();
  ASSERT_TRUE(AwaitIdle());

  ASSERT_EQ(transport_.requests().size(), 1u);
  EXPECT_THAT(transport_.requests()[0].target, StartsWith(kEvents));
  const Json body = Body(0);
  EXPECT_THAT(*body.At({"metadata", "name"})->AsString(), MatchesRegex("bert\\.[0-9a-f]+"));
  const Json want = Json::MakeObject(
      {{"apiVersion", "events.k8s.io/v1"},
       {"kind", "Event"},
       {"metadata", Json::MakeObject({{"name", *body.At({"metadata", "name"})}, {"namespace", "team-a"}})},
       {"eventTime", "2026-01-02T03:04:05.000000Z"},
       {"reportingController", "example.com/manager"},
       {"reportingInstance", "manager-0"},
       {"type", "Normal"},
       {"reason", "Scaled"},
       {"action", "ScaleWorkers"},
       {"note", "8 workers"},
       {"regarding", Json::MakeObject({{"apiVersion", "v1"},
                                       {"kind", "Pod"},
                                       {"namespace", "team-a"},
                                       {"name", "bert"},
                                       {"uid", "u-1"},
                                       {"resourceVersion", "7"}})}});
  EXPECT_EQ(body, want) << ToText(body);
}

TEST_F(EventRecorderTest, V2AnEventAboutAClusterScopedObjectIsInDefault) {
  Start();
  ObjectMeta metadata;
  metadata.name = "system:node:A";
  recorder_->Record(EventType::kWarning, KindOf<Node>(), metadata, "Lost", "Watch", "gone");
  ASSERT_TRUE(AwaitIdle());

  EXPECT_THAT(transport_.requests()[0].target, StartsWith("/apis/events.k8s.io/v1/namespaces/default/events"));
  const Json body = Body(0);
  EXPECT_THAT(*body.At({"metadata", "name"})->AsString(), StartsWith("system-node-a."));
  EXPECT_EQ(body.At({"regarding", "namespace"}), nullptr);
  EXPECT_EQ(*body.At({"type"}), Json("Warning"));
}

TEST_F(EventRecorderTest, V2CutsWhatIsTooLong) {
  Start();
  ObjectMeta metadata = Bert();
  metadata.name = std::string(239, 'n') + "-" + std::string(13, 'n');
  recorder_->Record(EventType::kNormal, KindOf<Pod>(), metadata, std::string(200, 'R'), std::string(200, 'A'),
                    std::string(1023, 'x') + "\u00e4");
  ASSERT_TRUE(AwaitIdle());

  const Json body = Body(0);
  EXPECT_EQ(body.Find("reason")->AsString()->size(), 128u);
  EXPECT_EQ(body.Find("action")->AsString()->size(), 128u);
  EXPECT_EQ(*body.Find("note"), Json(std::string(1023, 'x')));  // No half of a character.
  const std::string& name = *body.At({"metadata", "name"})->AsString();
  EXPECT_LE(name.size(), 253u);
  EXPECT_THAT(name, MatchesRegex("n+\\.[0-9a-f]+"));
}

TEST_F(EventRecorderTest, V1TheFirstRepetitionMakesASeriesAtOnceAndLaterOnesWithinAMinute) {
  Start();
  Record();
  clock_.Advance(1s);
  Record();
  ASSERT_TRUE(AwaitIdle());
  ASSERT_EQ(Methods(), (std::vector<std::string>{"POST", "PATCH"}));
  const std::string name = *Body(0).At({"metadata", "name"})->AsString();
  EXPECT_THAT(transport_.requests()[1].target, StartsWith(std::string(kEvents) + "/" + name + "?"));
  EXPECT_EQ(transport_.requests()[1].body,
            R"({"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.000000Z"}})");

  for (int i = 0; i < 3; ++i) {
    clock_.Advance(1s);
    Record();
    ASSERT_TRUE(AwaitIdle());
  }
  EXPECT_EQ(Methods().size(), 2u);
  clock_.Advance(1min);
  ASSERT_TRUE(AwaitIdle());

  ASSERT_EQ(Methods().size(), 3u);
  EXPECT_EQ(transport_.requests()[2].body,
            R"({"series":{"count":5,"lastObservedTime":"2026-01-02T03:04:09.000000Z"}})");
}

TEST_F(EventRecorderTest, V1EventsThatDifferAreNoSeries) {
  Start();
  Record("8 workers", "Scaled");
  Record("7 workers", "Scaled");
  Record("8 workers", "Restarted");
  recorder_->Record(EventType::kWarning, KindOf<Pod>(), Bert(), "Scaled", "ScaleWorkers", "8 workers");
  recorder_->Record(EventType::kNormal, KindOf<Pod>(), Bert(), "Scaled", "Other", "8 workers");
  recorder_->Record(EventType::kNormal, KindOf<Node>(), Bert(), "Scaled", "ScaleWorkers", "8 workers");
  ASSERT_TRUE(AwaitIdle());
  EXPECT_EQ(Methods(), std::vector<std::string>(6, "POST"));
}

TEST_F(EventRecorderTest, V1ASeriesEndsAfterSixMinutesOfSilence) {
  Start();
  Record();
  ASSERT_TRUE(AwaitIdle());
  clock_.Advance(6min - 1ns);
  Record();
  ASSERT_TRUE(AwaitIdle());
  clock_.Advance(6min);
  Record();
  ASSERT_TRUE(AwaitIdle());

  EXPECT_EQ(Methods(), (std::vector<std::string>{"POST", "PATCH", "POST"}));
  EXPECT_NE(*Body(0).At({"metadata", "name"}), *Body(2).At({"metadata", "name"}));
}

TEST_F(EventRecorderTest, V1ASeriesWhoseEventIsGoneIsCreatedAgainWithItsCount) {
  Start();
  transport_.Expect("PATCH", kEvents, StatusAnswer(404, "NotFound", "gone"));
  Record();
  Record();
  Record();
  ASSERT_TRUE(AwaitIdle());
  clock_.Advance(1min);
  ASSERT_TRUE(AwaitIdle());

  EXPECT_EQ(Methods(), (std::vector<std::string>{"POST", "PATCH", "POST", "PATCH"}));
  EXPECT_EQ(*Body(2).At({"series", "count"}), Json(2));
  EXPECT_EQ(*Body(3).At({"series", "count"}), Json(3));
  EXPECT_THAT(transport_.requests()[3].target, HasSubstr(*Body(2).At({"metadata", "name"})->AsString()));
}

TEST_F(EventRecorderTest, V1TriesAgainWhileTheServerCannotBeReached) {
  Start();
  transport_.Expect("POST", kEvents, Error(ErrorCode::kUnavailable, "connection refused"));
  transport_.Expect("POST", kEvents, StatusAnswer(503, "ServiceUnavailable", "no"));
  // What came through although its answer was lost.
  transport_.Expect("POST", kEvents, StatusAnswer(409, "AlreadyExists", "exists"));
  Record();
  for (std::size_t tries = 1; tries < 3; ++tries) {
    ASSERT_TRUE(AwaitIdle());
    EXPECT_EQ(transport_.requests().size(), tries);
    clock_.Advance(13s);  // The longest wait with its jitter.
  }
  ASSERT_TRUE(AwaitIdle());

  EXPECT_EQ(Methods(), std::vector<std::string>(3, "POST"));
  EXPECT_EQ(Body(0), Body(2));  // The same name, so that it cannot be there twice.
  EXPECT_EQ(Dropped("write_failed"), 0u);
}

TEST_F(EventRecorderTest, V1GivesUpAfterTwelveTries) {
  Start();
  for (int i = 0; i < 12; ++i) transport_.Expect("POST", kEvents, Error(ErrorCode::kTimeout, "no answer"));
  Record();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(AwaitIdle());
    clock_.Advance(13s);
  }
  ASSERT_TRUE(AwaitIdle());

  EXPECT_EQ(Methods().size(), 12u);
  EXPECT_EQ(Dropped("write_failed"), 1u);
}

TEST_F(EventRecorderTest, DropsWhatTheServerRefusesWithoutATryMore) {
  Start();
  transport_.Expect("POST", kEvents, StatusAnswer(403, "Forbidden", "no"));
  Record();
  Record();  // Not a repetition: the first was never written.
  ASSERT_TRUE(AwaitIdle());

  EXPECT_EQ(Methods(), std::vector<std::string>(2, "POST"));
  EXPECT_EQ(Dropped("write_failed"), 1u);
}

TEST_F(EventRecorderTest, V1NeverBlocksAndCountsWhatItDrops) {
  Start(2);
  transport_.ExpectHang("POST", kEvents);
  Record("0");
  ASSERT_TRUE(transport_.AwaitRequests(1));
  ASSERT_TRUE(AwaitIdle());  // It hangs.

  for (const char* note : {"1", "2", "3", "4"}) Record(note);

  EXPECT_EQ(Dropped("queue_full"), 2u);
  clock_.Advance(30s);  // The hanging request's timeout.
  ASSERT_TRUE(AwaitIdle());
  clock_.Advance(13s);
  ASSERT_TRUE(AwaitIdle());
  EXPECT_EQ(Methods().size(), 4u);  // "0" twice, "1", "2".
}

TEST_F(EventRecorderTest, ItsEndWritesWhatIsQueuedAndCounted) {
  Start();
  for (int i = 0; i < 4; ++i) Record();
  recorder_.reset();

  ASSERT_EQ(Methods(), (std::vector<std::string>{"POST", "PATCH", "PATCH"}));
  EXPECT_EQ(*Body(2).At({"series", "count"}), Json(4));
}

TEST_F(EventRecorderTest, ItsEndWaitsNoLongerThanTwoSeconds) {
  Start();
  transport_.ExpectHang("POST", kEvents);
  Record("0");
  Record("1");
  ASSERT_TRUE(transport_.AwaitRequests(1));
  std::future<void> end = std::async(std::launch::async, [&] { recorder_.reset(); });
  ASSERT_TRUE(clock_.AwaitWaiters(2));  // The hanging request and the end.

  clock_.Advance(2s);

  ASSERT_EQ(end.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(Methods().size(), 1u);
  EXPECT_EQ(Dropped("write_failed"), 2u);
}

TEST_F(EventRecorderTest, V2ANamespaceWithTooManyEventsDoesNotKeepOthersFromTheirs) {
  Start(10000);
  const auto record_about = [this](const std::string& ns, const std::string& name) {
    ObjectMeta pod = Bert();
    pod.ns = ns;
    pod.name = name;
    recorder_->Record(EventType::kNormal, KindOf<Pod>(), pod, "Scaled", "ScaleWorkers", "8 workers");
  };
  constexpr int kBurst = EventLimiter::kOfNamespace.burst;
  for (int i = 0; i < kBurst + 10; ++i) {
    record_about("flood", std::to_string(i));
    if (i % 64 > 0) continue;
    ASSERT_TRUE(AwaitIdle());
  }
  record_about("quiet", "bert");
  ASSERT_TRUE(AwaitIdle());

  EXPECT_EQ(Methods().size(), kBurst + 1U);
  EXPECT_EQ(Dropped("namespace_limit"), 10U);
}

TEST_F(EventRecorderTest, V2ForgetsTheLeastRecentOfTooManySeries) {
  Start(10000);
  const auto record_about = [this](std::string name) {
    ObjectMeta pod = Bert();
    pod.ns = "team-" + name.substr(name.size() - 1);  // None has as many as it may.
    pod.name = std::move(name);
    recorder_->Record(EventType::kNormal, KindOf<Pod>(), pod, "Scaled", "ScaleWorkers", "8 workers");
  };
  record_about("first");
  for (int i = 0; i < 4096; ++i) {
    record_about(std::to_string(i));
    if (i % 64 > 0) continue;
    ASSERT_TRUE(AwaitIdle());  // For all at once ThreadSanitizer takes longer than any single wait may.
  }
  record_about("first");  // Forgotten: a new event.
  record_about("4095");   // Remembered: a series.
  ASSERT_TRUE(AwaitIdle());

  const std::vector<std::string> methods = Methods();
  ASSERT_EQ(methods.size(), 4099u);
  EXPECT_EQ(methods[4097], "POST");
  EXPECT_EQ(methods[4098], "PATCH");
}

}  // namespace
}  // namespace kube
