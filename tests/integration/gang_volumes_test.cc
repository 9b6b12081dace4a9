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
  // A volume that can be used in that zone; with a claim of the name it is that claim's.
  void CreateVolumeIn(const std::string& zone, const std::string& name, const std::string& claim,
                      const std::string& storage_class = {}) {
    Json volume = FromText(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{},
        "spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/data"},
          "nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
            {"key":"topology.kubernetes.io/zone","operator":"In","values":[]}]}]}}}})");
    volume["metadata"]["name"] = ns() + "-" + name;
    volume["spec"]["storageClassName"] = storage_class;
    Json& term = (*volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].AsArray())[0];
    (*term["matchExpressions"].AsArray())[0]["values"].Append(ns() + "-" + zone);
    if (!claim.empty()) {
      volume["spec"]["claimRef"] = Json::MakeObject(
          {{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"namespace", ns()}, {"name", claim}});
    }
    Must(client().Create(KindOf<kube::PersistentVolume>(), "", volume));
  }
  void CreateClaim(const std::string& name, const std::string& storage_class = {}) {
    Json claim = FromText(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{},
        "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
    claim["metadata"]["name"] = name;
    claim["spec"]["storageClassName"] = storage_class;
    world().Create(KindOf<kube::PersistentVolumeClaim>(), ns(), claim);
  }
  void CreateBoundClaim(const std::string& name, const std::string& zone) {
    CreateVolumeIn(zone, name, name);
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

TEST_F(GangVolumes, AClaimThatWaitsForItsPodHoldsNobodyUp) {
  const std::string storage_class = ns() + "-late";
  Json late = FromText(R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{},
      "provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  late["metadata"]["name"] = storage_class;
  Must(client().Create(KindOf<kube::StorageClass>(), "", late));
  AddNodeIn("a", 2);
  CreateGroup(2);
  for (const char* i : {"0", "1"}) {
    CreateVolumeIn("a", std::string("data-") + i, "", storage_class);
    CreateClaim(std::string("data-") + i, storage_class);
    CreateMemberWith(std::string("gang-") + i, std::string("data-") + i);
  }
  EXPECT_TRUE(Await("it runs", [&] { return Runs(2); }));
}

}  // namespace
}  // namespace grus::testing
