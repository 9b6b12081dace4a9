// SPDX-License-Identifier: Apache-2.0
// How a job ends, fails, is suspended and is cleaned up.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using std::chrono::seconds;
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

TEST_F(ElasticJob, FailsAtTheFirstFailureWithoutABackoffLimit) {
  AddNode(1);
  Create(R"({"runPolicy":{"backoffLimit":0}})");
  ASSERT_TRUE(AwaitTrains(1));
  const std::string pod = LauncherPod()->metadata.name;

  SetOutcome(pod, "fail");

  ASSERT_TRUE(Await("it fails and the workers go", [&] { return Phase() == "Failed" && Workers().empty(); }));
  EXPECT_THAT(MessageOf("Failed"), HasSubstr(pod));
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("exit code 1"));
}

TEST_F(ElasticJob, SuspendStopsEverythingAndResumeStartsAgain) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  const std::string launcher = Launcher()->metadata.uid;

  Edit(R"({"spec":{"runPolicy":{"suspend":true}}})");

  ASSERT_TRUE(Await("it is suspended and holds nothing", [&] { return Phase() == "Suspended" && HoldsNothing(); }));
  EXPECT_TRUE(IsTrue("Suspended"));
  EXPECT_EQ(TheJob()->status.replicas.granted, 0);

  Edit(R"({"spec":{"runPolicy":{"suspend":false}}})");

  ASSERT_TRUE(AwaitTrains(2));
  EXPECT_FALSE(IsTrue("Suspended"));
  EXPECT_NE(Launcher()->metadata.uid, launcher);
}

TEST_F(ElasticJob, AJobCreatedSuspendedHoldsNothingUntilItIsResumed) {
  AddNode(2);

  Create(R"({"runPolicy":{"suspend":true}})");

  ASSERT_TRUE(Await("it is suspended", [&] { return Phase() == "Suspended"; }));
  EXPECT_TRUE(Stays(
      "it holds nothing", [&] { return HoldsNothing() && !Set(); }, seconds(1)));
  Edit(R"({"spec":{"runPolicy":{"suspend":false}}})");
  EXPECT_TRUE(AwaitTrains(1));
}

TEST_F(ElasticJob, FailsWhenItMissesItsDeadline) {
  AddNode(1);

  Create(R"({"runPolicy":{"activeDeadlineSeconds":3600}})");
  ASSERT_TRUE(AwaitTrains(1));

  // Set only now: it trains first, however long its start took.
  const auto trained = std::chrono::system_clock::now() - TheJob()->status.start_time->value;
  const seconds limit = std::chrono::ceil<seconds>(trained) + seconds(2);
  const std::string number = std::to_string(limit.count());
  Edit(R"({"spec":{"runPolicy":{"activeDeadlineSeconds":)" + number + "}}}");

  ASSERT_TRUE(Await("it fails and holds nothing", [&] { return Phase() == "Failed" && HoldsNothing(); }));
  EXPECT_EQ(ReasonOf("Failed"), "DeadlineExceeded");
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("activeDeadlineSeconds (" + number + " s)"));
  const JobPtr job = TheJob();
  EXPECT_GE(job->status.completion_time->value - job->status.start_time->value, limit);
}

TEST_F(ElasticJob, IsDeletedWithItsChildrenAfterItsTimeToLive) {
  AddNode(1);
  Create(R"({"runPolicy":{"ttlSecondsAfterFinished":2}})");
  ASSERT_TRUE(AwaitTrains(1));

  SetOutcome(LauncherPod()->metadata.name, "succeed");

  ASSERT_TRUE(Await("it is deleted", [&] { return TheJob() == nullptr; }));
  const std::vector<Step> history = world().History(ns());
  EXPECT_TRUE(std::any_of(history.begin(), history.end(), [](const Step& step) {
    return step.kind == &kube::KindOf<api::ElasticHorovodJob>() && step.after &&
           static_cast<const api::ElasticHorovodJob&>(*step.after).status.phase == "Succeeded";
  })) << "it was deleted before it ended";
  EXPECT_TRUE(Await("its children are gone", [&] {
    return world().List<kube::Service>(ns()).empty() && world().List<kube::StatefulSet>(ns()).empty() &&
           world().List<kube::Job>(ns()).empty() && world().List<kube::Secret>(ns()).empty() && AllPods().empty();
  }));
}

TEST_F(ElasticJob, CleanPodPolicySaysWhatIsRemovedAtTheEnd) {
  struct Case {
    std::string name, policy;
    bool keeps_workers, keeps_launcher;
  };
  const Case cases[] = {
      {"running", "Running", false, true}, {"all", "All", false, false}, {"none", "None", true, true}};
  AddNode(6);
  for (const Case& c : cases) {
    Create(R"({"workersSpec":{"maxReplicas":2},"runPolicy":{"cleanPodPolicy":")" + c.policy + "\"}}", c.name);
  }
  for (const Case& c : cases) ASSERT_TRUE(AwaitTrains(2, c.name));

  for (const Case& c : cases) SetOutcome(LauncherPod(c.name)->metadata.name, "succeed");

  for (const Case& c : cases) {
    const std::size_t workers = c.keeps_workers ? 2 : 0;
    const auto is_clean = [&] {
      return Phase(c.name) == "Succeeded" && Workers(c.name).size() == workers &&
             (Launcher(c.name) != nullptr) == c.keeps_launcher;
    };
    ASSERT_TRUE(Await("the end of " + c.name, is_clean));
  }
  EXPECT_TRUE(Stays(
      "what is kept stays",
      [&] {
        return std::all_of(std::begin(cases), std::end(cases), [&](const Case& c) {
          return Workers(c.name).size() == (c.keeps_workers ? 2U : 0U) &&
                 (Launcher(c.name) != nullptr) == c.keeps_launcher;
        });
      },
      seconds(2)));
}

TEST_F(ElasticJob, AnEndedJobStaysEndedWhateverIsEdited) {
  AddNode(2);
  Create(R"({"workersSpec":{"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  SetOutcome(LauncherPod()->metadata.name, "succeed");
  ASSERT_TRUE(Await("it ends", [&] { return Phase() == "Succeeded" && Workers().empty(); }));

  Edit(R"({"spec":{"workersSpec":{"maxReplicas":3},"runPolicy":{"suspend":true}}})");
  ASSERT_TRUE(
      Await("the edit is seen", [&] { return TheJob()->status.observed_generation == TheJob()->metadata.generation; }));

  EXPECT_TRUE(Stays(
      "it stays ended", [&] { return Phase() == "Succeeded" && Workers().empty(); }, seconds(1)));
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

  EXPECT_TRUE(Await("an event of the shrink", [&] {
    return has_event("Warning", "WorkersShrunk", "shrunk from 3 to 2 workers: the rest was unschedulable for 1 s");
  }));
  EXPECT_TRUE(Await("an event of the launcher",
                    [&] { return has_event("Normal", "LauncherStarted", "started the launcher with 2 workers"); }));
  EXPECT_TRUE(Await("an event of the end", [&] { return has_event("Normal", "Succeeded", "the launcher succeeded"); }));
}

}  // namespace
}  // namespace grus::testing
