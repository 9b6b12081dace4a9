// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_measurements.h"

#include <gtest/gtest.h>

#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace grus {
namespace {

using namespace std::chrono_literals;

constexpr char kPod[] = "/api/v1/namespaces/team-a/pods/p";

class TrialMeasurementsTest : public ::testing::Test {
 protected:
  // Begins to follow the log; the pod is read first, and `pod` is the answer.
  void Follow(kube::Result<kube::HttpResponse> pod) {
    server_.Handle("GET", kPod, [pod](const kube::HttpRequest&, const std::stop_token&) { return pod; });
    MeasureTarget target;
    target.trial = "t";
    target.pod = {"team-a", "p"};
    target.pod_uid = "u";
    target.container = "train";
    measured_.Measure(kJob, {target});
    Settle();
  }
  void Advance(kube::Duration time) {
    clock_.Advance(time);
    Settle();
  }
  void Settle() { ASSERT_TRUE(clock_.AwaitWaiters(1)); }  // The follower's thread.
  bool IsLogAwaited() const { return measured_.IsLogAwaited(kJob, "t"); }

  const kube::ObjectKey kJob{"team-a", "tune"};
  kube::testing::FakeClock clock_;
  kube::testing::FakeTransport server_{clock_};
  kube::Client client_{server_, nullptr, clock_};
  TrialMeasurements measured_{client_, clock_, [](const kube::ObjectKey&) {}};
};

TEST_F(TrialMeasurementsTest, OfALogThatIsQuietMoreIsAwaitedForHalfAMinute) {
  server_.ExpectStream(std::string(kPod) + "/log");
  Follow(kube::testing::JsonAnswer(200, R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"team-a",
      "uid":"u","resourceVersion":"1"},"status":{"phase":"Running"}})"));
  Advance(29s);
  EXPECT_TRUE(IsLogAwaited());
  Advance(1s);
  EXPECT_FALSE(IsLogAwaited());
}

// The API server was away, and the trial has ended meanwhile: only the log knows its speed.
TEST_F(TrialMeasurementsTest, ALogThatCannotBeReadIsAwaitedUntilItsFollowerHasTriedAgain) {
  Follow(kube::Error(kube::ErrorCode::kUnavailable, "connection refused"));
  Advance(30s);
  EXPECT_TRUE(IsLogAwaited());
  Advance(59s);
  EXPECT_TRUE(IsLogAwaited());
  Advance(1s);
  EXPECT_FALSE(IsLogAwaited()) << "not forever";
}

}  // namespace
}  // namespace grus
