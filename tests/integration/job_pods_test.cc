// SPDX-License-Identifier: Apache-2.0
// Jobs whose pods are others than their templates say, and whose launcher needs room: the real API server decides.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

// Nodes have 96 processors.
class ElasticJobPods : public ElasticJob {
 protected:
  void Post(const std::string& path, const std::string& body) {
    const kube::HttpResponse answer = world().Send("POST", path, "application/json", body);
    if (answer.status != 201) throw std::runtime_error(path + ": " + answer.body);
  }
  ::testing::AssertionResult AwaitWaits(const std::string& reason) {
    const auto waits = Await("it waits", [&] { return ReasonOf("Ready") == reason; });
    if (!waits) return waits;
    return Stays(
        "it makes nothing", [&] { return HoldsNothing(); }, std::chrono::seconds(2));
  }
};

TEST_F(ElasticJobPods, WhatALimitRangeAddsIsPlannedWith) {
  AddNodes(1, 8);
  Post("/api/v1/namespaces/" + ns() + "/limitranges",
       R"({"metadata":{"name":"range"},"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"40"}}]}})");

  Create(R"({"workersSpec":{"minReplicas":4,"maxReplicas":8}})");

  ASSERT_TRUE(AwaitWaits("CannotFit"));
  EXPECT_THAT(MessageOf("Ready"), HasSubstr(" in all: lower minReplicas or add nodes; as the API server makes it"));

  AddNode(8);

  EXPECT_TRUE(AwaitTrains(4));
}

TEST_F(ElasticJobPods, AJobWaitsForTheVolumesOfItsWorkersWithoutThem) {
  AddNodes(1, 8);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2,"template":{"spec":{
      "containers":[{"name":"worker","volumeMounts":[{"name":"data","mountPath":"/data"}]}],
      "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]}}}})");
  ASSERT_TRUE(AwaitWaits("WaitingForRoom"));
  EXPECT_THAT(MessageOf("Ready"),
              HasSubstr("no pod of it can be placed: PersistentVolumeClaim " + ns() + "/data does not exist"));

  const std::string spec = R"("spec":{"storageClassName":")" + ns() + R"(","accessModes":["ReadWriteMany"],)";
  Post("/api/v1/persistentvolumes", R"({"metadata":{"name":")" + ns() + R"(-data"},)" + spec +
                                        R"("capacity":{"storage":"1Gi"},"hostPath":{"path":"/data"}}})");
  Post("/api/v1/namespaces/" + ns() + "/persistentvolumeclaims",
       R"({"metadata":{"name":"data"},)" + spec + R"("resources":{"requests":{"storage":"1Gi"}}}})");

  EXPECT_TRUE(AwaitTrains(2));
  (void)world().Send("DELETE", "/api/v1/persistentvolumes/" + ns() + "-data", "application/json", "{}");
}

}  // namespace
}  // namespace grus::testing
