// SPDX-License-Identifier: Apache-2.0
// Gangs that claim devices (Dynamic Resource Allocation), on the real scheduler, which allocates from
// ResourceSlices.
#include "clientlib/model/resource_claims.h"
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using kube::Json;
using kube::KindOf;

class GangDevices : public Gang {
 protected:
  std::string Driver() const { return ns() + ".test"; }
  std::string Class() const { return "gpu." + ns() + ".test"; }
  std::string Resource() const { return "deviceclass.resource.kubernetes.io/" + Class(); }

  void CreateClass(const std::string& selector) {
    Json made = FromText(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{},"spec":{"selectors":[
        {"cel":{}}]}})");
    made["metadata"]["name"] = Class();
    (*made["spec"]["selectors"].AsArray())[0]["cel"]["expression"] = selector;
    Must(client().Create(KindOf<kube::DeviceClass>(), "", made));
  }
  std::string Usual() const {
    return "device.driver == '" + Driver() + "' && device.attributes['" + Driver() + "'].type == 'gpu'";
  }
  // A claim of a member for `count` devices.
  Json ClaimSpec(int count) const {
    Json spec = FromText(R"({"devices":{"requests":[{"name":"gpus","exactly":{}}]}})");
    Json& exactly = (*spec["devices"]["requests"].AsArray())[0]["exactly"];
    exactly["deviceClassName"] = Class();
    exactly["count"] = count;
    return spec;
  }
  void CreateTemplate(const std::string& name, int count) {
    Json made = FromText(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{}})");
    made["metadata"]["name"] = name;
    made["spec"]["spec"] = ClaimSpec(count);
    Must(client().Create(KindOf<kube::ResourceClaimTemplate>(), ns(), made));
  }
  void CreateSlice(const std::string& node, int devices) {
    Json made = FromText(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{},"spec":{
        "pool":{"generation":1,"resourceSliceCount":1},"devices":[]}})");
    made["metadata"]["name"] = node + "-gpus";
    made["spec"]["nodeName"] = node;
    made["spec"]["driver"] = Driver();
    made["spec"]["pool"]["name"] = node;
    for (int i = 0; i < devices; ++i) {
      Json device = FromText(R"({"attributes":{"type":{"string":"gpu"}}})");
      device["name"] = "gpu-" + std::to_string(i);
      made["spec"]["devices"].Append(device);
    }
    Must(client().Create(KindOf<kube::ResourceSlice>(), "", made));
  }
  void AddDeviceNode(int devices) { CreateSlice(AddNode(0), devices); }
  static std::string Claiming(const std::string& how, const std::string& name) {
    return R"({"resourceClaims":[{"name":"gpus",")" + how + R"(":")" + name +
           R"("}],"containers":[{"name":"c",
        "image":"registry.test/x","resources":{"claims":[{"name":"gpus"}]}}]})";
  }
  void CreateDeviceSet(int replicas, const std::string& claim_template, const std::string& name) {
    CreateGroup(replicas, name);
    CreateSet(replicas, 0, name, name, Claiming("resourceClaimTemplateName", claim_template));
  }
  // No member was ever let go.
  bool WaitsWhole(int members, const std::string& name) const { return Gated(name) == members && Bound(name) == 0; }
};

TEST_F(GangDevices, AGangThatDoesNotFitWaitsWholeAndNamesTheClassAndWhoHoldsItsDevices) {
  CreateClass(Usual());
  AddDeviceNode(4);
  AddDeviceNode(4);
  CreateTemplate("two", 2);
  CreateDeviceSet(2, "two", "a");
  ASSERT_TRUE(Await("the first runs", [&] { return Runs(2, "a"); }));

  CreateDeviceSet(3, "two", "b");

  EXPECT_TRUE(Await("it says what it lacks", [&] {
    return Gated("b") == 3 && GroupReason("b") == "WaitingForRoom" &&
           GroupSays("3 members need 6 " + Resource() + "; 2 of 3", "b") &&
           GroupSays("4 of 8 " + Resource() + " are held, 4 by " + ns() + "/a", "b");
  })) << GroupMessage("b");
  EXPECT_TRUE(Stays(
      "nobody is let go in vain", [&] { return WaitsWhole(3, "b"); }, kQuiet));
  Delete<kube::StatefulSet>("a");
  EXPECT_TRUE(Await("it runs", [&] { return Runs(3, "b"); }));
  EXPECT_EQ(EverMembers("b").size(), 3U) << "nobody was rolled back";
}

}  // namespace
}  // namespace grus::testing
