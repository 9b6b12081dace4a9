// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/job_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

Json WithAnnotation(Json job, std::string_view name, std::string_view value) {
  job["spec"]["template"]["metadata"]["annotations"][name] = value;
  return job;
}

bool HasCondition(ClusterWorld& world, std::string_view type) {
  return HasTrueCondition(world.Get("jobs.batch", "train"), type);
}

TEST(JobController, CompletesWhenItsPodSucceeds) {
  ClusterWorld world;
  const TimePoint start = world.simulation.Now();

  world.Create("jobs.batch", WithAnnotation(ClusterWorld::Job("train", 3), "grus.test/run-seconds", "60"));
  world.RunUntil([&] { return HasCondition(world, "Complete"); });

  EXPECT_NEAR(world.SecondsSince(start), 63, 3);
  const Json job = world.Get("jobs.batch", "train");
  EXPECT_TRUE(HasTrueCondition(job, "SuccessCriteriaMet"));
  EXPECT_EQ(IntAt(job, {"status", "succeeded"}), 1);
  EXPECT_EQ(IntAt(job, {"status", "active"}), 0);
  EXPECT_FALSE(TextAt(job, {"status", "completionTime"}).empty());
  ASSERT_EQ(world.CountPods("Succeeded"), 1);
  const auto pods = world.server.List("pods", "default");
  EXPECT_FALSE(HasFinalizer(*pods[0], "batch.kubernetes.io/job-tracking"));
  EXPECT_EQ(LabelOf(*pods[0], "batch.kubernetes.io/job-name"), "train");
  EXPECT_THAT(std::string(NameOf(*pods[0])), StartsWith("train-"));
}

TEST(JobController, FailsAfterItsTriesWithGrowingDelays) {
  ClusterWorld world;
  const TimePoint start = world.simulation.Now();

  world.Create("jobs.batch", WithAnnotation(ClusterWorld::Job("train", 3), "grus.test/outcome", "fail"));
  world.RunUntil([&] { return HasCondition(world, "Failed"); });

  EXPECT_NEAR(world.SecondsSince(start), 10 + 20 + 40 + 6, 6);
  const Json job = world.Get("jobs.batch", "train");
  EXPECT_EQ(TextAt(*ConditionOf(job, "Failed"), {"reason"}), "BackoffLimitExceeded");
  EXPECT_TRUE(HasTrueCondition(job, "FailureTarget"));
  EXPECT_EQ(IntAt(job, {"status", "failed"}), 4);
  EXPECT_EQ(world.CountPods("Failed"), 4);
}

TEST(JobController, SuspendedJobHasNoPodsUntilItResumes) {
  ClusterWorld world;
  world.Create("jobs.batch", ClusterWorld::Job("train", 3));
  world.Run(30s);
  ASSERT_EQ(world.CountPods("Running"), 1);

  world.Change("jobs.batch", "train", [](Json& job) { job["spec"]["suspend"] = true; });
  world.Run(30s);
  EXPECT_TRUE(world.PodNames().empty());
  EXPECT_TRUE(HasCondition(world, "Suspended"));
  EXPECT_EQ(IntAt(world.Get("jobs.batch", "train"), {"status", "failed"}), 0);

  world.Change("jobs.batch", "train", [](Json& job) { job["spec"]["suspend"] = false; });
  world.Run(30s);
  EXPECT_EQ(world.CountPods("Running"), 1);
  EXPECT_FALSE(HasCondition(world, "Suspended"));
}

TEST(JobController, DisruptedPodsDoNotCountUnderAnIgnoreRule) {
  ClusterWorld world;
  Json job = ClusterWorld::Job("train", 0);
  job["spec"]["podFailurePolicy"] = *ParseJson(
      R"({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]})");
  world.Create("jobs.batch", std::move(job));
  world.Run(30s);
  const auto pods = world.server.List("pods", "default");
  ASSERT_EQ(pods.size(), 1U);

  world.cluster.RemoveNode(std::string(NodeOf(*pods[0])));
  world.Run(2min);

  EXPECT_EQ(world.CountPods("Running"), 1);
  EXPECT_FALSE(HasCondition(world, "Failed"));
  EXPECT_EQ(IntAt(world.Get("jobs.batch", "train"), {"status", "failed"}), 0);
}

// A job whose pods exit with `code`, under rules; what becomes of it within two minutes.
struct PolicyCase {
  const char* rules;
  const char* code;
  int failed, backoff_limit;
  std::string_view reason;  // Of its condition Failed; empty: it goes on.
  const char* message = "";
};

TEST(JobController, RulesDecideByExitCodes) {
  static constexpr char kIgnoreIn[] =
      R"([{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42, 43]}}])";
  static constexpr char kCountIn[] = R"([{"action": "Count", "onExitCodes": {"operator": "In", "values": [42]}},
      {"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}])";
  static constexpr char kFailNotIn[] =
      R"([{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}])";
  static constexpr char kOfAnother[] =
      R"([{"action": "Ignore", "onExitCodes": {"containerName": "other", "operator": "In", "values": [42]}}])";
  static constexpr char kOfThis[] =
      R"([{"action": "Ignore", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}}])";
  for (const PolicyCase& c : {
           PolicyCase{kIgnoreIn, "42", 0, 0, ""},
           PolicyCase{kIgnoreIn, "1", 1, 0, "BackoffLimitExceeded"},
           PolicyCase{kCountIn, "42", 1, 0, "BackoffLimitExceeded"},
           PolicyCase{kCountIn, "7", 0, 0, ""},
           PolicyCase{kCountIn, "1", 1, 0, "BackoffLimitExceeded"},
           PolicyCase{kFailNotIn, "9", 1, 6, "PodFailurePolicy",
                      "failed with exit code 9 matching FailJob rule at index 0"},
           PolicyCase{kOfAnother, "42", 1, 0, "BackoffLimitExceeded"},
           PolicyCase{kOfThis, "42", 0, 0, ""},
       }) {
    ClusterWorld world;
    Json job = WithAnnotation(ClusterWorld::Job("train", c.backoff_limit), "grus.test/outcome", "fail");
    job = WithAnnotation(std::move(job), "grus.test/exit-code", c.code);
    job["spec"]["podFailurePolicy"]["rules"] = *ParseJson(c.rules);
    world.Create("jobs.batch", std::move(job));

    world.Run(2min);

    const std::string what = std::string(c.rules) + " exit code " + c.code;
    const Json after = world.Get("jobs.batch", "train");
    EXPECT_EQ(IntAt(after, {"status", "failed"}), c.failed) << what;
    const Json* const failed = ConditionOf(after, "Failed");
    EXPECT_EQ(failed ? TextAt(*failed, {"reason"}) : "", c.reason) << what;
    EXPECT_THAT(failed ? std::string(TextAt(*failed, {"message"})) : "", HasSubstr(c.message)) << what;
    if (c.reason.empty()) {
      EXPECT_GE(world.CountPods("Failed"), 3) << what;
    }
  }
}

TEST(JobController, SaysWhyItsPodIsRefusedAndTriesAgain) {
  ClusterWorld world;
  world.Enforce("restricted");
  world.Create("jobs.batch", ClusterWorld::Job("train", 0));

  world.Run(1min);

  // After 1, 2, 4, 8, 16 and 32 s, each time with the name of a new pod.
  const std::vector<std::string> events = world.Events("FailedCreate", "train");
  EXPECT_THAT(events, SizeIs(6));
  EXPECT_THAT(events, Each(StartsWith("1 x Error creating: pods \"train-")));
  EXPECT_THAT(events, Each(HasSubstr("is forbidden: violates PodSecurity \"restricted:latest\": ")));
  EXPECT_FALSE(HasCondition(world, "Failed"));

  world.Enforce("");
  world.RunUntil([&] { return world.CountPods("Running") == 1; });
  EXPECT_EQ(world.Events("SuccessfulCreate", "train"),
            std::vector<std::string>{"1 x Created pod: " + world.PodNames().at(0)});
}

}  // namespace
}  // namespace kube::testing
