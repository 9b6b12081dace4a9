// SPDX-License-Identifier: Apache-2.0
// What a real kube-scheduler has asked over mutual TLS is answered as it was then: exchanges/README.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "controllers/extender/extender.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/reconciler_fixture.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

using kube::Json;

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

class RecordedExchanges : public testing::ReconcilerFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  // The world of record.sh.
  void SetUp() override {
    ReconcilerFixture::SetUp();
    for (const char* name : {"node-0", "node-1"}) AddShared(name);
    for (const auto& [name, node, gpu, milli] : {std::tuple("x", "node-0", "-0", 800),
                                                 {"y", "node-0", "-1", 750},
                                                 {"z", "node-1", "-0", 900},
                                                 {"w", "node-1", "-1", 700}}) {
      Json pod = kit::MakePod(name, kit::PodSpec(milli, "{}", api::kGpuMilliResource), Json(), "team-a");
      pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = std::string("GPU-") + node + gpu;
      pod["spec"]["nodeName"] = node;
      Create("pods", std::move(pod));
    }
    extender_.refused_pods().FeedQueue(queue_);
    StartCaches();
    Settle();
  }
  void AddShared(const std::string& name) {
    Json node = kit::MakeNode(name, 0), inventory = Json::MakeArray();
    for (const char* gpu : {"-0", "-1"}) {
      inventory.Append(
          Json::MakeObject({{"uuid", "GPU-" + name + gpu}, {"memoryMiB", 80000}, {"milli", 1000}, {"mode", "milli"}}));
    }
    node["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(inventory);
    node["status"]["allocatable"][api::kGpuMilliResource] = "2000";
    Create("nodes", std::move(node));
  }
  // The pod of the call, as its user made it.
  void AddPodOf(const Json& call) {
    const Json* const given = call.Find("Pod");
    if (given == nullptr) return;
    Json pod = *given;
    const std::string name = *pod.At({"metadata", "name"})->AsString();
    if (server_.Get("pods", {"team-a", name})) return;
    for (const char* field : {"uid", "resourceVersion", "generation", "creationTimestamp"})
      pod["metadata"].Erase(field);
    pod.Erase("status");
    pod["kind"] = "Pod";
    pod["apiVersion"] = "v1";
    Create("pods", std::move(pod));
    Settle();
  }
  // Recorded UIDs are names; here they are those of this server, and back.
  std::string WithUids(std::string text, bool is_back = false) {
    for (const auto& pod : server_.List("pods")) {
      const std::string uid = *pod->At({"metadata", "uid"})->AsString();
      const std::string named = "\"uid-of-" + *pod->At({"metadata", "name"})->AsString() + "\"";
      text = is_back ? Replaced(text, "\"" + uid + "\"", named) : Replaced(text, named, "\"" + uid + "\"");
    }
    return text;
  }
  kube::Result<std::string> Answer(const std::string& verb, const std::string& body) {
    if (verb == "filter") return extender_.Filter(body);
    if (verb == "prioritize") return extender_.Prioritize(body);
    if (verb == "preempt") return extender_.Preempt(body);
    return extender_.Bind(body);
  }

  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  ClusterAccount account_{nodes_, pods_, clock_};
  kube::Registry metrics_;
  Extender extender_{client_, pods_, nodes_, account_, clock_, log_, metrics_};
};

TEST_P(RecordedExchanges, AreAnsweredAsTheyWere) {
  std::map<std::string, std::filesystem::path> requests;  // In the order in which they came.
  const auto folder = kit::TreePath(std::string("tests/controllers/extender/exchanges/") + GetParam());
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".request") requests[file.path().filename()] = file.path();
  }
  std::set<std::string> verbs;
  for (const auto& [name, path] : requests) {
    const auto text_of = [](const std::filesystem::path& file) {
      return kit::ReadTreeFile("tests/controllers/extender/exchanges/" + file.parent_path().filename().string() + "/" +
                               file.filename().string());
    };
    const std::string verb = name.substr(2, name.find('-', 2) - 2);
    const std::string request = text_of(path);
    const Json call = *kube::ParseJson(request);
    AddPodOf(call);
    const auto answer = Answer(verb, WithUids(request));
    ASSERT_TRUE(answer) << name << ": " << answer.error().message();
    EXPECT_EQ(WithUids(*answer, true), text_of(std::filesystem::path(path).replace_extension(".answer"))) << name;
    if (verb == "bind") {
      const auto pod = Live<kube::Pod>({"team-a", *call.At({"PodName"})->AsString()});
      EXPECT_EQ(pod->spec.node_name, *call.At({"Node"})->AsString());
      Settle();
    }
    verbs.insert(verb);
  }
  EXPECT_EQ(verbs, (std::set<std::string>{"bind", "filter", "preempt", "prioritize"}));
}

// With nodeCacheCapable: true the scheduler sends names, else whole nodes.
INSTANTIATE_TEST_SUITE_P(OfAScheduler, RecordedExchanges, ::testing::Values("names", "nodes"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace grus
