// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/node_pods.h"

#include <gtest/gtest.h>

#include "clientlib/testing/api_server/fake_api_server.h"

namespace grus {
namespace {

using kube::Json;

class NodePodsTest : public ::testing::Test {
 protected:
  // Returns the pod's UID.
  std::string AddPod(const std::string& name, const std::string& node, const std::string& status,
                     const std::string& annotations = "{}") {
    Json pod = *kube::ParseJson(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","annotations":)" +
                                annotations + R"(},"spec":{"nodeName":")" + node +
                                R"(","containers":[{"name":"main","image":"a"}]}})");
    pod["metadata"]["name"] = name;
    const auto made = server_.Create("pods", std::move(pod));
    EXPECT_TRUE(made.ok());
    Json running = **made;
    running["status"] = *kube::ParseJson(status);
    EXPECT_TRUE(server_.Update("pods", std::move(running), "status").ok());
    return std::string(*(*made)->At({"metadata", "uid"})->AsString());
  }
  void Sync() {
    pods_.Start();
    ASSERT_TRUE(pods_.WaitForSync(clock_.Now() + std::chrono::seconds(20)));
  }

  const kube::SystemClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  const kube::Log log_{kube::LogLevel::kOff};
  kube::Client client_{server_, nullptr, clock_};
  NodePods pods_{client_, "node-1", clock_, log_};
};

TEST_F(NodePodsTest, NamesPodAndContainerOfAUid) {
  const std::string uid = AddPod("bert-0", "node-1",
                                 R"({"phase":"Running","containerStatuses":[
      {"name":"side","image":"a","imageID":"a","ready":true,"restartCount":0,"containerID":"containerd://22"},
      {"name":"main","image":"a","imageID":"a","ready":true,"restartCount":0,"containerID":"containerd://11"}],
     "initContainerStatuses":[
      {"name":"first","image":"a","imageID":"a","ready":true,"restartCount":0,"containerID":"containerd://33"}]})");
  Sync();

  EXPECT_EQ(pods_.Find({uid, "11"}), (PodName{"default", "bert-0", "main"}));
  EXPECT_EQ(pods_.Find({uid, "33"}), (PodName{"default", "bert-0", "first"}));
  EXPECT_EQ(pods_.Find({uid, "99"}), (PodName{"default", "bert-0", ""})) << "its status is not written yet";
  EXPECT_EQ(pods_.Find({uid, ""}), (PodName{"default", "bert-0", ""}));
}

TEST_F(NodePodsTest, KnowsAStaticPodByTheUidOfItsMirror) {
  const std::string hash(32, 'c');
  AddPod("etcd-node-1", "node-1", R"({"phase":"Running"})", R"({"kubernetes.io/config.mirror":")" + hash + R"("})");
  Sync();

  EXPECT_EQ(pods_.Find({hash, ""}), (PodName{"default", "etcd-node-1", ""}));
}

TEST_F(NodePodsTest, KnowsOnlyThePodsOfItsNode) {
  const std::string mine = AddPod("mine", "node-1", R"({"phase":"Running"})");
  const std::string other = AddPod("other", "node-2", R"({"phase":"Running"})");
  Sync();

  EXPECT_TRUE(pods_.Find({mine, ""}));
  EXPECT_FALSE(pods_.Find({other, ""}));
}

}  // namespace
}  // namespace grus
