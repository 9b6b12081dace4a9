// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/pod_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/testing/fake_transport.h"
#include "controllers/cluster/cluster_account.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::KindOf;

constexpr char kGpu[] = "deviceclass.resource.kubernetes.io/gpu";
constexpr char kGpuRequest[] = R"({"name":"r","exactly":{"deviceClassName":"gpu","count":2}})";

// Claims, classes and slices of an API server in this process; nobody allocates but the test.
class PodDevicesTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    StartCaches();
  }
  void Create(std::string_view resource, std::string_view text) {
    ReconcilerFixture::Create(resource, *kube::ParseJson(text));
    if (claims_.HasList()) Settle();  // Before, nobody looks.
  }
  void Patch(const kube::Kind& kind, const kube::ObjectKey& key, std::string_view patch, const char* subresource = "") {
    const auto patched =
        client_.Patch(kind, key, kube::PatchType::kMerge, *kube::ParseJson(patch), {.subresource = subresource});
    ASSERT_TRUE(patched) << patched.error().message();
    Settle();
  }
  template <typename T>
  void Delete(const kube::ObjectKey& key) {
    ASSERT_TRUE(client_.Delete(KindOf<T>(), key));
    Settle();
  }

  void AddClass(const std::string& selector = "device.driver == 'd'", const std::string& name = "gpu") {
    Create("deviceclasses.resource.k8s.io",
           R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":")" + name +
               R"("},"spec":{"selectors":[{"cel":{"expression":")" + selector + R"("}}]}})");
  }
  void AddTemplate(const std::string& request = kGpuRequest) {
    Create("resourceclaimtemplates.resource.k8s.io",
           R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"namespace":"team-a",
               "name":"t"},"spec":{"spec":{"devices":{"requests":[)" +
               request + "]}}}}");
  }
  void AddClaim(const std::string& request = kGpuRequest) {
    Create("resourceclaims.resource.k8s.io",
           R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"namespace":"team-a","name":"c"},
               "spec":{"devices":{"requests":[)" +
               request + "]}}}");
  }
  // `results` devices, for the pod of that UID.
  void Allocate(int results, const std::string& consumer, const std::string& more = {}) {
    std::string list;
    for (int i = 0; i < results; ++i) list += (i > 0 ? "," : "") + (R"({"request":"r")" + more + "}");
    Patch(KindOf<kube::ResourceClaim>(), {"team-a", "c"},
          R"({"status":{"allocation":{"devices":{"results":[)" + list + R"(]}},"reservedFor":[{"uid":")" + consumer +
              R"("}]}})",
          "status");
  }
  // `devices`: of all of them, as JSON. Of node "n" unless `where` says another.
  void AddSlice(const std::string& name, const std::string& devices, int generation = 1, int slices = 1,
                const std::string& where = R"("nodeName":"n")") {
    Create("resourceslices.resource.k8s.io",
           R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")" + name +
               R"("},"spec":{"driver":"d","pool":{"name":"p","generation":)" + std::to_string(generation) +
               R"(,"resourceSliceCount":)" + std::to_string(slices) + "}," + where + R"(,"devices":[)" + devices +
               "]}}");
  }
  static std::string Plain(int count) {
    std::string devices;
    for (int i = 0; i < count; ++i)
      devices += (i > 0 ? R"(,{"name":"x)" : R"({"name":"x)") + std::to_string(i) + R"("})";
    return devices;
  }
  std::int64_t OnNode(const std::string& node = "n") const {
    Resources allocatable;
    devices_.AddDevicesOf(node, allocatable);
    return allocatable.Extended(kGpu);
  }
  static kube::Pod PodWith(const char* template_name, const char* claim_name = "") {
    kube::Pod pod;
    pod.metadata.ns = "team-a";
    pod.metadata.uid = "pod-1";
    pod.spec.resource_claims.emplace().push_back({"r", claim_name, template_name});
    return pod;
  }
  std::int64_t NeededBy(const kube::Pod& pod) const { return devices_.NeedsOf(pod).devices.Extended(kGpu); }
  std::string ProblemOf(const kube::Pod& pod) const { return devices_.NeedsOf(pod).problem; }

  kube::Informer& claims_ = Cache<kube::ResourceClaim>();
  kube::Informer& templates_ = Cache<kube::ResourceClaimTemplate>();
  kube::Informer& classes_ = Cache<kube::DeviceClass>();
  kube::Informer& slices_ = Cache<kube::ResourceSlice>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  PodDevices devices_{{claims_, templates_, classes_, slices_}, log_};
  ClusterAccount account_{nodes_, pods_, clock_, Nominations::kAuto, nullptr, &devices_};
};

TEST_F(PodDevicesTest, ATemplateSaysWhatAPodNeeds) {
  AddClass();
  AddTemplate();
  EXPECT_EQ(NeededBy(PodWith("t")), 2);
  EXPECT_EQ(ProblemOf(PodWith("t")), "");
  EXPECT_EQ(devices_.NeedsOf({}), DeviceNeeds());
}

TEST_F(PodDevicesTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(ProblemOf(PodWith("t")), "ResourceClaimTemplate team-a/t does not exist");
  EXPECT_EQ(ProblemOf(PodWith("", "c")), "ResourceClaim team-a/c does not exist");
  AddTemplate();
  EXPECT_EQ(ProblemOf(PodWith("t")), "DeviceClass gpu does not exist");
}

TEST_F(PodDevicesTest, RequestsThatAreNotForJustSoManyAreNotKnownUntilTheyHaveTheirDevices) {
  AddClass();
  AddClaim(R"({"name":"r","exactly":{"deviceClassName":"gpu","allocationMode":"All"}})");
  const kube::Pod pod = PodWith("", "c");
  EXPECT_EQ(NeededBy(pod), 0);
  EXPECT_EQ(ProblemOf(pod), "");
  Allocate(3, "pod-1");
  EXPECT_EQ(NeededBy(pod), 3);
}

TEST_F(PodDevicesTest, DevicesOfASharedClaimCountOnce) {
  AddClass();
  AddClaim();
  kube::Pod first = PodWith("", "c"), second = PodWith("", "c");
  second.metadata.uid = "pod-2";
  Allocate(2, "pod-2");
  EXPECT_EQ(NeededBy(first), 0);
  EXPECT_EQ(NeededBy(second), 2);
}

TEST_F(PodDevicesTest, AccessOfAdministratorsAndSharesOfADeviceTakeNone) {
  AddClass();
  AddClaim();
  Allocate(2, "pod-1", R"(,"adminAccess":true)");
  EXPECT_EQ(NeededBy(PodWith("", "c")), 0);
  Allocate(2, "pod-1", R"(,"shareID":"s")");
  EXPECT_EQ(NeededBy(PodWith("", "c")), 0);
}

TEST_F(PodDevicesTest, TheClaimThatWasMadeOfATemplateCountsWhenThatIsGone) {
  AddClass();
  AddClaim();
  kube::Pod pod = PodWith("t");
  pod.status.resource_claim_statuses.emplace().push_back({"r", "c"});
  EXPECT_EQ(NeededBy(pod), 2);
  EXPECT_EQ(ProblemOf(pod), "");
}

TEST_F(PodDevicesTest, AGpuOfWhichAClaimHasAPartIsOfferedToNobodyElseUntilItIsGivenBack) {
  const auto offered = [&] {
    Resources allocatable;
    allocatable.AddExtended("nvidia.com/gpu", 8);
    devices_.WithholdClaimed("n", allocatable);
    return allocatable.Extended("nvidia.com/gpu");
  };
  const std::string part = R"(,"driver":"gpu.ai.centauruscloud.io","pool":"n","shareID":"s","device":"gpu-)";
  AddClaim();
  EXPECT_EQ(offered(), 8);
  Allocate(2, "pod-1", part + R"(a")");
  EXPECT_EQ(offered(), 7) << "both are of one GPU";
  Allocate(1, "pod-1", R"(,"driver":"gpu.ai.centauruscloud.io","pool":"m","device":"gpu-a")");
  EXPECT_EQ(offered(), 8) << "another node";
  Allocate(1, "pod-1", R"(,"driver":"gpu.nvidia.com","pool":"n","device":"gpu-a")");
  EXPECT_EQ(offered(), 8) << "another driver";
  Allocate(1, "pod-1", part + R"(a","adminAccess":true)");
  EXPECT_EQ(offered(), 8) << "it consumes nothing";
}

TEST_F(PodDevicesTest, NodesHaveTheDevicesThatTheirSlicesSay) {
  AddSlice("s1", Plain(3), 1, 2);
  AddClass();
  EXPECT_EQ(OnNode(), 0) << "a slice of the pool is missing";
  AddSlice("s2", R"({"name":"y","taints":[{"key":"k","effect":"NoSchedule"}]},{"name":"z"})", 1, 2);
  EXPECT_EQ(OnNode(), 4);
  EXPECT_EQ(OnNode("other"), 0);
}

TEST_F(PodDevicesTest, OnlyTheNewestGenerationOfAPoolCounts) {
  AddClass();
  AddSlice("s1", Plain(8));
  AddSlice("s2", Plain(2), 2);
  EXPECT_EQ(OnNode(), 2);
  Delete<kube::ResourceSlice>({"", "s1"});
  EXPECT_EQ(OnNode(), 2);
}

TEST_F(PodDevicesTest, AClassThatIsNotUnderstoodIsNotKnown) {
  AddClass("device.driver.startsWith('d')");
  AddTemplate();
  AddSlice("s", Plain(2));
  EXPECT_EQ(OnNode(), 0);
  EXPECT_EQ(NeededBy(PodWith("t")), 0);
  Patch(KindOf<kube::DeviceClass>(), {"", "gpu"},
        R"({"spec":{"selectors":[{"cel":{"expression":"device.driver == 'd'"}}]}})");
  EXPECT_EQ(OnNode(), 2);
  EXPECT_EQ(NeededBy(PodWith("t")), 2);
}

TEST_F(PodDevicesTest, AClassWithDevicesThatCannotBeCountedIsNotKnown) {
  AddClass();
  AddTemplate();
  AddSlice("s", Plain(2));
  AddSlice("everywhere", Plain(1), 1, 1, R"("allNodes":true)");
  EXPECT_EQ(OnNode(), 0);
  EXPECT_EQ(NeededBy(PodWith("t")), 0);
  Delete<kube::ResourceSlice>({"", "everywhere"});
  EXPECT_EQ(OnNode(), 2);
  EXPECT_EQ(NeededBy(PodWith("t")), 2);
}

TEST_F(PodDevicesTest, AnExtendedResourceOfAClassCountsTheSameDevices) {
  AddClass();
  AddTemplate();
  AddSlice("s", Plain(3));
  Patch(KindOf<kube::DeviceClass>(), {"", "gpu"}, R"({"spec":{"extendedResourceName":"nvidia.com/gpu"}})");
  Resources node, with_plugin;
  devices_.AddDevicesOf("n", node);
  EXPECT_EQ(node.Extended(kGpuResource), 3);
  EXPECT_EQ(node.Extended(kGpu), 3);
  with_plugin.AddExtended(kGpuResource, 8);
  devices_.AddDevicesOf("n", with_plugin);
  EXPECT_EQ(with_plugin.Extended(kGpuResource), 8);
  EXPECT_EQ(devices_.NeedsOf(PodWith("t")).devices.Extended(kGpuResource), 2) << "a claim takes from both";
}

TEST_F(PodDevicesTest, WithoutTheApiNothingIsKnown) {
  kube::testing::FakeTransport transport{clock_};
  kube::Client client{transport, nullptr, clock_};
  const auto make = [&](const kube::Kind& kind) {
    transport.Expect("GET", "/apis/resource.k8s.io/v1/" + std::string(kind.plural) + "?watch=1",
                     kube::testing::StatusAnswer(404, "NotFound", "the server could not find the requested resource"));
    return std::make_unique<kube::Informer>(client, kind, kube::InformerOptions{.is_optional = true}, clock_, log_);
  };
  const auto claims = make(KindOf<kube::ResourceClaim>()), templates = make(KindOf<kube::ResourceClaimTemplate>()),
             classes = make(KindOf<kube::DeviceClass>()), slices = make(KindOf<kube::ResourceSlice>());
  const PodDevices devices({*claims, *templates, *classes, *slices}, log_);
  for (kube::Informer* informer : {claims.get(), templates.get(), classes.get(), slices.get()}) {
    informer->Start();
    ASSERT_TRUE(informer->WaitForSync(clock_.Now() + 1h));
  }
  EXPECT_EQ(devices.NeedsOf(PodWith("t")), DeviceNeeds());
  for (kube::Informer* informer : {claims.get(), templates.get(), classes.get(), slices.get()}) {
    informer->Stop();
    informer->Join();
  }
}

// Of the ledger: what comes after the pods and nodes is accounted, too.
class ClaimedDevicesTest : public PodDevicesTest {
 protected:
  void AddNode() {
    Create("nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},
        "status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"}}})");
  }
  void AddBoundPod(const std::string& claim) {
    Create("pods", R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"team-a","name":"p"},"spec":{
        "nodeName":"n","terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"x"}],"resourceClaims":[{"name":"r",)" +
                       claim + "}]}}");
  }
  Room RoomForPairs() {
    kube::Pod pod = PodWith("t");
    pod.metadata.uid = "planned";
    return account_.RoomFor("team-a/gang", account_.ShapeOf(pod), 10);
  }
};

TEST_F(ClaimedDevicesTest, SlicesAndClassesMayComeAfterTheNodes) {
  AddNode();
  AddTemplate();
  EXPECT_EQ(RoomForPairs().copies, 10) << "nothing is known of the class";
  AddClass();
  EXPECT_EQ(RoomForPairs().copies, 0);
  AddSlice("s", Plain(5));
  EXPECT_EQ(RoomForPairs().copies, 2);
  Delete<kube::ResourceSlice>({"", "s"});
  EXPECT_EQ(RoomForPairs().copies, 0);
}

TEST_F(ClaimedDevicesTest, TemplatesAndClaimsMayComeAfterThePods) {
  AddNode();
  AddSlice("s", Plain(6));
  AddBoundPod(R"("resourceClaimTemplateName":"t")");
  AddTemplate();
  EXPECT_EQ(RoomForPairs().copies, 10) << "nothing is known of the class";
  AddClass();
  EXPECT_EQ(RoomForPairs().copies, 2) << "the pod that is bound has two of six";
  Delete<kube::Pod>({"team-a", "p"});
  EXPECT_EQ(RoomForPairs().copies, 3);
  AddBoundPod(R"("resourceClaimName":"c")");
  EXPECT_EQ(RoomForPairs().copies, 3);
  AddClaim();
  EXPECT_EQ(RoomForPairs().copies, 2);
}

TEST_F(ClaimedDevicesTest, NobodyIsPlannedOnAGpuOfWhichAClaimHasAPart) {
  Create("nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},
      "status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110","nvidia.com/gpu":"2"}}})");
  kube::Pod whole;
  whole.spec.containers.emplace_back().resources.requests = {{"nvidia.com/gpu", kube::Quantity(1)}};
  const auto copies = [&] { return account_.RoomFor("team-a/gang", account_.ShapeOf(whole), 100).copies; };
  AddClaim();
  const int before = copies();
  ASSERT_GE(before, 2);
  Allocate(1, "pod-1", R"(,"driver":"gpu.ai.centauruscloud.io","pool":"n","shareID":"s","device":"gpu-a")");
  EXPECT_EQ(copies(), before - 1);
  Delete<kube::ResourceClaim>({"team-a", "c"});
  EXPECT_EQ(copies(), before);
}

}  // namespace
}  // namespace grus
