// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/live_parts.h"

#include <gmock/gmock.h>

#include <functional>
#include <mutex>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/must.h"
#include "tests/kit/objects.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The API server, with agents behind it that a test plays.
class AgentDoor final : public kube::Transport {
 public:
  explicit AgentDoor(kube::Transport& server) : server_(server) {}
  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    if (refuse(request.target)) {
      return kube::HttpResponse{403, {}, R"({"kind":"Status","reason":"Forbidden","message":"you may not"})"};
    }
    if (request.target.find("/proxy/") == std::string::npos) return server_.Send(request, std::move(stop));
    const std::lock_guard lock(mutex_);
    asked.insert(request.target);
    return agent(request.target);
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    return server_.Open(request, std::move(stop));
  }

  std::function<bool(const std::string& target)> refuse = [](const std::string&) { return false; };
  std::function<kube::HttpResponse(const std::string& target)> agent = [](const std::string&) {
    return kube::HttpResponse{503, {}, R"({"kind":"Status","message":"dial tcp 10.0.0.1:8080: connection refused"})"};
  };
  std::set<std::string> asked;

 private:
  kube::Transport& server_;
  std::mutex mutex_;
};

class TopPartsLive : public ::testing::Test {
 protected:
  TopPartsLive() {
    for (const char* ns : {"team-a", "team-b", "grus-system"}) {
      kit::Must(server_.Create("namespaces", Json::MakeObject({{"metadata", Json::MakeObject({{"name", ns}})}})));
    }
  }
  void AddNode(const std::string& name) {
    Json node = kit::FromText(R"({"apiVersion":"v1","kind":"Node","metadata":{"annotations":{}}})");
    node["metadata"]["name"] = name;
    node["metadata"]["annotations"][api::kGpuInventoryAnnotation] =
        R"([{"uuid":"GPU-)" + name + R"(","memoryMiB":81920,"milli":1000,"mode":"milli"}])";
    kit::Must(server_.Create("nodes", std::move(node)));
  }
  void AddPod(const std::string& ns, const std::string& name, const std::string& node, Json labels,
              const std::string& annotation = "") {
    Json pod = kit::FromText(
        R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"main","image":"i",
            "ports":[{"name":"other","containerPort":1},{"name":"metrics","containerPort":9090}]}]}})");
    pod["metadata"]["namespace"] = ns;
    pod["metadata"]["name"] = name;
    pod["metadata"]["labels"] = std::move(labels);
    pod["spec"]["nodeName"] = node;
    if (!annotation.empty()) pod["metadata"]["annotations"][api::kHeldGpusAnnotation] = annotation;
    Json made = *kit::Must(server_.Create("pods", std::move(pod)));
    made["status"] = Json::MakeObject({{"phase", "Running"}});
    kit::Must(server_.Update("pods", std::move(made), "status"));
  }
  void AddPart(const std::string& ns, const std::string& name, const std::string& node, int milli) {
    AddPod(ns, name, node, Json::MakeObject(),
           R"({"main":{"gpu":"GPU-)" + node + R"(","milli":)" + std::to_string(milli) + R"(,"memoryMiB":1024}})");
  }
  void AddAgent(const std::string& node, const std::string& ns = "grus-system") {
    AddPod(ns, "agent-" + node, node, Json::MakeObject({{"app.kubernetes.io/name", "grus-node-agent"}}));
  }
  static kube::HttpResponse Uses(const std::string& ns, const std::string& pod, const std::string& node) {
    return {200,
            {},
            "grus_gpu_part_memory_used_bytes{gpu=\"0\",uuid=\"GPU-" + node + "\",namespace=\"" + ns + "\",pod=\"" +
                pod + "\",container=\"main\",enforcement=\"None\"} 536870912\n"};
  }
  TopPartsAnswer Top(const std::string& ns = "") { return kit::Must(TopParts(client_, client_, {.ns = ns}, clock_)); }

  kube::SystemClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  AgentDoor door_{server_};
  kube::Client client_{door_, nullptr, clock_};
};

TEST_F(TopPartsLive, AsksTheAgentOfEachNodeAtItsMetricsPort) {
  AddNode("n");
  AddPart("team-a", "p", "n", 300);
  AddAgent("n");
  door_.agent = [](const std::string&) { return Uses("team-a", "p", "n"); };
  const TopPartsAnswer answer = Top();
  EXPECT_THAT(answer.table, HasSubstr("300     512Mi/1.0Gi"));
  EXPECT_THAT(answer.notes, IsEmpty());
  EXPECT_THAT(door_.asked, ElementsAre("/api/v1/namespaces/grus-system/pods/agent-n:9090/proxy/metrics"));
}

TEST_F(TopPartsLive, AnAgentThatCannotBeReachedLeavesTheAmountsAndOneLineOfWhy) {
  for (const char* node : {"n1", "n2", "n3"}) AddNode(node);
  AddPart("team-a", "p", "n1", 300);
  AddPart("team-a", "q", "n3", 300);
  AddAgent("n1");
  AddAgent("n2");
  door_.agent = [this](const std::string& target) {
    return target.find("agent-n1") != std::string::npos
               ? Uses("team-a", "p", "n1")
               : kube::HttpResponse{503, {}, R"({"kind":"Status","message":"refused"})"};
  };
  const TopPartsAnswer answer = Top();
  EXPECT_THAT(answer.table, AllOf(HasSubstr("512Mi/1.0Gi"), HasSubstr("-/1.0Gi")));
  EXPECT_THAT(answer.notes, ElementsAre(AllOf(HasSubstr("of 2 of 3 nodes: n2: "), HasSubstr("refused"))));
}

TEST_F(TopPartsLive, AnotherNamespacesPodsAreNoAgents) {
  AddNode("n");
  AddPart("team-a", "p", "n", 300);
  AddAgent("n", "team-b");
  EXPECT_THAT(Top().notes, ElementsAre(HasSubstr("no pod of grus-node-agent runs on it")));
  EXPECT_THAT(door_.asked, IsEmpty());
}

TEST_F(TopPartsLive, WhoMaySeeOneNamespaceOnlyIsToldWhatIsNotKnown) {
  AddNode("n");
  AddPart("team-a", "p", "n", 300);
  AddPart("team-b", "q", "n", 300);
  door_.refuse = [](const std::string& target) { return target.find("/namespaces/team-a/") == std::string::npos; };
  const TopPartsAnswer answer = Top("team-a");
  EXPECT_THAT(answer.table,
              AllOf(HasSubstr("n      GPU-n   team-a"), Not(HasSubstr("team-b")), Not(HasSubstr("(free)"))));
  EXPECT_THAT(answer.notes,
              ElementsAre(AllOf(HasSubstr("what is free is not known"), HasSubstr("you may not")),
                          HasSubstr("the GPUs of nodes are not known"), HasSubstr("what is used is not known")));
}

TEST_F(TopPartsLive, WhoMayReadNoPodsIsToldSo) {
  door_.refuse = [](const std::string&) { return true; };
  const auto answer = TopParts(client_, client_, {.ns = "team-a"}, clock_);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), AllOf(HasSubstr("list pods"), HasSubstr("you may not")));
}

TEST_F(TopPartsLive, AgentsAreAskedOnlyWhileThereIsTime) {
  for (int i = 0; i < 100; ++i) {
    const std::string node = "n" + std::to_string(i);
    AddNode(node);
    AddAgent(node);
  }
  std::vector<std::shared_ptr<const PartPod>> pods;
  std::vector<std::string> nodes;
  for (const auto& item : kit::Must(client_.List(kube::KindOf<PartPod>(), "grus-system")).items) {
    pods.push_back(std::static_pointer_cast<const PartPod>(item));
    nodes.push_back(pods.back()->spec.node_name);
  }
  const AgentAnswers none = AskAgents(client_, pods, nodes, clock_, kube::Duration::zero());
  EXPECT_THAT(none.problem, AllOf(HasSubstr("of 100 of 100 nodes"), HasSubstr("no time left")));
  EXPECT_THAT(door_.asked, IsEmpty());
  AskAgents(client_, pods, nodes, clock_, std::chrono::minutes(1));
  EXPECT_EQ(door_.asked.size(), 100U) << "in time, each is asked";
}

}  // namespace
}  // namespace grus
