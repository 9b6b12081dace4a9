// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/running_jobs.h"

#include <gmock/gmock.h>

#include "controllers/cluster/owners.h"
#include "controllers/profile/profile_keeper.h"
#include "tests/controllers/profile/profile_builders.h"
#include "tests/controllers/profile/running_jobs_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::kJobs;
using testing::kProfile;
using testing::kProfiles;
using testing::MakePoint;
using ::testing::SizeIs;

class RunningJobsTest : public testing::RunningJobsFixture {
 protected:
  std::string Drifted() {
    const auto profile = Profile();
    const auto* drifted = kube::FindCondition(profile->status.conditions, "Drifted");
    return drifted ? drifted->status + " " + drifted->reason : "";
  }
  // "WorkloadProfile SlowerThanMeasured"
  std::vector<std::string> Events() {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    std::vector<std::string> events;
    for (const auto& event : server_.List("events.events.k8s.io")) {
      events.push_back(*event->At({"regarding", "kind"})->AsString() + " " + *event->At({"reason"})->AsString());
    }
    return events;
  }
};

TEST_F(RunningJobsTest, AJobAsFastAsItsProfileSaysWritesNothing) {
  StartJobs({"bert"});
  Sample("bert", 790);
  Sample("bert", 810);
  EXPECT_EQ(wire_.writes, 0);
  EXPECT_EQ(wire_.logs, 2);
  EXPECT_THAT(Events(), SizeIs(0));
}

TEST_F(RunningJobsTest, ASlowJobIsADriftOfTheProfileAndIsToldOnBoth) {
  StartJobs({"bert"});

  Sample("bert", 500);

  EXPECT_EQ(Drifted(), "True SlowerThanMeasured");
  const auto profile = Profile();
  EXPECT_THAT(kube::FindCondition(profile->status.conditions, "Drifted")->message,
              HasSubstr("expected 800 samples/s +- 0 % on 4 A100 GPUs, team-a/bert runs at 50"));
  EXPECT_EQ(profile->spec.points[0].measured.throughput, "800");
  EXPECT_EQ(wire_.writes, 1);
  EXPECT_THAT(Events(), ::testing::UnorderedElementsAre("ElasticHorovodJob SlowerThanMeasured",
                                                        "WorkloadProfile SlowerThanMeasured"));
  for (const auto& event : server_.List("events.events.k8s.io")) EXPECT_EQ(*event->Find("type"), kube::Json("Warning"));
}

TEST_F(RunningJobsTest, TheDriftGoesOnceTheJobAgrees) {
  StartJobs({"bert"});
  Sample("bert", 500);

  Sample("bert", 800);

  EXPECT_EQ(Drifted(), "False AgreesAgain");
  EXPECT_FALSE(Profile()->status.drift);
  EXPECT_THAT(Events(), Contains("WorkloadProfile AgreesAgain"));
}

TEST_F(RunningJobsTest, ASpeedThatDriftedTwiceInARowIsTheProfilesFromThenOn) {
  StartJobs({"bert"});
  Sample("bert", 500);

  Sample("bert", 505);

  const auto profile = Profile();
  ASSERT_THAT(profile->spec.points, SizeIs(1));
  EXPECT_NEAR(std::stod(profile->spec.points[0].measured.throughput), 505, 2);
  EXPECT_EQ(profile->spec.points[0].config, (api::TrialConfig{"A100", 4, 1, 0}));
  EXPECT_EQ(profile->spec.points[0].measured_by, "elastichorovodjob/team-a/bert");
  EXPECT_EQ(profile->spec.points[0].gpu_seconds, 0);
  EXPECT_EQ(Drifted(), "False MeasuredAgain");
  EXPECT_THAT(Events(), Contains("ElasticHorovodJob MeasuredAgain"));
}

TEST_F(RunningJobsTest, TheDriftOfAJobThatIsGoneIsTakenAwayByAnother) {
  StartJobs({"bert", "bert-2"});
  Sample("bert-2", 500);
  ASSERT_TRUE(server_.Delete(kJobs, {"team-a", "bert-2"}));
  Pass("bert-2");

  Sample("bert", 800);

  EXPECT_EQ(Drifted(), "False AgreesAgain");
}

TEST_F(RunningJobsTest, ASizeThatTheProfileDoesNotHaveIsAdded) {
  AddProfile({MakePoint({"A100", 8, 1, 0}, 160)});
  AddJob("bert", 2);
  Start();

  Sample("bert", 400);

  const auto profile = Profile();
  ASSERT_THAT(profile->spec.points, SizeIs(2));
  EXPECT_EQ(profile->spec.points[1].config, (api::TrialConfig{"A100", 2, 1, 0}));
  EXPECT_EQ(profile->status.points, 2);
  EXPECT_EQ(wire_.writes, 2);  // Points and status.
}

TEST_F(RunningJobsTest, ALogThatSaysNothingChangesNothingAndIsTriedAgainLater) {
  StartJobs({"bert"});
  Begin(running_, "bert");
  server_.AppendPodLog({"team-a", "bert-launcher"}, "launcher", clock_.WallNow(), "warming up\n");
  clock_.Advance(kSlice - 1s);
  EXPECT_EQ(Pass("bert"), 1s);
  clock_.Advance(1s);

  EXPECT_EQ(End(running_, "bert"), kSampleEvery);

  EXPECT_EQ(wire_.writes, 0);
  EXPECT_EQ(Pass("bert"), kSampleEvery);
}

TEST_F(RunningJobsTest, WhatWasPrintedBeforeTheSampleDoesNotCount) {
  StartJobs({"bert"});
  Print("bert", 100);
  Sample("bert", 800);
  EXPECT_EQ(Drifted(), "");
}

TEST_F(RunningJobsTest, AGlimpseIsNoSample) {
  StartJobs({"bert"});
  Begin(running_, "bert");
  Print("bert", 500, 10s);
  EXPECT_EQ(Pass("bert"), kLookEvery);
  EXPECT_EQ(wire_.writes, 0);
}

TEST_F(RunningJobsTest, TheSampleOfAJobThatIsResizedIsVoid) {
  StartJobs({"bert"});
  Begin(running_, "bert");
  Print("bert", 500);
  SetWorkers("bert", 3);

  EXPECT_EQ(End(running_, "bert"), kSettle) << "a worker is too many";
  ASSERT_TRUE(server_.Delete("pods", {"team-a", "bert-workers-3"}, *kube::ParseJson(R"({"gracePeriodSeconds":0})")));
  EXPECT_EQ(Pass("bert"), kSettle) << "its new size is sampled once it has settled";

  EXPECT_EQ(wire_.writes, 0);
  EXPECT_EQ(wire_.logs, 1);
}

TEST_F(RunningJobsTest, AfterARestartADriftIsNotToldAgainAndHasToBeSeenTwiceAnew) {
  StartJobs({"bert"});
  Sample("bert", 500);
  const int writes = wire_.writes;

  Sample(restarted_, "bert", 500);

  EXPECT_EQ(Drifted(), "True SlowerThanMeasured");
  EXPECT_EQ(Profile()->spec.points[0].measured.throughput, "800");
  EXPECT_EQ(wire_.writes, writes);
  EXPECT_THAT(Events(), SizeIs(2));
}

TEST_F(RunningJobsTest, AProfileThatIsDeletedMeanwhileIsNotMadeAgain) {
  StartJobs({"bert"});
  Begin(running_, "bert");
  Print("bert", 500);
  ASSERT_TRUE(server_.Delete(kProfiles, {"", kProfile}));

  EXPECT_EQ(End(running_, "bert"), kSampleEvery);

  EXPECT_EQ(Profile(), nullptr);
  EXPECT_THAT(Events(), SizeIs(0));
}

TEST_F(RunningJobsTest, ALogThatMayNotBeReadEndsTheSampleAtOnce) {
  AddProfile();
  AddJob("bert");
  wire_.are_logs_refused = true;
  Start();
  Begin(running_, "bert");

  EXPECT_EQ(End(running_, "bert"), kSampleEvery);

  EXPECT_EQ(wire_.writes, 0);
}

TEST_F(RunningJobsTest, FewLogsAreReadAtATimeAndTheOthersComeInTurn) {
  AddProfile();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMostSamples + 2; ++i) names.push_back("bert-" + std::to_string(i));
  for (const std::string& name : names) AddJob(name, 1);
  Start();
  for (const std::string& name : names) Pass(name);
  clock_.Advance(kSampleEvery);

  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool has_turn = i < kMostSamples;
    EXPECT_EQ(Pass(names[i]), has_turn ? kLookEvery : kSampleEvery) << i;
    if (has_turn) ++waiters_;
  }
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(wire_.logs, static_cast<int>(kMostSamples));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  clock_.Advance(kSlice);
  End(running_, names[0]);

  ASSERT_GE(queue_.counts().depth, 1u);
  const auto next = queue_.Get();
  EXPECT_EQ(next->key.name, names[kMostSamples]);
  queue_.Done(next->key);
  EXPECT_EQ(Pass(names[kMostSamples]), kLookEvery);
}

TEST_F(RunningJobsTest, JobsThatRanBeforeAreSpreadAndNewOnesAreNot) {
  AddProfile();
  for (int i = 0; i < 20; ++i) AddJob("bert-" + std::to_string(i), 1);
  Start();
  std::set<kube::Duration> delays;
  for (int i = 0; i < 20; ++i) delays.insert(Pass("bert-" + std::to_string(i)));
  EXPECT_GE(delays.size(), 15u);
  EXPECT_LT(*delays.rbegin(), kSampleEvery);
  EXPECT_GT(*delays.rbegin(), kSampleEvery / 2);

  AddJob("late", 1);
  EXPECT_EQ(Pass("late"), kSettle);
}

TEST_F(RunningJobsTest, AJobThatDoesNotRunAnyMoreIsForgotten) {
  StartJobs({"bert"});
  Begin(running_, "bert");
  SetStatus(kJobs, {"team-a", "bert"}, R"({"phase":"Succeeded"})");
  EXPECT_EQ(End(running_, "bert"), 0s);
  EXPECT_EQ(wire_.writes, 0);
}

// S4: otherwise anyone could fill the profile of another team with numbers of their own.
TEST_F(RunningJobsTest, AJobThatNamesTheProfileOfAnotherWorkloadDoesNotWriteToIt) {
  fingerprint_ = kProfile;
  AddProfile({});
  AddJob("bert");
  Start();

  for (int i = 0; i < 5; ++i) clock_.Advance(Pass("bert"));

  EXPECT_EQ(wire_.logs, 0);
  EXPECT_EQ(wire_.writes, 0);
  EXPECT_TRUE(Profile()->spec.points.empty());
}

class OldProfiles : public RunningJobsTest {
 protected:
  void AddMade(bool is_made_by_grus) {
    AddProfile();
    if (is_made_by_grus) {
      Edit(kProfiles, {"", kProfile},
           [](Json& profile) { profile["metadata"]["labels"][kManagedByLabel] = kManagedBy; });
    }
    Start();
    ASSERT_TRUE(keeper_.Reconcile({"", kProfile}, {}));  // Its status.
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  std::optional<kube::Duration> Look() {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    const auto action = keeper_.Reconcile({"", kProfile}, {});
    EXPECT_TRUE(action);
    return action ? action->delay() : std::nullopt;
  }
  ProfileKeeper keeper_{profiles_, store_, clock_, 24h * 30};
};

TEST_F(OldProfiles, OneThatNobodyMeasuresIsDeleted) {
  AddMade(true);
  EXPECT_EQ(Look(), 24h);
  clock_.Advance(24h * 29);
  EXPECT_NE(Look(), std::nullopt);
  ASSERT_NE(Profile(), nullptr);
  clock_.Advance(24h);
  Look();
  EXPECT_EQ(Profile(), nullptr);
}

TEST_F(OldProfiles, OneThatWasMeasuredAgainStays) {
  AddMade(true);
  clock_.Advance(24h * 29);
  ASSERT_TRUE(store_.Edit(kProfile, [&](const api::WorkloadProfile&) {
    api::ProfilePoint point = MakePoint({"A100", 8, 0, 0}, 320);
    point.time = kube::Time{clock_.WallNow()};
    return ProfileEdit{{point}, {}};
  }));
  clock_.Advance(24h * 2);
  Look();
  EXPECT_NE(Profile(), nullptr);
}

TEST_F(OldProfiles, WhatAnAdministratorWroteStays) {
  AddMade(false);
  clock_.Advance(24h * 60);
  EXPECT_EQ(Look(), std::nullopt);
  EXPECT_NE(Profile(), nullptr);
}

TEST_F(RunningJobsTest, AProfileThatWasRestoredGetsItsStatus) {
  kube::WorkQueue queue{clock_};
  ProfileKeeper keeper(profiles_, store_, clock_, 0h);
  keeper.FeedQueue(queue);
  AddProfile();
  Start();
  EXPECT_EQ(queue.counts().delayed, 1u);

  ASSERT_TRUE(keeper.Reconcile({"", kProfile}, {}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));

  EXPECT_EQ(Profile()->status.points, 1);
  EXPECT_EQ(Profile()->status.observed_generation, 1);
  EXPECT_EQ(wire_.writes, 1);
  ASSERT_TRUE(keeper.Reconcile({"", kProfile}, {}));
  EXPECT_EQ(wire_.writes, 1);
}

}  // namespace
}  // namespace grus
