// SPDX-License-Identifier: Apache-2.0
// A cluster on which our CRDs are not installed yet. Deletes them and brings them back, and with them every
// ElasticHorovodJob: the cluster must be the test's own. By its file name this comes last.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

constexpr char kCrd[] = "elastichorovodjobs.ai.centauruscloud.io";
constexpr char kCrdsPath[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

class WithoutCrds : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }
};

TEST_F(WithoutCrds, TheManagerSaysWhatIsMissingAndGoesOnOnceItIsThere) {
  const std::string path = std::string(kCrdsPath) + "/" + kCrd;
  kube::Json crd = FromText(world().Send("GET", path).body);
  crd["metadata"] = kube::Json::MakeObject({{"name", kCrd}});
  crd.Erase("status");
  Must(client().Delete(kube::KindOf<CustomResourceDefinition>(), {"", kCrd}));
  ASSERT_TRUE(Await("it is gone", [&] { return world().Get<CustomResourceDefinition>("", kCrd) == nullptr; }));
  // The server takes the path away a moment after the object.
  for (int i = 0;
       i < 10000 && world().Send("GET", "/apis/ai.centauruscloud.io/v1alpha1/elastichorovodjobs").status == 200;)
    ++i;

  ManagerProcess manager({"--metrics-address", "0", "--health-address", "0"});
  EXPECT_TRUE(manager.AwaitOutput("is not installed: kubectl apply -f crds/generated")) << manager.output();
  const kube::HttpResponse made = world().Send("POST", kCrdsPath, "application/json", ToText(crd));
  ASSERT_EQ(made.status, 201) << made.body;

  EXPECT_TRUE(manager.AwaitOutput("caches are synced")) << manager.output();
  AddNode(1);
  Create("{}");
  EXPECT_TRUE(AwaitTrains(1)) << manager.Tail(20);
  EXPECT_EQ(manager.Terminate(), 0) << manager.Tail(20);
}

}  // namespace
}  // namespace grus::testing
