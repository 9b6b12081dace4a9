// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/running_jobs.h"

#include <gmock/gmock.h>

#include "clientlib/model/json_writer.h"
#include "controllers/cluster/owners.h"
#include "controllers/profile/profile_keeper.h"
#include "controllers/profile/profile_status.h"
#include "tests/controllers/profile/profile_builders.h"
#include "tests/kit/log_wire.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::MakePoint;
using ::testing::SizeIs;

constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";
constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io";
constexpr char kProfile[] = "0123456789abcdef0123456789abcdef";

// Jobs that run, against an API server in this process; the test plays all other controllers and the kubelet.
class RunningJobsTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    Edit("nodes", {"", "n1"}, [](Json& node) { node["metadata"]["labels"]["nvidia.com/gpu.product"] = "A100"; });
  }

  void AddPod(const std::string& job, const std::string& role, const std::string& suffix) {
    Json pod = Named("v1", "Pod", job + "-" + suffix, "team-a");
    pod["metadata"]["labels"] = Json::MakeObject({{kJobNameLabel, job}, {kRoleLabel, role}});
    pod["spec"] = *kube::ParseJson(R"({"nodeName":"n1","containers":[{"name":")" + role + R"(","image":"a"}]})");
    Create("pods", std::move(pod));
    SetStatus("pods", {"team-a", job + "-" + suffix},
              R"({"phase":"Running","containerStatuses":[{"name":")" + role + R"(","state":{"running":{}}}]})");
  }
  void SetWorkers(const std::string& job, int workers) {
    const std::string n = std::to_string(workers);
    SetStatus(kJobs, {"team-a", job},
              R"({"phase":"Running","profile":{"name":")" + std::string(kProfile) + R"("},"replicas":{"granted":)" + n +
                  R"(,"ready":)" + n + "}}");
  }
  static Json JobNamed(const std::string& name) {
    Json job = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", name, "team-a");
    job["spec"] =
        *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":["p"]},"workersSpec":{"image":"a"}})");
    return job;
  }
  void AddJob(const std::string& name, int workers = 4) {
    Create(kJobs, JobNamed(name));
    for (int i = 0; i < workers; ++i) AddPod(name, "worker", "workers-" + std::to_string(i));
    AddPod(name, "launcher", "launcher");
    SetWorkers(name, workers);
  }
  // 800 samples a second on 4 GPUs.
  void AddProfile(std::vector<api::ProfilePoint> points = {MakePoint({"A100", 4, 0, 0}, 160)}) {
    for (api::ProfilePoint& point : points) {
      point.name = PointName(point.config);
      point.time = kube::Time{clock_.WallNow()};
    }
    const auto job = kube::Decode<api::ElasticHorovodJob>(kube::ToText(JobNamed("any")));
    ASSERT_TRUE(job);
    const api::WorkloadProfileSpec spec{fingerprint_.empty() ? *ProfileNameOf(**job, store_.trust()) : fingerprint_,
                                        {},
                                        api::ThroughputUnit::kSamplesPerSecond,
                                        std::move(points)};
    Json profile = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", kProfile);
    profile["spec"] = kube::ToJson(spec);
    Create(kProfiles, std::move(profile));
  }
  void Start() {
    running_.FeedQueue(queue_);
    restarted_.FeedQueue(other_queue_);
    StartCaches();
  }

  // Jobs of the profile, which the caches know.
  void StartJobs(std::initializer_list<const char*> jobs) {
    AddProfile();
    for (const char* job : jobs) AddJob(job);
    Start();
  }
  kube::Duration Pass(RunningJobs& running, const std::string& job) {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    const auto action = running.Reconcile({"team-a", job}, {});
    EXPECT_TRUE(action) << action.error().message();
    return action && action->delay() ? *action->delay() : 0s;
  }
  kube::Duration Pass(const std::string& job) { return Pass(running_, job); }

  // Until its log is followed.
  void Begin(RunningJobs& running, const std::string& job) {
    for (int i = 0; i < 3; ++i) {
      const kube::Duration delay = Pass(running, job);
      if (delay == kLookEvery) break;
      clock_.Advance(delay);
    }
    ++waiters_;  // The follower.
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  // Ten lines a second, a little up and down.
  void Print(const std::string& job, double speed, std::chrono::seconds seconds = 40s) {
    for (int i = 0; i < 10 * seconds.count(); ++i) {
      char line[80];
      std::snprintf(line, sizeof line, "step %d loss 2.3 total speed %.2f samples/s\n", i,
                    speed * (1 + 0.01 * (i % 3 - 1)));
      server_.AppendPodLog({"team-a", job + "-launcher"}, "launcher", clock_.WallNow() + i * 100ms, line);
    }
    clock_.Advance(seconds);
  }
  kube::Duration End(RunningJobs& running, const std::string& job) {
    const kube::Duration delay = Pass(running, job);
    --waiters_;
    return delay;
  }
  // One sample of a job that trains at that speed.
  void Sample(RunningJobs& running, const std::string& job, double speed) {
    Begin(running, job);
    Print(job, speed);
    EXPECT_EQ(End(running, job), kSampleEvery);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  void Sample(const std::string& job, double speed) { Sample(running_, job, speed); }

  std::shared_ptr<const api::WorkloadProfile> Profile() {
    return server_.Get(kProfiles, {"", kProfile}) ? Live<api::WorkloadProfile>({"", kProfile}) : nullptr;
  }
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

  std::string fingerprint_;  // Of the profile; empty: that of the jobs.
  kit::LogWire wire_{server_, kube::Error(kube::ErrorCode::kForbidden, "pods/log is forbidden")};
  kube::Client wired_{wire_, nullptr, clock_};
  kube::WorkQueue other_queue_{clock_};
  kube::Informer& jobs_ = Cache<api::ElasticHorovodJob>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer& profiles_ = Cache<api::WorkloadProfile>();
  ProfileStore store_{wired_, profiles_, clock_};
  RunningJobs running_{wired_, {jobs_, pods_, nodes_, profiles_}, store_, events_, clock_, log_};
  // Another process.
  RunningJobs restarted_{wired_, {jobs_, pods_, nodes_, profiles_}, store_, events_, clock_, log_};
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
