// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/quota_controller.h"

#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

struct QuotaWorld : ClusterWorld {
  explicit QuotaWorld(const char* gpus) {
    Json quota = *ParseJson(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"team"}})");
    quota["metadata"]["namespace"] = "default";
    quota["spec"]["hard"]["requests.nvidia.com/gpu"] = gpus;
    Create("resourcequotas", std::move(quota));
    Run(2s);
  }
  std::string Of(std::string_view list) {
    const Json quota = Get("resourcequotas", "team");
    return std::string(TextAt(quota, {"status", list, "requests.nvidia.com/gpu"}));
  }
};

TEST(QuotaController, PutsAQuotaIntoForce) {
  QuotaWorld world("2");
  EXPECT_EQ(world.Of("hard"), "2");
  EXPECT_EQ(world.Of("used"), "0");

  world.Change("resourcequotas", "team", [](Json& quota) { quota["spec"]["hard"]["requests.nvidia.com/gpu"] = "3"; });
  EXPECT_EQ(world.Of("hard"), "2") << "not at once";
  world.Run(2s);
  EXPECT_EQ(world.Of("hard"), "3");
}

TEST(QuotaController, AStatefulSetGetsWhatIsAdmittedAndTheRestWhenItIsMore) {
  QuotaWorld world("2");
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("w", 4));
  world.Run(10s);
  EXPECT_EQ(world.server.List("pods", "default").size(), 2U);
  EXPECT_EQ(world.Of("used"), "2");

  world.Change("resourcequotas", "team", [](Json& quota) { quota["spec"]["hard"]["requests.nvidia.com/gpu"] = "4"; });
  world.Run(30min);

  EXPECT_EQ(world.server.List("pods", "default").size(), 4U);
}

TEST(QuotaController, APodThatIsGoneOrHasEndedGivesBack) {
  QuotaWorld world("2");
  for (const char* name : {"a", "b"}) world.Create("pods", ClusterWorld::Pod(name));
  EXPECT_EQ(world.Of("used"), "2");
  EXPECT_FALSE(world.server.Create("pods", ClusterWorld::Pod("c")));

  world.Delete("pods", "a");
  world.Run(1min);
  EXPECT_EQ(world.Of("used"), "1");

  world.Change("pods", "b", [](Json& pod) { pod["metadata"]["annotations"]["grus.test/outcome"] = "succeed"; });
  world.Run(1min);
  EXPECT_EQ(world.Of("used"), "0");
}

}  // namespace
}  // namespace kube::testing
