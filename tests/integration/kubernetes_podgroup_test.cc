// SPDX-License-Identifier: Apache-2.0
// A cluster that serves Kubernetes' own PodGroup (scheduling.k8s.io) beside ours. It takes a cluster of its
// own: the API is off unless a feature gate turns it on.
#include "tests/integration/gang_fixture.h"
#include "tests/integration/own_cluster.h"

namespace grus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KubernetesPodGroup : public Gang {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<OwnCluster>("kubernetes-podgroup",
                                            "--feature-gates GenericWorkload=true,GangScheduling=true "
                                            "--runtime-config scheduling.k8s.io/v1alpha2=true");
    StartWorld();
    StartManager();
  }
  static void TearDownTestSuite() {
    Gang::TearDownTestSuite();
    cluster_.reset();
  }
  static kit::CommandResult Kubectl(const std::string& words) { return cluster_->Kubectl(words); }

  void CreateGroupOfKubernetes(const std::string& name) {
    const kube::HttpResponse made =
        world().Send("POST", "/apis/scheduling.k8s.io/v1alpha2/namespaces/" + ns() + "/podgroups", "application/json",
                     R"({"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{"name":")" + name +
                         R"("},"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}})");
    ASSERT_EQ(made.status, 201) << made.body;
  }

 private:
  static std::unique_ptr<OwnCluster> cluster_;
};

std::unique_ptr<OwnCluster> KubernetesPodGroup::cluster_;

TEST_F(KubernetesPodGroup, BothKindsAreServedAndOursIsFoundByItsFullName) {
  CreateGroup(2);

  const kit::CommandResult ours = Kubectl("get podgroups.scheduling.x-k8s.io -n " + ns());
  const kit::CommandResult short_name = Kubectl("get pg -n " + ns());
  const kit::CommandResult theirs = Kubectl("get podgroups.scheduling.k8s.io -n " + ns());

  EXPECT_EQ(ours.status, 0) << ours.output;
  EXPECT_THAT(ours.output, AllOf(HasSubstr("PHASE"), HasSubstr("gang")));
  EXPECT_THAT(short_name.output, HasSubstr("gang"));
  EXPECT_EQ(theirs.status, 0) << theirs.output;
  EXPECT_THAT(theirs.output, Not(HasSubstr("gang")));
}

TEST_F(KubernetesPodGroup, AGangRunsBesideAGroupOfKubernetesOfTheSameName) {
  AddNode(8);
  CreateGroupOfKubernetes(kGroup);
  CreateGroup(2);
  CreateSet(2, 4);

  EXPECT_TRUE(Await("it runs", [&] { return Runs(2); }));
}

TEST_F(KubernetesPodGroup, AGangOfKubernetesIsNotTouched) {
  AddNode(8);
  CreateGroupOfKubernetes("native");
  for (const char* name : {"a", "b"}) {
    kube::Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{}})");
    pod["metadata"]["name"] = name;
    pod["spec"] = PodSpec(1);
    pod["spec"].Erase("schedulingGates");
    pod["spec"]["schedulingGroup"]["podGroupName"] = "native";
    world().Create(kube::KindOf<kube::Pod>(), ns(), pod);
  }

  EXPECT_TRUE(Await("both are bound", [&] { return IsBound(*ThePod("a")) && IsBound(*ThePod("b")); }));
  EXPECT_TRUE(ThePod("a")->metadata.annotations.empty());
}

}  // namespace
}  // namespace grus::testing
