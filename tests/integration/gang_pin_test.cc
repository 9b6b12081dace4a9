// SPDX-License-Identifier: Apache-2.0
// Whether nominations are honoured is tried when a manager starts; where they are not, members are pinned.
#include <algorithm>

#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

class GangNominations : public Gang {
 protected:
  static void SetUpTestSuite() {
    StartWorld();
    StartManager({"--nominations", "always"});
  }
};

TEST_F(GangNominations, ThisClusterHonoursThem) {
  EXPECT_TRUE(manager().AwaitOutput("nominations are honoured here")) << manager().Tail(10);
  EXPECT_TRUE(HttpGet(manager().NumberAfter("metrics_port="), "/metrics").body.find("grus_gang_pins 0") !=
              std::string::npos);
  EXPECT_TRUE(Await("nothing stays of what was tried", [&] {
    return world().Get<kube::Pod>("default", "grus-nomination-probe-held") == nullptr &&
           world().Get<kube::Pod>("default", "grus-nomination-probe-guest") == nullptr;
  }));
}

class GangPin : public Gang {
 protected:
  static void SetUpTestSuite() {
    StartWorld();
    StartManager({"--nominations", "pin"});
  }
  bool WereEverNominated() const {
    const std::vector<Step> steps = world().History(ns());
    return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
      if (step.kind != &kube::KindOf<kube::Pod>() || !step.after) return false;
      return !static_cast<const kube::Pod&>(*step.after).status.nominated_node_name.empty();
    });
  }
};

TEST_F(GangPin, MembersRunOnTheNodesThatTheyArePinnedTo) {
  AddNodes(2, 8);
  CreateGroup(4);
  CreateSet(4, 4);

  ASSERT_TRUE(Await("it runs", [&] { return Runs(4); }));
  for (const PodPtr& pod : Members()) {
    EXPECT_EQ(pod->spec.node_selector.Get("kubernetes.io/hostname"), pod->spec.node_name.view());
    EXPECT_EQ(pod->spec.node_selector.Get("grus.test/pool"), pool()) << "its own selector stays";
  }
  EXPECT_FALSE(WereEverNominated());
}

}  // namespace
}  // namespace grus::testing
