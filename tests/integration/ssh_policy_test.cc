// SPDX-License-Identifier: Apache-2.0
// --ssh-network-policies: who reaches the ssh servers of a job's workers. No network plugin runs here: what the API
// server stores is what is tested.
#include <gtest/gtest.h>

#include "controllers/elastic/elastic_children.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

class SshPolicies : public ElasticJob {
 protected:
  static void SetUpTestSuite() {
    StartWorld();
    StartManager({"--ssh-network-policies"});
  }
  auto Policies() const { return world().List<kube::NetworkPolicy>(ns()); }
};

TEST_F(SshPolicies, AJobsPolicyIsThereBeforeItsWorkersStartAndGoesWithIt) {
  AddNode(8);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));

  ASSERT_EQ(Policies().size(), 1U);
  const kube::ObjectMeta policy = Policies().front()->metadata;
  const kube::Json stored = FromText(
      world().Send("GET", "/apis/networking.k8s.io/v1/namespaces/" + ns() + "/networkpolicies/" + policy.name).body);
  EXPECT_EQ(*stored.Find("spec"), *MakeSshPolicy(*TheJob()).Find("spec"));
  for (const PodPtr& worker : Workers()) EXPECT_LE(policy.creation_timestamp, worker->metadata.creation_timestamp);

  Delete<api::ElasticHorovodJob>(kName);
  EXPECT_TRUE(Await("the garbage collector takes it", [&] { return Policies().empty(); }));
}

}  // namespace
}  // namespace grus::testing
