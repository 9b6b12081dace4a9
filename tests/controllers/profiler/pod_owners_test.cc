// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/pod_owners.h"

#include <gtest/gtest.h>

#include "tests/controllers/profiler/usage_fixture.h"

namespace grus {
namespace {

using kube::Json;

using PodOwnersTest = testing::UsageFixture;

TEST_F(PodOwnersTest, ThatOwnEachOtherAreAskedForAFewTimes) {
  Start();
  const auto make = [this](const std::string& name) {
    Json set = Named("apps/v1", "ReplicaSet", name, "team-a");
    set["spec"] = *kube::ParseJson(R"({"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":)"
                                   R"("b"}},"spec":{"containers":[{"name":"c","image":"a"}]}}})");
    return *(**server_.Create("replicasets.apps", std::move(set))).At({"metadata", "uid"})->AsString();
  };
  const std::string a = make("a"), b = make("b");
  const auto control = [this](const std::string& child, const std::string& owner, const std::string& uid) {
    Edit("replicasets.apps", {"team-a", child}, [&](Json& set) {
      set["metadata"]["ownerReferences"] =
          *kube::ParseJson(R"([{"apiVersion":"apps/v1","kind":"ReplicaSet","controller":true,"name":")" + owner +
                           R"(","uid":")" + uid + R"("}])");
    });
  };
  control("a", "b", b);
  control("b", "a", a);
  const auto root = RootOf(tapped_, {{"ReplicaSet", {"team-a", "a"}, a}, "apps/v1"}, {}, {});
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_TRUE(root->uid == a || root->uid == b);
  EXPECT_EQ(tap_.Count("GET", "/apis/apps/v1/namespaces/team-a/replicasets/"), 4);
}

}  // namespace
}  // namespace grus
