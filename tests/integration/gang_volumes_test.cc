// SPDX-License-Identifier: Apache-2.0
// Gangs whose volumes bind them to a zone, on the real scheduler and the real binder of volumes.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using kube::Json;
using kube::KindOf;

class GangVolumes : public Gang {
 protected:
  // A node of a zone of this test's.
  std::string AddNodeIn(const std::string& zone, int gpus) {
    const std::string node = AddNode(gpus);
    Json patch = Json::MakeObject();
    patch["metadata"]["labels"]["topology.kubernetes.io/zone"] = ns() + "-" + zone;
    world().Patch(KindOf<kube::Node>(), {"", node}, kube::PatchType::kMerge, patch);
    return node;
  }
  // A volume that can be used in that zone, for the claim of that name.
  void CreateVolumeIn(const std::string& zone, const std::string& name) {
    Json volume = FromText(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{},
        "spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/data"},
          "nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
            {"key":"topology.kubernetes.io/zone","operator":"In","values":[]}]}]}}}})");
    volume["metadata"]["name"] = ns() + "-" + name;
    volume["spec"]["storageClassName"] = "";
    Json& term = (*volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].AsArray())[0];
    (*term["matchExpressions"].AsArray())[0]["values"].Append(ns() + "-" + zone);
    volume["spec"]["claimRef"] = Json::MakeObject(
        {{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"namespace", ns()}, {"name", name}});
    Must(client().Create(KindOf<kube::PersistentVolume>(), "", volume));
  }
  void CreateClaim(const std::string& name) {
    Json claim = FromText(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{},
        "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
    claim["metadata"]["name"] = name;
    claim["spec"]["storageClassName"] = "";
    world().Create(KindOf<kube::PersistentVolumeClaim>(), ns(), claim);
  }
  void CreateBoundClaim(const std::string& name, const std::string& zone) {
    CreateVolumeIn(zone, name);
    CreateClaim(name);
    ASSERT_TRUE(Await("the claim is bound", [&] {
      const auto claim = world().Get<kube::PersistentVolumeClaim>(ns(), name);
      return claim && claim->status.phase == "Bound";
    }));
  }
  void CreateMemberWith(const std::string& name, const std::string& claim) {
    CreateMember(name, 1, kGroup,
                 R"({"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":")" + claim + R"("}}]})");
  }
};

TEST_F(GangVolumes, AGangWhoseVolumesAreInAFullZoneWaitsAndStartsWhenItGrows) {
  AddNodeIn("a", 3);
  AddNodeIn("b", 8);
  for (int i = 0; i < 4; ++i) CreateBoundClaim("data-" + std::to_string(i), "a");
  CreateGroup(4);
  for (int i = 0; i < 4; ++i) CreateMemberWith("gang-" + std::to_string(i), "data-" + std::to_string(i));

  ASSERT_TRUE(Await("it says that it cannot fit, and why", [&] {
    return GroupReason() == "CannotFit" && GroupSays("needs 4 nvidia.com/gpu; the nodes it may use have 3 in all") &&
           GroupSays("only nodes where its volumes can be used count");
  }));
  EXPECT_TRUE(Stays(
      "nobody is let go in vain", [&] { return Gated() == 4; }, kQuiet));

  AddNodeIn("a", 1);
  EXPECT_TRUE(Await("it runs", [&] { return Runs(4); }));
}

}  // namespace
}  // namespace grus::testing
