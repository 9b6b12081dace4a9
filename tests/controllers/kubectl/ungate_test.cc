// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/ungate.h"

#include <gmock/gmock.h>

#include <sstream>

#include "clientlib/model/pod.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Ungate : public ::testing::Test {
 protected:
  Ungate() {
    for (const char* ns : {"team-a", "team-b"}) {
      Create("namespaces", std::string(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")") + ns + "\"}}");
      Create("serviceaccounts", std::string(R"({"apiVersion":"v1","kind":"ServiceAccount",
                                 "metadata":{"name":"default","namespace":")") +
                                    ns + "\"}}");
    }
  }
  void Create(const char* resource, const std::string& object) {
    const auto created = server_.Create(resource, *kube::ParseJson(object));
    if (!created) throw std::logic_error(created.error().message());
  }
  // `gates`: "a,b". `more`: further metadata.
  void AddPod(const std::string& ns, const std::string& name, const std::vector<std::string>& gates,
              const std::string& more = "") {
    Json pod = *kube::ParseJson(R"({"apiVersion":"v1","kind":"Pod","metadata":{)" + more +
                                R"(},"spec":{"containers":[{"name":"c","image":"i"}]}})");
    pod["metadata"]["name"] = name;
    pod["metadata"]["namespace"] = ns;
    for (const std::string& gate : gates) pod["spec"]["schedulingGates"].Append(Json::MakeObject({{"name", gate}}));
    const auto created = server_.Create("pods", std::move(pod));
    if (!created) throw std::logic_error(created.error().message());
  }
  std::vector<std::string> GatesOf(const std::string& ns, const std::string& name) {
    const auto pod = client_.Get<kube::Pod>({ns, name});
    std::vector<std::string> gates;
    for (const auto& gate : (*pod)->spec.scheduling_gates) gates.emplace_back(gate.name);
    return gates;
  }
  int Run(const std::string& ns, bool must_lift) {
    out_.str("");
    return UngatePods(client_, ns, must_lift, out_, error_);
  }

  static constexpr char kGate[] = "scheduling.x-k8s.io/gang";
  kube::testing::FakeClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  kube::Client client_{server_, nullptr, clock_};
  std::stringstream out_, error_;
};

TEST_F(Ungate, NamesCannotCommandTheTerminal) {
  AddPod("team-a", "train-0", {kGate}, R"("ownerReferences":
         [{"apiVersion":"apps/v1","kind":"StatefulSet","name":"train\u001b[2J","uid":"u","controller":true}])");

  EXPECT_EQ(Run("team-a", false), 0);

  EXPECT_THAT(out_.str(), HasSubstr(R"(StatefulSet train\u001b[2J)"));
}

TEST_F(Ungate, SaysWhichPodsWaitAndChangesNothing) {
  AddPod("team-a", "train-0", {kGate}, R"("labels":{"scheduling.x-k8s.io/pod-group":"train"},"ownerReferences":
         [{"apiVersion":"apps/v1","kind":"StatefulSet","name":"train","uid":"u","controller":true}])");
  AddPod("team-a", "plain", {});
  AddPod("team-b", "other", {kGate});

  EXPECT_EQ(Run("team-a", false), 0);

  EXPECT_EQ(
      out_.str(),
      "NAMESPACE   POD       PODGROUP   WITHOUT THE GATE\n"
      "team-a      train-0   train      can be scheduled\n"
      "\n"
      "1 pod would be ungated in namespace team-a; nothing was changed. Run it again with --yes to lift the gates.\n"
      "\n"
      "New pods of these workloads will wait again, unless you remove the gate from their templates:\n"
      "team-a   StatefulSet train\n");
  EXPECT_THAT(GatesOf("team-a", "train-0"), ElementsAre(kGate));
}

TEST_F(Ungate, LiftsTheGatesOfGrusAndLeavesThoseOfOthers) {
  AddPod("team-a", "mine", {kGate});
  AddPod("team-b", "shared", {"example.com/quota", kGate});

  EXPECT_EQ(Run("", true), 0);

  EXPECT_THAT(GatesOf("team-a", "mine"), ElementsAre());
  EXPECT_THAT(GatesOf("team-b", "shared"), ElementsAre("example.com/quota"));
  EXPECT_THAT(out_.str(), HasSubstr("team-b      shared   <none>     still gated by others\n\n2 pods ungated.\n"));
  EXPECT_EQ(error_.str(), "");
  const auto pod = client_.Get<kube::Pod>({"team-b", "shared"});
  EXPECT_TRUE((*pod)->metadata.annotations.empty()) << "grus must not take it for one that it let go";
}

TEST_F(Ungate, WhereNobodyWaitsItSaysSo) {
  AddPod("team-a", "plain", {"example.com/quota"});
  EXPECT_EQ(Run("", true), 0);
  EXPECT_EQ(out_.str(), "no pod waits for a gate of grus\n");
}

TEST_F(Ungate, APodThatIsGoneOrAnotherOneIsNoError) {
  EXPECT_TRUE(LiftGates(client_, {{"team-a", "gone"}, "uid", "", "", {kGate}}));
  AddPod("team-a", "train-0", {kGate});
  const kube::Status another = LiftGates(client_, {{"team-a", "train-0"}, "another-uid", "", "", {kGate}});
  EXPECT_TRUE(another) << another.error().message();
  EXPECT_THAT(GatesOf("team-a", "train-0"), ElementsAre(kGate));
}

}  // namespace
}  // namespace grus
