// SPDX-License-Identifier: Apache-2.0
// Parts of GPUs by claims, and whole GPUs of NVIDIA's driver: what pods need, what nodes have, and what queues count.
#include <gtest/gtest.h>

#include "controllers/cluster/cluster_account.h"
#include "controllers/policy/claimed_gpus.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::KindOf;

constexpr char kOurs[] = "gpu.ai.centauruscloud.io", kNvidia[] = "gpu.nvidia.com";

// Nobody allocates but the test.
class ClaimedPartsTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    StartCaches();
    AddClass(kOurs, R"(device.driver == \"gpu.ai.centauruscloud.io\")");
    AddClass(kNvidia, R"(device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu')");
    Make("nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},
        "status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"}}})");
  }
  void Make(std::string_view resource, std::string_view text) {
    ReconcilerFixture::Create(resource, *kube::ParseJson(text));
    Settle();
  }
  void AddClass(const std::string& name, const std::string& expression) {
    Make("deviceclasses.resource.k8s.io",
         R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":")" + name +
             R"("},"spec":{"selectors":[{"cel":{"expression":")" + expression + R"("}}]}})");
  }
  // `device`: all but its name, as JSON without braces.
  void AddSlice(const std::string& driver, int devices, const std::string& device, const std::string& node = "n") {
    std::string list;
    for (int i = 0; i < devices; ++i) {
      list += (i > 0 ? R"(,{"name":"gpu-)" : R"({"name":"gpu-)") + std::to_string(i) + R"(",)" + device + "}";
    }
    Make("resourceslices.resource.k8s.io",
         R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")" + node + "-" + driver +
             R"("},"spec":{"driver":")" + driver + R"(","pool":{"name":")" + node +
             R"(","generation":1,"resourceSliceCount":1},"nodeName":")" + node + R"(","devices":[)" + list + "]}}");
  }
  void AddSharedGpus(int gpus, const std::string& node = "n") {
    AddSlice(kOurs, gpus,
             R"("allowMultipleAllocations":true,"capacity":{"memory":{"value":"80Gi"},"milli":{"value":"1000"}})",
             node);
  }
  static std::string RequestFor(const std::string& device_class, const std::string& more = {}) {
    return R"({"name":"r","exactly":{"deviceClassName":")" + device_class + R"(")" + more + "}}";
  }
  static std::string PartOf(const std::string& milli, const std::string& memory = "1Gi") {
    return RequestFor(kOurs, R"(,"capacity":{"requests":{"milli":")" + milli + R"(","memory":")" + memory + R"("}})");
  }
  void AddClaim(const std::string& request, const std::string& name = "c") {
    Make("resourceclaims.resource.k8s.io",
         R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"namespace":"team-a","name":")" +
             name + R"("},"spec":{"devices":{"requests":[)" + request + "]}}}");
  }
  static std::string Given(const std::string& device, const std::string& more = {}, const std::string& driver = kOurs,
                           const std::string& pool = "n") {
    return R"({"request":"r","driver":")" + driver + R"(","pool":")" + pool + R"(","device":")" + device + R"(")" +
           more + "}";
  }
  static std::string Consumed(const std::string& milli, const std::string& memory = "1Gi") {
    return R"(,"shareID":"s","consumedCapacity":{"milli":")" + milli + R"(","memory":")" + memory + R"("})";
  }
  void Allocate(const std::string& results, const std::string& consumer = "pod-1", const std::string& name = "c") {
    const std::string status = R"({"status":{"allocation":{"devices":{"results":[)" + results +
                               R"(]}},"reservedFor":[{"uid":")" + consumer + R"("}]}})";
    ASSERT_TRUE(client_.Patch(KindOf<kube::ResourceClaim>(), {"team-a", name}, kube::PatchType::kMerge,
                              *kube::ParseJson(status), {.subresource = "status"}));
    Settle();
  }
  static kube::Pod PodWith(const char* claim = "c", const char* uid = "pod-1") {
    kube::Pod pod;
    pod.metadata.ns = "team-a";
    pod.metadata.uid = uid;
    pod.spec.node_name = "n";
    pod.spec.resource_claims.emplace().push_back({"r", claim, ""});
    return pod;
  }
  std::int64_t MilliOf(const kube::Pod& pod) const {
    const Resources needs = devices_.NeedsOf(pod).devices;
    return MilliOfGpuParts(needs) + 1000 * needs.Extended(kGpuResource);
  }
  std::int64_t Milli() const { return MilliOf(PodWith()); }
  std::int64_t OnNode(const char* resource) const {
    Resources allocatable;
    devices_.AddDevicesOf("n", allocatable);
    return allocatable.Extended(resource);
  }
  // A pod that runs there, with this claim.
  void AddBoundPod(const std::string& name, const std::string& claim) {
    Make("pods", R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"team-a","name":")" + name +
                     R"("},"spec":{"nodeName":"n","containers":[{"name":"c","image":"x"}],"resourceClaims":[{"name":"r",
                     "resourceClaimName":")" +
                     claim + R"("}]}})");
  }
  std::string UidOf(const std::string& pod) const {
    return std::string(pods_.Get<kube::Pod>({"team-a", pod})->metadata.uid);
  }
  std::int64_t UsedByDefaultQueue() {
    for (const QueueReport& queue : account_.Queues().queues) {
      if (queue.queue == kDefaultQueue && !queue.pools.empty()) return queue.pools.front().used;
    }
    return 0;
  }

  kube::Informer& claims_ = Cache<kube::ResourceClaim>();
  kube::Informer& templates_ = Cache<kube::ResourceClaimTemplate>();
  kube::Informer& classes_ = Cache<kube::DeviceClass>();
  kube::Informer& slices_ = Cache<kube::ResourceSlice>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  PodDevices devices_{{claims_, templates_, classes_, slices_}, log_};
  ClusterAccount account_{nodes_, pods_, clock_, Nominations::kAuto, nullptr, &devices_};
};

TEST_F(ClaimedPartsTest, AClaimThatIsNotAllocatedCountsByWhatItsRequestsSay) {
  AddSharedGpus(2);
  const std::string all = RequestFor(kOurs), two = RequestFor(kOurs, R"(,"count":2)");
  const std::string admin = RequestFor(kOurs, R"(,"adminAccess":true)"), other = RequestFor("other");
  const std::string mixed = R"({"name":"r","firstAvailable":[
      {"name":"a","deviceClassName":"gpu.ai.centauruscloud.io"},
      {"name":"b","deviceClassName":"gpu.ai.centauruscloud.io","capacity":{"requests":{"milli":"200"}}}]})";
  struct Case {
    std::string request;
    std::int64_t want;
  };
  int number = 0;
  for (const Case& c : {Case{PartOf("300"), 300}, Case{all, 1000}, Case{two, 2000}, Case{admin, 0}, Case{other, 0},
                        Case{mixed, 1000}, Case{PartOf("300") + "," + PartOf("400"), 700},
                        Case{RequestFor(kNvidia), 1000}, Case{RequestFor(kNvidia, R"(,"count":3)"), 3000}}) {
    const std::string name = "c" + std::to_string(++number);
    AddClaim(c.request, name);
    EXPECT_EQ(MilliOf(PodWith(name.c_str())), c.want) << c.request;
  }
}

TEST_F(ClaimedPartsTest, AClaimForAllDevicesCountsAsTheMostThatANodeHas) {
  AddSharedGpus(4);
  AddSharedGpus(3, "m");
  AddSlice(kNvidia, 8, R"("attributes":{"type":{"string":"gpu"}})");
  const std::string mode = R"(,"allocationMode":"All")";
  const std::string parts = RequestFor(kOurs, mode + R"(,"capacity":{"requests":{"milli":"300"}})");
  const std::string mixed = R"({"name":"r","firstAvailable":[
      {"name":"a","deviceClassName":"gpu.ai.centauruscloud.io","count":2},
      {"name":"b","deviceClassName":"gpu.ai.centauruscloud.io","allocationMode":"All"}]})";
  struct Case {
    std::string request;
    std::int64_t want;
  };
  int number = 0;
  for (const Case& c : {Case{RequestFor(kOurs, mode), 4000}, Case{parts, 1200}, Case{mixed, 4000},
                        Case{RequestFor(kNvidia, mode), 8000}, Case{RequestFor("other", mode), 0},
                        Case{RequestFor(kOurs, mode + R"(,"adminAccess":true)"), 0}}) {
    const std::string name = "c" + std::to_string(++number);
    AddClaim(c.request, name);
    EXPECT_EQ(MilliOf(PodWith(name.c_str())), c.want) << c.request;
  }
  Allocate(Given("gpu-0", "", kOurs, "m") + "," + Given("gpu-1", "", kOurs, "m"), "pod-1", "c1");
  EXPECT_EQ(MilliOf(PodWith("c1")), 2000) << "what it got";
}

TEST_F(ClaimedPartsTest, AClaimForAllDevicesFollowsTheSlices) {
  account_.SetQueues({.pools = {}, .queues = {{.name = kDefaultQueue}}});
  AddClaim(RequestFor(kOurs, R"(,"allocationMode":"All")"), "a");
  AddBoundPod("p", "a");
  EXPECT_EQ(UsedByDefaultQueue(), 1000) << "it gets one at least";
  AddSharedGpus(4);
  EXPECT_EQ(UsedByDefaultQueue(), 4000);
  AddSharedGpus(40, "m");
  EXPECT_EQ(UsedByDefaultQueue(), 32'000) << "no claim gets more than 32 devices";
  ASSERT_TRUE(client_.Delete(KindOf<kube::ResourceSlice>(), {"", "m-gpu.ai.centauruscloud.io"}));
  Settle();
  EXPECT_EQ(UsedByDefaultQueue(), 4000);
}

TEST_F(ClaimedPartsTest, AnAllocatedClaimCountsByWhatItConsumes) {
  AddSharedGpus(2);
  AddClaim(PartOf("300"));
  struct Case {
    std::string results;
    std::int64_t want;
  };
  for (const Case& c :
       {Case{Given("gpu-0", Consumed("200")), 200}, Case{Given("gpu-0"), 1000},
        Case{Given("gpu-0", Consumed("200")) + "," + Given("gpu-1", Consumed("300")), 500},
        Case{Given("gpu-0", R"(,"adminAccess":true)"), 0}, Case{Given("gpu-0", Consumed("999999999999999999")), 1000},
        Case{Given("gpu-0", Consumed("-5")), 1000}, Case{Given("x", "", "other.io"), 0}}) {
    Allocate(c.results);
    EXPECT_EQ(Milli(), c.want) << c.results;
  }
}

TEST_F(ClaimedPartsTest, ASharedClaimCountsForThePodThatReservedItFirst) {
  AddSharedGpus(1);
  AddClaim(PartOf("300"));
  Allocate(Given("gpu-0", Consumed("300")), "pod-2");
  EXPECT_EQ(MilliOf(PodWith("c", "pod-1")), 0);
  EXPECT_EQ(MilliOf(PodWith("c", "pod-2")), 300);
}

TEST_F(ClaimedPartsTest, GpusOfNvidiasDriverCountAsLongAsTheyAreWhole) {
  AddSlice(kNvidia, 2, R"("attributes":{"type":{"string":"gpu"}})");
  EXPECT_EQ(OnNode(kGpusByClaims), 2);
  EXPECT_EQ(OnNode(kGpuResource), 0) << "a pod that asks for nvidia.com/gpu gets none of these";
  AddClaim(RequestFor(kNvidia));
  Allocate(Given("gpu-1", "", kNvidia));
  EXPECT_EQ(Milli(), 1000);
  Allocate(Given("gpu-1", Consumed("300"), kNvidia));
  EXPECT_EQ(Milli(), 0) << "shared";
}

TEST_F(ClaimedPartsTest, PartsOfNvidiasGpusAreNotCounted) {
  AddSlice(kNvidia, 2, R"("attributes":{"type":{"string":"mig"}})");
  EXPECT_EQ(OnNode(kGpusByClaims), 0);
  AddClaim(RequestFor("mig.nvidia.com"));
  Allocate(Given("gpu-1", "", kNvidia));
  EXPECT_EQ(Milli(), 0);
}

TEST_F(ClaimedPartsTest, AGpuOfNvidiasDriverIsOneGpuAlsoIfItsClassIsNotUnderstoodOrSharesHardware) {
  AddSlice(kNvidia, 2, R"("attributes":{"type":{"string":"gpu"}},"consumesCounters":[{"counterSet":"s"}])");
  EXPECT_EQ(OnNode(kGpusByClaims), 2);
  AddClaim(RequestFor("of-its-own"));
  Allocate(Given("gpu-1", "", kNvidia));
  EXPECT_EQ(Milli(), 1000);
}

TEST_F(ClaimedPartsTest, ANodeOffersWhatItsSliceSaysOfEachGpu) {
  AddSharedGpus(3);
  EXPECT_EQ(OnNode(kClaimedMilli), 3000);
  EXPECT_EQ(OnNode("deviceclass.resource.kubernetes.io/gpu.ai.centauruscloud.io"), 0);
  EXPECT_EQ(OnNode(kGpuResource), 0);
}

TEST_F(ClaimedPartsTest, WhatAClaimHasIsHeldOnItsGpu) {
  AddSharedGpus(2);
  AddClaim(PartOf("600"), "a");
  AddClaim(PartOf("600"), "planned");
  AddBoundPod("p", "a");
  const auto room = [&] {
    kube::Pod pod = PodWith("planned", "planned");
    pod.spec.node_name = {};
    return account_.RoomFor("team-a/gang", account_.ShapeOf(pod), 10).copies;
  };
  Allocate(Given("gpu-1", Consumed("300")), UidOf("p"), "a");
  EXPECT_EQ(room(), 2) << "beside 300";
  Allocate(Given("gpu-1", Consumed("500")), UidOf("p"), "a");
  EXPECT_EQ(room(), 1) << "500 are left of it";
  Allocate(Given("gpu-1", Consumed("500"), kOurs, "nowhere"), UidOf("p"), "a");
  EXPECT_EQ(room(), 1) << "of another node: nothing new is said of the GPUs of this one";
  ASSERT_TRUE(client_.Delete(KindOf<kube::ResourceClaim>(), {"team-a", "a"}));
  Settle();
  EXPECT_EQ(room(), 2);
}

TEST_F(ClaimedPartsTest, TheGpuCountsFromWhenItIsTold) {
  AddSharedGpus(2);
  AddClaim(PartOf("600"), "a");
  AddClaim(PartOf("700"), "planned");
  AddBoundPod("p", "a");
  const auto room = [&] { return account_.RoomFor("team-a/gang", account_.ShapeOf(PodWith("planned")), 10).copies; };
  EXPECT_EQ(room(), 2) << "1400 are left, on which GPUs is not known";
  Allocate(Given("gpu-1", Consumed("600")), UidOf("p"), "a");
  EXPECT_EQ(room(), 1);
}

TEST_F(ClaimedPartsTest, AGangOfClaimsIsPlannedByTheRoomOnEachGpu) {
  AddSharedGpus(2);
  AddClaim(PartOf("600"), "a");
  const ShapePtr member = account_.ShapeOf(PodWith("a"));
  const auto ask = [&](const std::string& gang, int members) {
    GangDemand demand;
    demand.key = gang;
    demand.members.assign(static_cast<std::size_t>(members), member);
    demand.needed = members;
    return account_.Ask(demand);
  };
  EXPECT_TRUE(ask("team-a/three", 3).can_never_fit) << "1800 of 2000, and no third GPU";
  EXPECT_EQ(account_.PlacesOf("team-a/three").size(), 0U);
  ask("team-a/two", 2);
  EXPECT_EQ(account_.PlacesOf("team-a/two").size(), 2U);
  const GangStanding waits = ask("team-a/one", 1);
  EXPECT_EQ(waits.lacking, kClaimedMilli);
  EXPECT_EQ(waits.lacking_free, 800);
  EXPECT_EQ(waits.lacking_total, 2000);
}

TEST_F(ClaimedPartsTest, AQueueUsesWhatTheClaimsOfItsPodsHave) {
  account_.SetQueues({.pools = {}, .queues = {{.name = kDefaultQueue}}});
  AddSharedGpus(2);
  AddClaim(PartOf("300"), "a");
  AddBoundPod("p", "a");
  EXPECT_EQ(UsedByDefaultQueue(), 300);
  Allocate(Given("gpu-1", Consumed("450")), UidOf("p"), "a");
  EXPECT_EQ(UsedByDefaultQueue(), 450);
  AddBoundPod("second", "a");
  EXPECT_EQ(UsedByDefaultQueue(), 450) << "a shared claim counts once";
  Allocate(Given("gone", Consumed("450"), kOurs, "nowhere"), UidOf("p"), "a");
  EXPECT_EQ(UsedByDefaultQueue(), 450);
  ASSERT_TRUE(client_.Delete(KindOf<kube::Pod>(), {"team-a", "p"}, {.grace_period_seconds = 0}));
  ASSERT_TRUE(client_.Delete(KindOf<kube::Pod>(), {"team-a", "second"}, {.grace_period_seconds = 0}));
  Settle();
  EXPECT_EQ(UsedByDefaultQueue(), 0);
}

TEST_F(ClaimedPartsTest, APodWithThousandsOfClaimsFitsNowhereAndIsToldWhy) {
  AddSharedGpus(8);
  kube::Pod pod = PodWith();
  for (int i = 0; i < 10'000; ++i) pod.spec.resource_claims->push_back({"r" + std::to_string(i), "", "t"});
  EXPECT_EQ(devices_.NeedsOf(pod).problem, "it lists 10001 claims; at most 256 are looked at");
  EXPECT_EQ(MilliOf(pod), 64'000);
  EXPECT_EQ(DeviceKeysOf(pod).size(), 1U) << "nor does it cost the index";
}

}  // namespace
}  // namespace grus
