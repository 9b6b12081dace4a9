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
  kube::StatefulSet Workers() const {
    kube::StatefulSet set;
    set.metadata.uid = "set-uid";
    return set;
  }

  MissingPods missing_{client_, clock_};
};

TEST_F(MissingPodsTest, ASetThatLacksPodsForAWhileIsExplainedByItsLastWarning) {
  Warn("set-uid", "a", "FailedCreate", "exceeded quota: of yesterday", 1);
  Warn("set-uid", "b", "FailedCreate", "violates PodSecurity", 3);
  Warn("set-uid", "c", "SuccessfulCreate", "create Pod", 5, "Normal");
  Warn("another-uid", "d", "FailedCreate", "of another set", 6);
  const View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Bound({0}, 0).Build();
  const kube::StatefulSet set = Workers();

  View early = At(view, 0);
  EXPECT_EQ(missing_.Explain(early, &set, nullptr, {}), 8s);
  EXPECT_FALSE(early.refused_workers) << "a pod may come a moment later";

  clock_.Advance(8s);
  View late = At(view, 8);
  EXPECT_EQ(missing_.Explain(late, &set, nullptr, {}), 10s);
  ASSERT_TRUE(late.refused_workers);
  EXPECT_EQ(late.refused_workers->text, "FailedCreate: violates PodSecurity");
}

TEST_F(MissingPodsTest, APassForAnotherReasonPutsNoQuestionOff) {
  const View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Build();
  const kube::StatefulSet set = Workers();
  const auto look_again = [&](int seconds) {
    View now = At(view, seconds);
    return missing_.Explain(now, &set, nullptr, {});
  };
  EXPECT_EQ(look_again(0), 8s);
  EXPECT_EQ(look_again(3), 5s);
  EXPECT_EQ(look_again(8), 10s);
  clock_.Advance(4s);
  EXPECT_EQ(look_again(12), 6s);
}

TEST_F(MissingPodsTest, AsksAtMostEveryTenSeconds) {
  const View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Build();
  const kube::StatefulSet set = Workers();
  const auto explain = [&](int seconds) {
    View now = At(view, seconds);
    missing_.Explain(now, &set, nullptr, {});
    return now.refused_workers.has_value();
  };
  explain(0);
  EXPECT_FALSE(explain(8));
  Warn("set-uid", "a", "FailedCreate", "exceeded quota", 9);
  EXPECT_FALSE(explain(9));
  clock_.Advance(10s);
  EXPECT_TRUE(explain(18));
}

TEST_F(MissingPodsTest, NothingIsAskedOfASetThatItsControllerHasNotSeen) {
  Warn("set-uid", "a", "FailedCreate", "exceeded quota", 1);
  const View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Unobserved().Build();
  const kube::StatefulSet set = Workers();
  for (const int seconds : {0, 60}) {
    View now = At(view, seconds);
    EXPECT_EQ(missing_.Explain(now, &set, nullptr, {}), std::nullopt);
    EXPECT_FALSE(now.refused_workers);
  }
}

TEST_F(MissingPodsTest, APodThatDoesNotStartIsExplained) {
  Warn("uid-1", "a", "FailedMount", "secret \"data\" not found", 1);
  View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Ready({0}).Bound({1}, -6).Build();
  const kube::StatefulSet set = Workers();
  missing_.Explain(view, &set, nullptr, {});
  EXPECT_EQ(view.pods[0].trouble, "");
  EXPECT_EQ(view.pods[1].trouble, "FailedMount: secret \"data\" not found");
}

TEST_F(MissingPodsTest, AWarningThatIsOverExplainsNothing) {
  Warn("uid-1", "a", "FailedScheduling", "0/4 nodes are available", 1);
  Warn("uid-1", "b", "FailedMount", "failed to sync secret cache", 2);
  Warn("uid-1", "c", "Pulling", "Pulling image \"train\"", 3, "Normal");
  View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Ready({0}).Bound({1}, -6).Build();
  const kube::StatefulSet set = Workers();
  missing_.Explain(view, &set, nullptr, {});
  EXPECT_EQ(view.pods[1].trouble, "") << "a large image is no trouble";

  Warn("uid-1", "d", "Failed", "Failed to pull image", 4);
  Warn("uid-1", "e", "SandboxChanged", "it will be killed and re-created", 5, "Normal");
  clock_.Advance(10s);
  missing_.Explain(view, &set, nullptr, {});
  EXPECT_EQ(view.pods[1].trouble, "Failed: Failed to pull image");
}

TEST_F(MissingPodsTest, AWorkerWhoseNodeFallsSilentIsNotOneThatDoesNotStart) {
  Warn("uid-1", "a", "NodeNotReady", "Node is not ready", 1);
  View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Ready({0}).Bound({1}, -600).Build();
  view.pods[1].has_started = true;
  const kube::StatefulSet set = Workers();
  EXPECT_EQ(missing_.Explain(view, &set, nullptr, {}), std::nullopt);
  EXPECT_EQ(view.pods[1].trouble, "") << "its GPUs would be given back while it trains";
}

TEST_F(MissingPodsTest, WhatASetWasRefusedLongAgoExplainsNothing) {
  Warn("set-uid", "a", "FailedCreate", "exceeded quota", -3600);
  const View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Build();
  const kube::StatefulSet set = Workers();
  for (const int seconds : {0, 8}) {
    View now = At(view, seconds);
    missing_.Explain(now, &set, nullptr, {});
    EXPECT_FALSE(now.refused_workers);
  }
}

TEST_F(MissingPodsTest, WhatHasAllItsPodsIsNotAskedAbout) {
  View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Ready({0, 1}).LauncherRuns().Build();
  const kube::StatefulSet set = Workers();
  EXPECT_EQ(missing_.Explain(view, &set, nullptr, {}), std::nullopt);
}

}  // namespace
}  // namespace grus
