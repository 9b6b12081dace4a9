// SPDX-License-Identifier: Apache-2.0
// How a job ends, fails, is suspended and is cleaned up.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ElasticJob, RestartsAFailedLauncherUpToTheLimitAndThenFails) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":2},"runPolicy":{"backoffLimit":1}})");
  ASSERT_TRUE(AwaitTrains(2));
  const PodList before = Workers();
  const PodPtr first = LauncherPod();

  SetOutcome(first->metadata.name, "fail");

  // The Job controller waits about 10 s before it tries again.
  ASSERT_TRUE(Await("another launcher pod runs", [&] {
    const PodPtr pod = LauncherPod();
    return pod && pod->metadata.uid != first->metadata.uid;
  }));
  ASSERT_TRUE(AwaitTrains(2));
  EXPECT_TRUE(AllSurvive(before, Workers()));

  SetOutcome(LauncherPod()->metadata.name, "fail");

  ASSERT_TRUE(Await("it fails and the workers go", [&] { return Phase() == "Failed" && Workers().empty(); }));
  EXPECT_TRUE(IsTrue("Failed"));
  EXPECT_FALSE(IsTrue("Ready"));
  EXPECT_EQ(ReasonOf("Failed"), "LauncherFailed");
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("exit code 1"));
}

TEST_F(ElasticJob, TellsItsStoryInEvents) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":3,"targetReplicas":3}})");
  ASSERT_TRUE(AwaitTrains(2));
  SetOutcome(LauncherPod()->metadata.name, "succeed");
  ASSERT_TRUE(Await("it ends", [&] { return Phase() == "Succeeded"; }));

  const auto has_event = [&](std::string_view type, std::string_view reason, std::string_view note) {
    const auto events = world().List<kube::Event>(ns());
    return std::any_of(events.begin(), events.end(), [&](const auto& event) {
      return event->type == type && event->reason == reason &&
             event->note.view().find(note) != std::string_view::npos && event->regarding.kind == "ElasticHorovodJob" &&
             event->regarding.name == "train" && event->regarding.uid == TheJob()->metadata.uid;
    });
  };

  EXPECT_TRUE(Await("an event of the launcher",
                    [&] { return has_event("Normal", "LauncherStarted", "started the launcher with 2 workers"); }));
  EXPECT_TRUE(Await("an event of the end", [&] { return has_event("Normal", "Succeeded", "the launcher succeeded"); }));
}

TEST_F(ElasticJob, WhatHappensAgainIsCountedInTheEventOfTheFirstTime) {
  AddNode(4);  // It grows again for the same reason, also while the worker that left is still ending.
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":3,"targetReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  for (const int workers : {3, 2, 3}) {
    Scale(workers);
    ASSERT_TRUE(AwaitTrains(workers));
  }
  const auto counts = [&] {
    std::vector<int> found;
    for (const auto& event : world().List<kube::Event>(ns())) {
      if (event->reason == "WorkersGrown") found.push_back(event->series ? event->series->count : 1);
    }
    return found;
  };
  EXPECT_TRUE(Await("one event, of two times", [&] { return counts() == std::vector{2}; }));
}

}  // namespace
}  // namespace grus::testing
