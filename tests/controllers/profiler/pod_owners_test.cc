// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/pod_owners.h"

#include <gtest/gtest.h>

#include "tests/controllers/profiler/usage_fixture.h"

namespace grus {
namespace {

using kube::Json;

PodOwner OwnerOfPodWith(const std::string& api_version, const std::string& kind, const std::string& name = "train") {
  kube::Pod pod;
  pod.metadata.ns = "team-a";
  pod.metadata.name = "p";
  pod.metadata.uid = "u";
  pod.metadata.owner_references = {
      {.api_version = api_version, .kind = kind, .name = name, .uid = "o", .controller = true}};
  return PodOwnerOf(pod);
}

TEST(PodOwnerOf, AVersionIsAGroupAndAVersion) {
  const PodOwner owner = OwnerOfPodWith("kubeflow.org/v1", "PyTorchJob");
  EXPECT_EQ(owner.ref, (JobRef{"PyTorchJob", {"team-a", "train"}, "o"}));
  EXPECT_EQ(owner.group, "kubeflow.org");
  EXPECT_EQ(owner.version, "v1");
  EXPECT_EQ(OwnerOfPodWith("v1", "ReplicationController").group, "");
  EXPECT_EQ(OwnerOfPodWith("v1", "ReplicationController").version, "v1");
}

TEST(PodOwnerOf, AnOwnerOfOddWordsIsNone) {
  for (const char* api_version : {"batch/v1%2Fnamespaces%2Fteam-b%2Fjobs%2Fvictim?x=", "batch/v1/x", "batch/v1?",
                                  "ba%74ch/v1", "/v1", "batch/", "", "../v1", "batch/..", "v1#", "batch /v1"}) {
    const PodOwner owner = OwnerOfPodWith(api_version, "Job");
    EXPECT_EQ(owner.ref, (JobRef{"Pod", {"team-a", "p"}, "u"})) << api_version;
    EXPECT_EQ(owner.version, "") << api_version;
  }
  EXPECT_EQ(OwnerOfPodWith("batch/v1", "Jo/b").ref.kind, "Pod");
  EXPECT_EQ(OwnerOfPodWith("batch/v1", "Job", "a?b").ref.kind, "Pod");
}

TEST(KindIn, KindsAreExactAndThoseOfAResourceBeginWithACapital) {
  const OwnerKind kinds[] = {{"batch", "jobs", "Job"}, {"ray.io", "rayclusters"}, {"", "replicationcontrollers"}};
  const auto find = [&](const char* api_version, const char* kind) {
    const OwnerKind* found = KindIn(kinds, OwnerOfPodWith(api_version, kind));
    return found == nullptr ? std::string() : found->resource;
  };
  EXPECT_EQ(find("batch/v1", "Job"), "jobs");
  for (const char* kind : {"job", "jOB", "JOB", "Jobs"}) EXPECT_EQ(find("batch/v1", kind), "") << kind;
  EXPECT_EQ(find("v1", "Job"), "");
  EXPECT_EQ(find("ray.io/v1", "RayCluster"), "rayclusters");
  EXPECT_EQ(find("ray.io/v1", "rayCluster"), "");
  EXPECT_EQ(find("other.io/v1", "RayCluster"), "");
  EXPECT_EQ(find("v1", "ReplicationController"), "replicationcontrollers");
  EXPECT_EQ(KindIn(kinds, {}), nullptr);
}

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
  const auto root = RootOf(tapped_, {{"ReplicaSet", {"team-a", "a"}, a}, "apps", "v1"}, {}, {});
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_TRUE(root->uid == a || root->uid == b);
  EXPECT_EQ(tap_.Count("GET", "/apis/apps/v1/namespaces/team-a/replicasets/"), 4);
}

TEST_F(PodOwnersTest, WhatCannotBeReadHasNothingAboveItAndIsNotAskedForAgainAndAgain) {
  std::string deep = "1";
  for (int level = 0; level < 1000; ++level) deep = R"({"a":)" + deep + "}";
  kube::testing::FakeTransport server(clock_);
  server.Handle("GET", "/", [&](const kube::HttpRequest&, const std::stop_token&) -> kube::Result<kube::HttpResponse> {
    return kube::HttpResponse{200, {}, R"({"metadata":{"uid":"u"},"spec":)" + deep + "}"};
  });
  kube::Client client(server, nullptr, clock_);
  const JobRef ref{"RayCluster", {"team-a", "a"}, "u"};
  const OwnerKind kinds[] = {{"ray.io", "rayclusters"}};
  const auto root = RootOf(client, {ref, "ray.io", "v1"}, kinds, {});
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_EQ(*root, ref);
}

}  // namespace
}  // namespace grus
