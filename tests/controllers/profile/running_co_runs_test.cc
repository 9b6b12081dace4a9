// SPDX-License-Identifier: Apache-2.0
// Running jobs that share their GPUs with others.
#include <gmock/gmock.h>

#include "controllers/cluster/gpu_residents.h"
#include "crds/types/sharing_names.h"
#include "tests/controllers/profile/running_jobs_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::IsEmpty;
using testing::kJobs;
using testing::kProfile;
using testing::MakePoint;
using ::testing::SizeIs;

// Worker I of each job is on GPU-I.
class RunningCoRunsTest : public testing::RunningJobsFixture {
 protected:
  void AddJobOnGpus(const std::string& name, int workers = 4) {
    AddJob(name, workers);
    for (int i = 0; i < workers; ++i) {
      Annotate(name + "-workers-" + std::to_string(i), api::kPlannedGpuAnnotation, "GPU-" + std::to_string(i));
    }
  }
  // The one of the job, and those of its neighbours.
  void AddProfiles() {
    AddProfile();
    for (const char* other : {"resnet", "vgg"}) {
      Json profile = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", other);
      profile["spec"]["fingerprint"] = other;
      profile["spec"]["workload"]["namespace"] = "team-a";
      Create("workloadprofiles.ai.centauruscloud.io", std::move(profile));
    }
  }
  void StartJob() {
    AddProfiles();
    AddJobOnGpus("bert");
    Start();
  }
  void Annotate(const std::string& pod, const char* key, const std::string& value) {
    Edit("pods", {"team-a", pod}, [&](Json& object) { object["metadata"]["annotations"][key] = value; });
  }
  void AddNeighbour(const std::string& name, const std::string& gpu, const std::string& workload) {
    Json pod = Named("v1", "Pod", name, "team-a");
    pod["spec"] = *kube::ParseJson(R"({"nodeName":"n1","containers":[{"name":"main","image":"a","resources":
        {"requests":{"ai.centauruscloud.io/gpu-milli":"300"},"limits":{"ai.centauruscloud.io/gpu-milli":"300"}}}]})");
    pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = gpu;
    if (!workload.empty()) pod["metadata"]["annotations"][kWorkloadAnnotation] = workload;
    Create("pods", std::move(pod));
    SetStatus("pods", {"team-a", name}, R"({"phase":"Running"})");
  }
  void Remove(const std::string& pod) {
    ASSERT_TRUE(server_.Delete("pods", {"team-a", pod}, *kube::ParseJson(R"({"gracePeriodSeconds":0})")));
  }
  // For two hours; false: its log was read.
  bool IsLeftAlone(const std::string& job) {
    const int logs = wire_.logs;
    for (int i = 0; i < 25; ++i) clock_.Advance(Pass(job));
    return wire_.logs == logs;
  }
  const api::ProfilePoint& Point() {
    profile_ = Profile();
    return profile_->spec.points.at(0);
  }
  std::vector<api::CoRun> CoRuns() { return Profile()->spec.co_runs; }

 private:
  std::shared_ptr<const api::WorkloadProfile> profile_;
};

TEST_F(RunningCoRunsTest, BesideOneWorkloadASpeedIsACoRunAndNoDrift) {
  StartJob();
  AddNeighbour("other", "GPU-1", "resnet");

  Sample("bert", 500);
  Sample("bert", 500);

  EXPECT_EQ(Point().measured.throughput, "800") << "twice as slow as alone, it is as it was";
  EXPECT_FALSE(Profile()->status.drift);
  ASSERT_THAT(CoRuns(), SizeIs(1));
  const api::CoRun run = CoRuns()[0];
  EXPECT_EQ(run.name, "resnet@A100");
  EXPECT_EQ(run.partner, "resnet");
  EXPECT_EQ(run.gpu_type, "A100");
  EXPECT_NEAR(std::stod(run.speed), 500.0 / 800, 0.005);
  EXPECT_LE(std::stod(run.low), std::stod(run.speed));
  EXPECT_GE(std::stod(run.high), std::stod(run.speed));
  EXPECT_GT(std::stod(run.low), 0.6);
  EXPECT_LT(std::stod(run.high), 0.65);
  EXPECT_EQ(run.count, 2);
  EXPECT_TRUE(server_.List("events.events.k8s.io").empty());
}

TEST_F(RunningCoRunsTest, AloneOnItsGpusItIsComparedAsEver) {
  StartJob();
  AddNeighbour("elsewhere", "GPU-7", "resnet");

  Sample("bert", 500);

  EXPECT_TRUE(Profile()->status.drift);
  EXPECT_THAT(CoRuns(), IsEmpty());
}

TEST_F(RunningCoRunsTest, APartnerMayBeOnEachOfItsGpusAndBeAJobOfGrus) {
  StartJob();
  AddJobOnGpus("bert-2");

  Sample("bert", 400);

  ASSERT_THAT(CoRuns(), SizeIs(1));
  EXPECT_EQ(CoRuns()[0].partner, kProfile) << "what its job's status says";
  EXPECT_NEAR(std::stod(CoRuns()[0].speed), 0.5, 0.005);
}

TEST_F(RunningCoRunsTest, ASampleDuringWhichNeighboursChangeIsVoid) {
  StartJob();
  AddNeighbour("other", "GPU-1", "resnet");
  Begin(running_, "bert");
  Print("bert", 500);
  Remove("other");
  AddNeighbour("next", "GPU-1", "resnet");

  EXPECT_EQ(End(running_, "bert"), kSettle) << "another pod, although of the same workload";

  EXPECT_EQ(wire_.writes, 0);
  Sample("bert", 600);
  ASSERT_THAT(CoRuns(), SizeIs(1));
  EXPECT_NEAR(std::stod(CoRuns()[0].speed), 0.75, 0.005);
  EXPECT_EQ(CoRuns()[0].count, 1);
}

TEST_F(RunningCoRunsTest, NewNeighboursAreSampledOnceTheyHaveSettled) {
  StartJob();
  Sample("bert", 800);
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  AddNeighbour("other", "GPU-1", "resnet");
  Settle();

  ASSERT_EQ(queue_.counts().depth + queue_.counts().delayed, 1u) << "the job is to be looked at";
  EXPECT_EQ(Pass("bert"), kSettle);
  clock_.Advance(kSettle);
  EXPECT_EQ(Pass("bert"), kLookEvery);
}

TEST_F(RunningCoRunsTest, AJobHearsOfAllThatChangesItsNeighbours) {
  StartJob();
  AddNeighbour("other", "GPU-1", "resnet");
  AddNeighbour("elsewhere", "GPU-7", "resnet");
  Settle();
  const auto is_told_of = [&](const auto& change) {
    clock_.Advance(kLookEvery);
    while (queue_.counts().depth + queue_.counts().delayed > 0) queue_.Done(queue_.Get()->key);
    change();
    Settle();
    return queue_.counts().depth + queue_.counts().delayed > 0;
  };
  EXPECT_TRUE(is_told_of([&] { Annotate("other", kWorkloadAnnotation, "vgg"); }));
  EXPECT_FALSE(is_told_of([&] { Annotate("other", "example.com/note", "x"); }));
  EXPECT_FALSE(is_told_of([&] { Annotate("elsewhere", kWorkloadAnnotation, "vgg"); }));
  EXPECT_TRUE(is_told_of([&] { SetStatus("pods", {"team-a", "other"}, R"({"phase":"Succeeded"})"); }));
  EXPECT_TRUE(is_told_of([&] { Annotate("elsewhere", api::kPlannedGpuAnnotation, "GPU-2"); }));
  EXPECT_TRUE(is_told_of([&] { Remove("elsewhere"); }));
}

TEST_F(RunningCoRunsTest, AJobHearsThatTheProfileOfANeighbourIsKnown) {
  StartJob();
  AddJobOnGpus("bert-2", 1);
  SetStatus(kJobs, {"team-a", "bert-2"}, R"({"phase":"Waiting"})");
  Settle();
  clock_.Advance(kLookEvery);
  while (queue_.counts().depth + queue_.counts().delayed > 0) queue_.Done(queue_.Get()->key);

  SetStatus(kJobs, {"team-a", "bert-2"}, R"({"phase":"Waiting","profile":{"name":"abc"}})");
  Settle();
  clock_.Advance(kLookEvery);

  std::vector<std::string> told;
  while (queue_.counts().depth + queue_.counts().delayed > 0) {
    told.push_back(queue_.Get()->key.name);
    queue_.Done({"team-a", told.back()});
  }
  EXPECT_THAT(told, ::testing::Contains("bert"));
}

TEST_F(RunningCoRunsTest, WhatSeveralOrUnknownNeighboursDoSaysNothing) {
  StartJob();
  AddNeighbour("one", "GPU-0", "resnet");
  AddNeighbour("two", "GPU-1", "vgg");
  EXPECT_TRUE(IsLeftAlone("bert")) << "two workloads";

  Remove("two");
  AddNeighbour("two", "GPU-1", "");
  EXPECT_TRUE(IsLeftAlone("bert")) << "one of them is not known";

  Remove("two");
  AddNeighbour("two", "GPU-0", "resnet");
  EXPECT_TRUE(IsLeftAlone("bert")) << "two on one GPU";

  Remove("two");
  SetStatus("pods", {"team-a", "one"}, R"({"phase":"Pending"})");
  EXPECT_TRUE(IsLeftAlone("bert")) << "it does not run yet";

  Remove("one");
  AddNeighbour("one", "GPU-0", "No name of a profile!");
  EXPECT_TRUE(IsLeftAlone("bert"));

  EXPECT_EQ(wire_.writes, 0);
  Remove("one");
  Sample("bert", 500);
  EXPECT_TRUE(Profile()->status.drift) << "alone again";
}

TEST_F(RunningCoRunsTest, WithoutAMeasurementAloneNothingIsLearned) {
  AddProfile({MakePoint({"A100", 8, 1, 0}, 160)});
  AddJobOnGpus("bert");
  AddNeighbour("other", "GPU-1", "resnet");
  Start();

  EXPECT_TRUE(IsLeftAlone("bert"));
  EXPECT_EQ(wire_.writes, 0);
  EXPECT_THAT(Profile()->spec.points, SizeIs(1)) << "nor is its speed that of GPUs of its own";
}

TEST_F(RunningCoRunsTest, ASpeedThatNobodyCanMeasureIsDropped) {
  StartJob();
  AddNeighbour("other", "GPU-1", "resnet");
  Sample("bert", 2000);
  Sample("bert", 0.5);
  EXPECT_THAT(CoRuns(), IsEmpty());
  EXPECT_EQ(wire_.writes, 0);
}

TEST_F(RunningCoRunsTest, TheDriftOfAJobThatNowHasNeighboursIsTakenAwayByAnother) {
  AddProfiles();
  AddJobOnGpus("bert");
  AddJob("bert-2");
  Start();
  Sample("bert", 500);
  ASSERT_TRUE(Profile()->status.drift);
  AddNeighbour("other", "GPU-1", "resnet");
  Sample("bert", 500);
  EXPECT_TRUE(Profile()->status.drift) << "a co-run neither confirms nor ends it";

  Sample("bert-2", 800);

  EXPECT_FALSE(Profile()->status.drift);
  EXPECT_EQ(Point().measured.throughput, "800");
}

}  // namespace
}  // namespace grus
