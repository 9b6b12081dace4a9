// SPDX-License-Identifier: Apache-2.0
// Gangs whose members claim parts of GPUs of grus' own driver, on the real scheduler, which chooses the GPUs from
// ResourceSlices as grus-node-agent writes them.
#include "clientlib/model/resource_claims.h"
#include "crds/types/gpu_queue.h"
#include "crds/types/node_pool.h"
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using kube::Json;
using kube::KindOf;

class GangClaims : public Gang {
 protected:
  void SetUp() override {
    Gang::SetUp();
    Json made = FromText(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{},"spec":{"selectors":[
        {"cel":{"expression":"device.driver == 'gpu.ai.centauruscloud.io'"}}]}})");
    made["metadata"]["name"] = Class();
    Must(client().Create(KindOf<kube::DeviceClass>(), "", made));
    MakeCluster<api::NodePool>(FromText(R"({"nodeSelector":{"grus.test/pool":")" + ns() + R"("}})"));
  }
  void TearDown() override {
    world().Delete(KindOf<api::GpuQueue>(), {"", ns()});
    world().Delete(KindOf<api::NodePool>(), {"", ns()});
    Gang::TearDown();
  }
  std::string Class() const { return "part." + ns() + ".test"; }

  // Of the name of this test.
  template <typename T>
  void MakeCluster(const Json& spec) {
    Json made = Json::MakeObject({{"apiVersion", KindOf<T>().ApiVersion()}, {"kind", KindOf<T>().kind}});
    made["metadata"]["name"] = ns();
    made["spec"] = spec;
    Must(client().Create(KindOf<T>(), "", made));
  }
  // For the gangs of this test.
  void AddQueue(int limit) {
    Json spec = FromText(R"({"namespaceSelector":{"matchLabels":{}},"quotas":[{}]})");
    spec["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] = ns();
    (*spec["quotas"].AsArray())[0]["pool"] = ns();
    (*spec["quotas"].AsArray())[0]["limit"] = limit;
    MakeCluster<api::GpuQueue>(spec);
  }
  int UsedByQueue() const {
    const auto queue = world().Get<api::GpuQueue>("", ns());
    return queue ? queue->status.total.used : -1;
  }
  void CreateTemplate(const std::string& name, const std::string& milli) {
    Json made = FromText(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{},"spec":{"spec":{"devices":{
        "requests":[{"name":"gpu","exactly":{"capacity":{"requests":{"memory":"1Gi"}}}}]}}}})");
    made["metadata"]["name"] = name;
    Json& exactly = (*made["spec"]["spec"]["devices"]["requests"].AsArray())[0]["exactly"];
    exactly["deviceClassName"] = Class();
    exactly["capacity"]["requests"]["milli"] = milli;
    Must(client().Create(KindOf<kube::ResourceClaimTemplate>(), ns(), made));
  }
  void AddClaimNode(int gpus) {
    const std::string node = AddNode(0);
    Json made = FromText(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{},"spec":{
        "driver":"gpu.ai.centauruscloud.io","pool":{"generation":1,"resourceSliceCount":1},"devices":[]}})");
    made["metadata"]["name"] = node + "-gpu.ai.centauruscloud.io";
    made["spec"]["nodeName"] = node;
    made["spec"]["pool"]["name"] = node;
    for (int i = 0; i < gpus; ++i) {
      Json device = FromText(R"({"allowMultipleAllocations":true,"capacity":{
          "milli":{"value":"1000","requestPolicy":{"default":"1000","validRange":{"min":"1","step":"1","max":"1000"}}},
          "memory":{"value":"80Gi","requestPolicy":{"default":"80Gi",
                                                    "validRange":{"min":"1Mi","step":"1Mi","max":"80Gi"}}}}})");
      device["name"] = "gpu-" + std::to_string(i);
      made["spec"]["devices"].Append(device);
    }
    Must(client().Create(KindOf<kube::ResourceSlice>(), "", made));
  }
  void CreateClaimSet(int replicas, const std::string& claim_template, const std::string& name) {
    CreateGroup(replicas, name);
    CreateSet(
        replicas, 0, name, name,
        R"({"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":")" + claim_template +
            R"("}],"containers":[{"name":"c","image":"registry.test/x","resources":{"claims":[{"name":"gpu"}]}}]})");
  }
  bool WaitsWhole(int members, const std::string& name) const { return Gated(name) == members && Bound(name) == 0; }
};

TEST_F(GangClaims, AGangWaitsWholeWhereTheSumIsFreeAndNoGpuHasTheRoom) {
  AddClaimNode(2);
  CreateTemplate("most", "600");
  CreateTemplate("less", "500");
  CreateClaimSet(2, "most", "a");
  ASSERT_TRUE(Await("the first runs", [&] { return Runs(2, "a"); }));

  CreateClaimSet(1, "less", "b");
  EXPECT_TRUE(Await("it says why", [&] {
    return Gated("b") == 1 && GroupReason("b") == "WaitingForRoom" &&
           GroupSays("800 of 2000 ai.centauruscloud.io/gpu-milli by claims are free, but no node has the part", "b");
  })) << GroupMessage("b");
  EXPECT_TRUE(Stays(
      "nobody is let go in vain", [&] { return WaitsWhole(1, "b"); }, kQuiet));
  Delete<kube::StatefulSet>("a");
  EXPECT_TRUE(Await("it runs", [&] { return Runs(1, "b"); }));
}

TEST_F(GangClaims, AQueueCountsWhatClaimsHaveAndStartsNothingBeyondItsLimit) {
  AddClaimNode(4);
  AddQueue(1);
  CreateTemplate("half", "500");
  CreateClaimSet(2, "half", "a");
  ASSERT_TRUE(Await("the first runs", [&] { return Runs(2, "a"); }));
  EXPECT_TRUE(Await("the queue counts it", [&] { return UsedByQueue() == 1; })) << UsedByQueue();

  CreateClaimSet(1, "half", "b");
  EXPECT_TRUE(Await("it waits for its queue", [&] { return Gated("b") == 1 && GroupReason("b") == "WaitingForQueue"; }))
      << GroupMessage("b");
  EXPECT_TRUE(Stays(
      "it does not start on idle GPUs", [&] { return WaitsWhole(1, "b"); }, kQuiet));
  Delete<kube::StatefulSet>("a");
  EXPECT_TRUE(Await("it runs", [&] { return Runs(1, "b"); }));
}

}  // namespace
}  // namespace grus::testing
