// SPDX-License-Identifier: Apache-2.0
// Jobs whose workers have scheduling gates of other controllers: they keep their place in the queue, and no GPUs.
#include <gmock/gmock.h>

#include "tests/controllers/elastic/elastic_fixture.h"
#include "tests/controllers/elastic/view_builder.h"
#include "tests/kit/conditions.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;

constexpr char kOthersGate[] = "example.com/admission";

// Of a job of 2 to 4 workers, which the API server makes with that gate.
View Gated(ViewBuilder builder) {
  View view = builder.MinMax(2, 4).Room(4).Build();
  view.makes_gangs = true;
  view.foreign_gate = kOthersGate;
  return view;
}

std::vector<int> Dropped(const Plan& plan) {
  std::vector<int> ordinals;
  for (const Worker* worker : plan.drop) ordinals.push_back(worker->ordinal);
  std::ranges::sort(ordinals);
  return ordinals;
}

TEST(ForeignGates, WorkersAreMadeEarlyWithTheGangsGateAndNoneIsGranted) {
  const Plan plan = PlanElasticJob(Gated(ViewBuilder()));

  EXPECT_EQ(plan.missing, 4);
  EXPECT_EQ(plan.workers, (WorkersState{0, Gang::kGated}));
  EXPECT_EQ(plan.status.phase, "Waiting");
  EXPECT_EQ(kit::ReasonIn(plan.status.conditions), "GatedByOthers");
  EXPECT_EQ(kube::FindCondition(plan.status.conditions, "Ready")->message,
            "4 workers cannot start before another controller removes its scheduling gate example.com/admission; until "
            "then no GPUs are kept for the job, which keeps its place in the queue");
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events.front().type, kube::EventType::kWarning);
}

TEST(ForeignGates, NoWorkerIsMadeEarlyThatCouldNotStartAnyway) {
  const auto missing = [](auto change) {
    View view = Gated(ViewBuilder());
    change(view);
    return PlanElasticJob(view).missing;
  };
  EXPECT_EQ(missing([](View& view) { view.has_unknown_pods = true; }), 0);
  EXPECT_EQ(missing([](View& view) { view.refusal = "no such PriorityClass"; }), 0);
  EXPECT_EQ(missing([](View& view) { view.quota = QuotaLimit{1, "team", "pods", "pods: 9 of 10 used"}; }), 0);
  EXPECT_EQ(missing([](View& view) { view.quota = QuotaLimit{3, "team", "pods", "pods: 7 of 10 used"}; }), 3);
}

TEST(ForeignGates, TheStartBeginsOnceEnoughWorkersAreLetGo) {
  struct Case {
    const char* rule;
    ViewBuilder view;
    int granted;
    std::vector<int> dropped;
  };
  const Case kCases[] = {
      {"one of the two that are needed", ViewBuilder().Gated({0}).GatedByOthers({1, 2, 3}), 0, {}},
      {"both: the others follow", ViewBuilder().Gated({1, 2}).GatedByOthers({0, 3}), 4, {}},
      {"all", ViewBuilder().Gated({0, 1, 2, 3}), 4, {}},
      {"more than are wanted", ViewBuilder().Gated({0, 1, 2, 3, 4}), 4, {4}},
  };
  for (const Case& c : kCases) {
    const View view = Gated(c.view);
    const Plan plan = PlanElasticJob(view);
    EXPECT_EQ(plan.workers->granted, c.granted) << c.rule;
    EXPECT_EQ(Dropped(plan), c.dropped) << c.rule;
    EXPECT_EQ(plan.missing, 0) << c.rule;
  }
}

TEST(ForeignGates, OfTooManyWorkersThoseGoThatOthersKeepFromStarting) {
  View view = Gated(ViewBuilder().GatedByOthers({0}).Gated({1, 2, 3}));
  view.room.copies = 2;
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 2);
  EXPECT_EQ(Dropped(plan), (std::vector<int>{0, 3}));
}

TEST(ForeignGates, WorkersWithAGateThatTheirTemplateHasNoMoreAreMadeAnew) {
  View view = Gated(ViewBuilder().GatedByOthers({0, 1, 2}).Gated({3}));
  view.foreign_gate.clear();
  EXPECT_EQ(Dropped(PlanElasticJob(view)), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(PlanElasticJob(view).workers->granted, 0);
  view.pod_refusal = "the API server does not say what they would be";
  EXPECT_EQ(Dropped(PlanElasticJob(view)), std::vector<int>{});
}

TEST(ForeignGates, WorkersThatWaitForRoomStay) {
  View view = Gated(ViewBuilder().Gated({0, 1, 2, 3}));
  view.room.copies = 1;
  view.may_start = false;
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 0);
  EXPECT_EQ(Dropped(plan), std::vector<int>{});
  EXPECT_EQ(plan.missing, 0);
  EXPECT_EQ(kit::ReasonIn(plan.status.conditions), "WaitingForRoom");
}

TEST(ForeignGates, AJobThatIsSuspendedOrWantsNoneDropsItsEarlyWorkers) {
  for (const bool is_suspended : {true, false}) {
    View view = Gated(ViewBuilder().GatedByOthers({0}).Gated({1}));
    auto job = std::make_shared<api::ElasticHorovodJob>(*view.job);
    job->spec.run_policy.suspend = is_suspended;
    if (!is_suspended) job->spec.workers.min_replicas = job->spec.workers.max_replicas = 0;
    view.job = job;
    EXPECT_EQ(Dropped(PlanElasticJob(view)), (std::vector<int>{0, 1})) << is_suspended;
  }
}

// Made when the job grew. It holds nothing, so no time-out is due.
TEST(ForeignGates, AWorkerBesideATrainingWaitsForAsLongAsItTakes) {
  View view = Gated(ViewBuilder().Granted(3).Ready({0, 1}).GatedByOthers({2}).LauncherRuns());
  view.lacks_places = true;
  auto job = std::make_shared<api::ElasticHorovodJob>(*view.job);
  job->status.last_scale = api::LastScale{2, 3, "RoomAppeared", At(-3600)};
  view.job = job;
  view.room.copies = 0;
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 3);
  EXPECT_EQ(view.owed(), 0);
}

class ForeignGatesTest : public ElasticFixture {
 protected:
  explicit ForeignGatesTest(bool makes_gangs = true) : ElasticFixture(makes_gangs) {}

  // Of two workers.
  void AddGatedJob() {
    AddJob([](api::ElasticHorovodJob& job) {
      job.spec.workers.min_replicas = job.spec.workers.max_replicas = 2;
      job.spec.workers.pod_template =
          *kube::ParseJson(R"({"spec":{"schedulingGates":[{"name":"example.com/admission"}]}})");
    });
  }
  void RemoveOthersGate(int ordinal) {
    Edit("pods", {"team-a", PodName(ordinal)}, [](Json& pod) {
      Json kept = Json::MakeArray({});
      for (const Json& gate : *pod["spec"]["schedulingGates"].AsArray()) {
        if (*gate.Find("name") != Json(kOthersGate)) kept.Append(gate);
      }
      pod["spec"]["schedulingGates"] = kept;
    });
  }
  std::string UidOf(int ordinal) { return std::string(Live<kube::Pod>({"team-a", PodName(ordinal)})->metadata.uid); }
  std::string Reason() { return kit::ReasonIn(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.conditions); }
  int Granted() { return Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.replicas.granted; }
  std::size_t Places() { return account_.PlacesOf("team-a/bert").size() + account_.PlacesOf(launcher_).size(); }

  const std::string launcher_ = LauncherOwner("team-a/bert");
};

TEST_F(ForeignGatesTest, AJobAsksForRoomOnceItsWorkersAreLetGo) {
  AddGatedJob();
  Start();
  ASSERT_TRUE(Pass());
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Reason(), "GatedByOthers");
  EXPECT_TRUE(HasGate(*Live<kube::Pod>({"team-a", PodName(1)}), api::kGangGate));
  EXPECT_NE(server_.Get("podgroups.scheduling.x-k8s.io", {"team-a", "bert"}), nullptr);
  clock_.Advance(1h);
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Granted(), 0);
  EXPECT_EQ(Places(), 0U);
  EXPECT_EQ(account_.AnyWaiting(), "");

  account_.KeepPlaces("team-a/other", GpuShape(1), 7);
  for (const int ordinal : {0, 1}) RemoveOthersGate(ordinal);
  const std::string uid = UidOf(0);
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Reason(), "WaitingForRoom");
  EXPECT_EQ(Places(), 0U);
  EXPECT_EQ(account_.AnyWaiting(), "team-a/bert");

  account_.Forget("team-a/other");
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Granted(), 2);
  EXPECT_EQ(Places(), 3U) << "with that of the launcher";
  EXPECT_EQ(UidOf(0), uid);
}

// The planner may place the job in a pass over another one. The gang then lifts gates before the job's own pass.
TEST_F(ForeignGatesTest, WhatWasPlacedIsGrantedAlsoIfGatesWereLiftedBefore) {
  AddGatedJob();
  Start();
  ASSERT_TRUE(Pass());
  for (const int ordinal : {0, 1}) RemoveOthersGate(ordinal);
  account_.KeepPlaces("team-a/bert", GpuShape(1), 2);
  Edit("pods", {"team-a", PodName(0)}, [](Json& pod) { pod["spec"]["schedulingGates"] = Json::MakeArray({}); });

  ASSERT_TRUE(Pass());

  EXPECT_EQ(Granted(), 2);
  EXPECT_NE(server_.Get("pods", {"team-a", PodName(1)}), nullptr);
}

// The pods of such a job have no gate of ours.
class ForeignGatesWithoutGangs : public ForeignGatesTest {
 protected:
  ForeignGatesWithoutGangs() : ForeignGatesTest(false) {}
};

TEST_F(ForeignGatesWithoutGangs, WorkersThatAreLetGoHaveTheWholeGrace) {
  AddGatedJob();
  Start();
  ASSERT_TRUE(Pass());
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Reason(), "GatedByOthers");
  EXPECT_EQ(Places(), 0U);
  clock_.Advance(1h);

  RemoveOthersGate(0);
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Granted(), 2);
  EXPECT_EQ(Places(), 2U) << "one worker's, and that of the launcher";
  RemoveOthersGate(1);
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Places(), 3U);
  EXPECT_EQ(Granted(), 2);

  clock_.Advance(10min);
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Granted(), 0) << "no scheduler has found nodes";
}

}  // namespace
}  // namespace grus
