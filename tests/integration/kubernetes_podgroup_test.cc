// SPDX-License-Identifier: Apache-2.0
// A cluster that serves Kubernetes' own PodGroup (scheduling.k8s.io) beside ours. It takes a cluster of its
// own: the API is off unless a feature gate turns it on.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCluster[] = "kubernetes-podgroup";

struct CommandResult {
  int status = 0;
  std::string output;
};

// tests/cluster/cluster with these words, for our cluster.
CommandResult RunCluster(const std::string& words) {
  const char* command = std::getenv("GRUS_CLUSTER");
  if (command == nullptr)
    throw std::runtime_error("GRUS_CLUSTER, the path of tests/cluster/cluster, is not set");
  const std::string line = "\"" + std::string(command) + "\" " + words + " 2>&1";
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + line);
  CommandResult result;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

std::string MustRun(const std::string& words) {
  const CommandResult result = RunCluster(words);
  if (result.status != 0) throw std::runtime_error("cluster " + words + ": " + result.output);
  return result.output;
}

CommandResult Kubectl(const std::string& words) {
  return RunCluster(std::string("kubectl --name ") + kCluster + " -- " + words);
}

class KubernetesPodGroup : public Gang {
 protected:
  static void SetUpTestSuite() {
    MustRun(std::string("up --feature-gates GenericWorkload=true,GangScheduling=true "
                        "--runtime-config scheduling.k8s.io/v1alpha2=true --name ") +
            kCluster);
    const std::string crds = "\"" + FileOfTree("crds/generated") + "\"";
    MustRun(std::string("kubectl --name ") + kCluster + " -- apply --server-side -f " + crds);
    MustRun(std::string("kubectl --name ") + kCluster +
            " -- wait --for=condition=Established --timeout=30s -f " + crds);
    std::string kubeconfig = MustRun(std::string("kubeconfig --name ") + kCluster);
    kubeconfig.erase(kubeconfig.find_last_not_of('\n') + 1);
    const char* before = std::getenv("KUBECONFIG");
    kubeconfig_before_ = before ? before : "";
    setenv("KUBECONFIG", kubeconfig.c_str(), 1);
    StartWorld();
    StartManager();
  }
  static void TearDownTestSuite() {
    Gang::TearDownTestSuite();
    setenv("KUBECONFIG", kubeconfig_before_.c_str(), 1);
    MustRun(std::string("down --name ") + kCluster);
  }

 private:
  static std::string kubeconfig_before_;
};

std::string KubernetesPodGroup::kubeconfig_before_;

TEST_F(KubernetesPodGroup, BothKindsAreServedAndOursIsFoundByItsFullName) {
  CreateGroup(2);

  const CommandResult ours = Kubectl("get podgroups.scheduling.x-k8s.io -n " + ns());
  const CommandResult short_name = Kubectl("get pg -n " + ns());
  const CommandResult theirs = Kubectl("get podgroups.scheduling.k8s.io -n " + ns());

  EXPECT_EQ(ours.status, 0) << ours.output;
  EXPECT_THAT(ours.output, AllOf(HasSubstr("PHASE"), HasSubstr("gang")));
  EXPECT_THAT(short_name.output, HasSubstr("gang"));
  EXPECT_EQ(theirs.status, 0) << theirs.output;
  EXPECT_THAT(theirs.output, Not(HasSubstr("gang")));
}

TEST_F(KubernetesPodGroup, AGangRunsBesideAGroupOfKubernetesOfTheSameName) {
  AddNode(8);
  const kube::HttpResponse made = world().Send(
      "POST", "/apis/scheduling.k8s.io/v1alpha2/namespaces/" + ns() + "/podgroups", "application/json",
      R"({"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{"name":"gang"},
                       "spec":{"schedulingPolicy":{"gang":{"minCount":2}}}})");
  ASSERT_EQ(made.status, 201) << made.body;
  CreateGroup(2);
  CreateSet(2, 4);

  EXPECT_TRUE(Await("it runs", [&] { return Runs(2); }));
}

TEST_F(KubernetesPodGroup, AnElasticJobTrains) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");

  EXPECT_TRUE(AwaitTrains(2));
}

TEST_F(KubernetesPodGroup, AGangOfKubernetesIsNotTouched) {
  AddNode(8);
  const kube::HttpResponse made = world().Send(
      "POST", "/apis/scheduling.k8s.io/v1alpha2/namespaces/" + ns() + "/podgroups", "application/json",
      R"({"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{"name":"native"},
                       "spec":{"schedulingPolicy":{"gang":{"minCount":2}}}})");
  ASSERT_EQ(made.status, 201) << made.body;
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
