// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/missing_pods.h"

#include <gtest/gtest.h>

#include "clientlib/model/events_v1.h"
#include "tests/controllers/elastic/view_builder.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;

class MissingPodsTest : public testing::ReconcilerFixture {
 protected:
  // The builder's times count from At(0), and so does what is made here.
  View At(View view, int seconds) {
    view.now = grus::testing::At(seconds);
    return view;
  }
  void Warn(const std::string& about_uid, const std::string& name, const char* reason, const char* note, int seconds,
            const char* type = "Warning") {
    Json event = Named("events.k8s.io/v1", "Event", name, "team-a");
    event["eventTime"] = kube::ToText(grus::testing::At(seconds));
    event["reason"] = reason;
    event["note"] = note;
    event["type"] = type;
    event["action"] = "Test";
    event["reportingController"] = "example.com/test";
    event["reportingInstance"] = "test";
    event["regarding"]["uid"] = about_uid;
    event["regarding"]["namespace"] = "team-a";
    event["regarding"]["kind"] = "Pod";
    Create("events.events.k8s.io", std::move(event));
  }
  // Of a job that has its launcher's Job, but no pod of it.
  static kube::Job Launcher() {
    kube::Job launcher;
    launcher.metadata.uid = "job-uid";
    return launcher;
  }
  static View WithoutLauncher() {
    return ViewBuilder().MinMax(2, 2).Granted(2).Ready({0, 1}).Launcher(LauncherState::kActive).Build();
  }

  MissingPods missing_{client_, clock_};
};

TEST_F(MissingPodsTest, ALauncherWithoutAPodForAWhileIsExplainedByItsLastWarning) {
  Warn("job-uid", "a", "FailedCreate", "exceeded quota: of yesterday", 1);
  Warn("job-uid", "b", "FailedCreate", "violates PodSecurity", 3);
  Warn("job-uid", "c", "SuccessfulCreate", "create Pod", 5, "Normal");
  Warn("another-uid", "d", "FailedCreate", "of another Job", 6);
  const View view = WithoutLauncher();
  const kube::Job launcher = Launcher();

  View early = At(view, 0);
  EXPECT_EQ(missing_.Explain(early, &launcher, {}), 8s);
  EXPECT_FALSE(early.refused_launcher) << "a pod may come a moment later";

  clock_.Advance(8s);
  View late = At(view, 8);
  EXPECT_EQ(missing_.Explain(late, &launcher, {}), 10s);
  ASSERT_TRUE(late.refused_launcher);
  EXPECT_EQ(late.refused_launcher->text, "FailedCreate: violates PodSecurity");
}

TEST_F(MissingPodsTest, APassForAnotherReasonPutsNoQuestionOff) {
  const View view = WithoutLauncher();
  const kube::Job launcher = Launcher();
  const auto look_again = [&](int seconds) {
    View now = At(view, seconds);
    return missing_.Explain(now, &launcher, {});
  };
  EXPECT_EQ(look_again(0), 8s);
  EXPECT_EQ(look_again(3), 5s);
  EXPECT_EQ(look_again(8), 10s);
  clock_.Advance(4s);
  EXPECT_EQ(look_again(12), 6s);
}

TEST_F(MissingPodsTest, AsksAtMostEveryTenSeconds) {
  const View view = WithoutLauncher();
  const kube::Job launcher = Launcher();
  const auto explain = [&](int seconds) {
    View now = At(view, seconds);
    missing_.Explain(now, &launcher, {});
    return now.refused_launcher.has_value();
  };
  explain(0);
  EXPECT_FALSE(explain(8));
  Warn("job-uid", "a", "FailedCreate", "exceeded quota", 9);
  EXPECT_FALSE(explain(9));
  clock_.Advance(10s);
  EXPECT_TRUE(explain(18));
}

TEST_F(MissingPodsTest, ARefusedWorkerIsTriedAgainAfterAMoment) {
  const View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Build();
  const kube::Error refusal(kube::ErrorCode::kForbidden, "exceeded quota: team");
  EXPECT_EQ(missing_.NoteCreates(view, refusal), 5s);

  View early = At(view, 0);
  EXPECT_EQ(missing_.Explain(early, nullptr, {}), 5s);
  ASSERT_TRUE(early.refused_workers);
  EXPECT_EQ(early.refused_workers->text, "exceeded quota: team");
  EXPECT_FALSE(early.may_make_workers);

  clock_.Advance(5s);
  View later = At(view, 5);
  missing_.Explain(later, nullptr, {});
  EXPECT_TRUE(later.may_make_workers);
  ASSERT_TRUE(later.refused_workers) << "until one is made";
  EXPECT_EQ(missing_.NoteCreates(later, refusal), 5s);
  View again = At(view, 10);
  missing_.Explain(again, nullptr, {});
  EXPECT_EQ(again.refused_workers->since, early.refused_workers->since) << "the grace runs from the first refusal";

  EXPECT_EQ(missing_.NoteCreates(later, std::nullopt), std::nullopt);
  View made = At(view, 11);
  missing_.Explain(made, nullptr, {});
  EXPECT_FALSE(made.refused_workers);
}

TEST_F(MissingPodsTest, ARefusalBesideAWorkerThatLeavesDoesNotAge) {
  View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Ending({1}).Build();
  missing_.NoteCreates(view, kube::Error(kube::ErrorCode::kForbidden, "exceeded quota: team"));
  View later = At(view, 50);
  missing_.Explain(later, nullptr, {});
  EXPECT_EQ(later.refused_workers->since, grus::testing::At(50));
  View gone = At(ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Build(), 55);
  missing_.Explain(gone, nullptr, {});
  EXPECT_EQ(gone.refused_workers->since, grus::testing::At(50));
}

TEST_F(MissingPodsTest, ARefusalIsOverWhenNoWorkerIsMissing) {
  const View view = ViewBuilder().MinMax(1, 2).Granted(2).Ready({0}).Build();
  missing_.NoteCreates(view, kube::Error(kube::ErrorCode::kForbidden, "exceeded quota: team"));
  View shrunk = ViewBuilder().MinMax(1, 2).Granted(1).Ready({0}).Build();
  missing_.Explain(shrunk, nullptr, {});
  EXPECT_FALSE(shrunk.refused_workers);
  View again = view;
  missing_.Explain(again, nullptr, {});
  EXPECT_FALSE(again.refused_workers) << "what is refused later has a grace of its own";
}

TEST_F(MissingPodsTest, APodThatDoesNotStartIsExplained) {
  Warn("uid-1", "a", "FailedMount", "secret \"data\" not found", 1);
  View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Bound({1}, -6).Build();
  missing_.Explain(view, nullptr, {});
  EXPECT_EQ(view.pods[0].trouble, "");
  EXPECT_EQ(view.pods[1].trouble, "FailedMount: secret \"data\" not found");
}

TEST_F(MissingPodsTest, AWarningThatIsOverExplainsNothing) {
  Warn("uid-1", "a", "FailedScheduling", "0/4 nodes are available", 1);
  Warn("uid-1", "b", "FailedMount", "failed to sync secret cache", 2);
  Warn("uid-1", "c", "Pulling", "Pulling image \"train\"", 3, "Normal");
  View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Bound({1}, -6).Build();
  missing_.Explain(view, nullptr, {});
  EXPECT_EQ(view.pods[1].trouble, "") << "a large image is no trouble";

  Warn("uid-1", "d", "Failed", "Failed to pull image", 4);
  Warn("uid-1", "e", "SandboxChanged", "it will be killed and re-created", 5, "Normal");
  clock_.Advance(10s);
  missing_.Explain(view, nullptr, {});
  EXPECT_EQ(view.pods[1].trouble, "Failed: Failed to pull image");
}

TEST_F(MissingPodsTest, AWorkerWhoseNodeFallsSilentIsNotOneThatDoesNotStart) {
  Warn("uid-1", "a", "NodeNotReady", "Node is not ready", 1);
  View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Bound({1}, -600).Build();
  view.pods[1].has_started = true;
  EXPECT_EQ(missing_.Explain(view, nullptr, {}), std::nullopt);
  EXPECT_EQ(view.pods[1].trouble, "") << "its GPUs would be given back while it trains";
}

TEST_F(MissingPodsTest, WhatAJobWasRefusedLongAgoExplainsNothing) {
  Warn("job-uid", "a", "FailedCreate", "exceeded quota", -3600);
  const View view = WithoutLauncher();
  const kube::Job launcher = Launcher();
  for (const int seconds : {0, 8}) {
    View now = At(view, seconds);
    missing_.Explain(now, &launcher, {});
    EXPECT_FALSE(now.refused_launcher);
  }
}

TEST_F(MissingPodsTest, WhatHasAllItsPodsIsNotAskedAbout) {
  View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0, 1}).LauncherRuns().Build();
  EXPECT_EQ(missing_.Explain(view, nullptr, {}), std::nullopt);
}

}  // namespace
}  // namespace grus
