// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/training_output.h"

#include <chrono>

#include "clientlib/testing/fake_transport.h"
#include "tests/controllers/elastic/view_builder.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;

// A launcher that runs since the beginning of the test, and what is asked of its kubelet.
class TrainingOutputTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    kube::Json pod = Named("v1", "Pod", "bert-launcher-x", "team-a");
    pod["spec"] = *kube::ParseJson(R"({"nodeName":"n1","containers":[{"name":"launcher","image":"a"}]})");
    Create("pods", std::move(pod));
    SetStatus("pods", {"team-a", "bert-launcher-x"},
              R"({"phase":"Running","containerStatuses":[{"name":"launcher","state":{"running":{}}}]})");
  }
  void Print() { server_.AppendPodLog({"team-a", "bert-launcher-x"}, "launcher", clock_.WallNow(), "a step\n"); }
  // After that time; `jump` of it went by on the wall clock alone.
  bool IsSilent(kube::Duration time, int limit = 600, kube::Duration jump = {}) {
    clock_.Advance(time);
    View view = ViewBuilder()
                    .LauncherRuns()
                    .Job([&](auto& job) { job.spec.run_policy.progress_deadline_seconds = limit; })
                    .Build();
    view.now = kube::Time{clock_.WallNow() + std::chrono::duration_cast<kube::WallTime::duration>(jump)};
    view.launcher_pods.front().running_since = began_;
    look_again_ = output_.Look(view, {});
    return view.launcher_pods.front().silent_since.has_value();
  }

  const kube::Time began_{clock_.WallNow()};
  TrainingOutput output_{client_, clock_};
  std::optional<kube::Duration> look_again_;
};

TEST_F(TrainingOutputTest, ATrainingIsSilentOnceItHasPrintedNothingForTheLimit) {
  EXPECT_FALSE(IsSilent(0s));
  EXPECT_EQ(look_again_, 600s);
  clock_.Advance(300s);
  Print();
  EXPECT_FALSE(IsSilent(300s));
  EXPECT_EQ(look_again_, 300s);
  EXPECT_TRUE(IsSilent(300s));

  Print();
  EXPECT_FALSE(IsSilent(*look_again_));
}

TEST_F(TrainingOutputTest, OneThatHasNeverPrintedIsSilentSinceItsStart) {
  EXPECT_FALSE(IsSilent(599s));
  EXPECT_TRUE(IsSilent(1s));
}

// What was seen with the old limit may be hours old.
TEST_F(TrainingOutputTest, AShorterLimitIsNotHeldAgainstAnOldLook) {
  constexpr int kDay = 86400;
  clock_.Advance(12h);
  Print();
  EXPECT_FALSE(IsSilent(12h, kDay));
  clock_.Advance(1h);
  Print();
  EXPECT_FALSE(IsSilent(1s));
}

TEST_F(TrainingOutputTest, AnOldLookIsNoSilenceWhenTheWallClockJumps) {
  EXPECT_FALSE(IsSilent(0s));
  clock_.Advance(599s);
  Print();
  EXPECT_FALSE(IsSilent(1s));
  for (const kube::Duration jump : {-1h, 1h}) EXPECT_FALSE(IsSilent(1s, 600, jump));
}

TEST_F(TrainingOutputTest, ANodeWhoseClockIsAheadIsNoSilence) {
  EXPECT_FALSE(IsSilent(0s));
  clock_.Advance(600s);
  server_.AppendPodLog({"team-a", "bert-launcher-x"}, "launcher", clock_.WallNow() + 1h, "a step\n");
  EXPECT_FALSE(IsSilent(0s));
}

TEST_F(TrainingOutputTest, ALimitBelowAMinuteCountsAsAMinute) {
  EXPECT_FALSE(IsSilent(0s, 1));
  for (int i = 0; i < 5; ++i) {
    Print();
    EXPECT_FALSE(IsSilent(59s, 1));
  }
  EXPECT_TRUE(IsSilent(30s, 1));
}

TEST_F(TrainingOutputTest, NobodyIsAskedWithoutALimit) {
  EXPECT_FALSE(IsSilent(24h, 0));
  EXPECT_EQ(look_again_, std::nullopt);
}

class TrainingOutputOfManyTest : public ::testing::Test {
 protected:
  TrainingOutputOfManyTest() {
    network_.Handle("GET", "/api/v1/namespaces/team-a/pods/", [this](const kube::HttpRequest&, const std::stop_token&) {
      ++asked_;
      return kube::HttpResponse{200, {}, kube::ToText(last_line_) + " step 1\n"};
    });
  }
  // Of a job whose launcher runs for an hour.
  View RunsForAnHour(int number, const api::ElasticHorovodJobStatus& status = {}) {
    View view = ViewBuilder()
                    .Status(status)
                    .Job([number](auto& job) { job.metadata.name = "job-" + std::to_string(number); })
                    .LauncherRuns()
                    .Build();
    view.now = At(std::chrono::duration_cast<std::chrono::seconds>(clock_.Now() - start_).count());
    view.launcher_pods.front().uid += std::to_string(number);
    view.launcher_pods.front().running_since = At(-3600);
    return view;
  }

  kube::testing::FakeClock clock_;
  const kube::TimePoint start_ = clock_.Now();
  kube::testing::FakeTransport network_{clock_};
  kube::Client client_{network_, nullptr, clock_};
  TrainingOutput output_{client_, clock_};
  kube::Time last_line_ = At(0);
  int asked_ = 0;
};

// Each question keeps a reconcile thread, and what is new waits behind all that a new leader finds.
TEST_F(TrainingOutputOfManyTest, ANewLeaderAsksForTheLogsOfItsJobsOneAfterTheOther) {
  int most = 0;
  for (int second = 0; second <= 60; ++second) {
    const int before = asked_;
    for (int job = 0; job < 300; ++job) {
      View view = RunsForAnHour(job);
      EXPECT_TRUE(output_.Look(view, {}));
      EXPECT_FALSE(view.launcher_pods.front().silent_since);
    }
    most = std::max(most, asked_ - before);
    clock_.Advance(1s);
  }

  EXPECT_EQ(asked_, 300) << "each once within the minute";
  EXPECT_LE(most, 20) << "in one second";
}

TEST_F(TrainingOutputOfManyTest, OfAJobThatIsCalledSilentItKnowsAtOnceWhetherItStillIs) {
  api::ElasticHorovodJobStatus status;
  status.conditions.push_back({.type = "Ready", .status = "Unknown", .reason = "NoOutput"});
  last_line_ = At(-700);
  View view = RunsForAnHour(1, status);

  output_.Look(view, {});

  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(view.launcher_pods.front().silent_since, At(-700));
}

}  // namespace
}  // namespace grus
