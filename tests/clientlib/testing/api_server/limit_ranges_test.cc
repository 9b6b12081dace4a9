// SPDX-License-Identifier: Apache-2.0
// What tests/contract cannot see of LimitRanges, as the real server's caches decide it there.
#include "clientlib/testing/api_server/limit_ranges.h"

#include <gtest/gtest.h>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/fake_clock.h"

namespace kube::testing {
namespace {

class LimitRanges : public ::testing::Test {
 protected:
  void MakeRange(std::string_view ns, std::string_view name, std::string_view defaults) {
    Json range = *ParseJson(R"({"spec":{"limits":[{"type":"Container"}]}})");
    range["metadata"] = Json::MakeObject({{"name", name}, {"namespace", ns}});
    range["spec"]["limits"].AsArray()->front()["defaultRequest"] = *ParseJson(defaults);
    ASSERT_TRUE(server_.Create("limitranges", range));
  }
  std::string ResourcesOfNewPod() {
    const auto made = server_.Create("pods", *ParseJson(R"({"metadata":{"name":"p","namespace":"default"},
                                                           "spec":{"containers":[{"name":"c","image":"i"}]}})"));
    if (!made) return made.error().message();
    const Json* const resources = ItemsAt(**made, {"spec", "containers"}).front().Find("resources");
    return ToText(*resources);
  }

  FakeClock clock_;
  FakeApiServer server_{clock_, {}};
};

TEST_F(LimitRanges, TheFirstGivesAndTheOthersGiveTheRest) {
  MakeRange("default", "a", R"({"cpu":"1"})");
  MakeRange("default", "b", R"({"cpu":"2","memory":"1Gi"})");

  EXPECT_EQ(ResourcesOfNewPod(), R"({"requests":{"cpu":"1","memory":"1Gi"}})");
}

TEST_F(LimitRanges, AreForTheirNamespaceAlone) {
  ASSERT_TRUE(server_.Create("namespaces", *ParseJson(R"({"metadata":{"name":"other"}})")));
  MakeRange("other", "a", R"({"cpu":"1"})");

  EXPECT_EQ(ResourcesOfNewPod(), "{}");
}

}  // namespace
}  // namespace kube::testing
