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

}  // namespace
}  // namespace grus::testing
