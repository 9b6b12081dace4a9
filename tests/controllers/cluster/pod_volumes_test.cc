// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/pod_volumes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "clientlib/model/scheduling_v1.h"
#include "clientlib/testing/fake_transport.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/cluster/priorities.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kClaims[] = "persistentvolumeclaims", kVolumes[] = "persistentvolumes",
               kClasses[] = "storageclasses.storage.k8s.io", kPriorities[] = "priorityclasses.scheduling.k8s.io";

// Claims, volumes and classes of an API server in this process; nobody binds them but the test.
class PodVolumesTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    volumes_.OnVolumeClaim([this](const kube::ObjectKey& claim) {
      std::lock_guard lock(mutex_);
      told_.insert(claim.name);
    });
    StartCaches();
  }
  void Create(std::string_view resource, std::string_view text) {
    ReconcilerFixture::Create(resource, *kube::ParseJson(text));
    if (claims_.HasList()) Settle();  // Before, nobody looks.
  }
  void AddClaim(const std::string& name, const std::string& volume, const std::string& storage_class) {
    Json claim =
        *kube::ParseJson(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"team-a"},
                                      "spec":{"accessModes":["ReadWriteOnce"]}})");
    claim["metadata"]["name"] = name;
    claim["spec"]["storageClassName"] = storage_class;
    if (!volume.empty()) {
      claim["spec"]["volumeName"] = volume;
      claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes";
    }
    Create(kClaims, ToText(claim));
  }
  void AddVolume(const std::string& name, const std::string& zone, const std::string& claim) {
    Json volume = *kube::ParseJson(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{},
        "spec":{"claimRef":{"namespace":"team-a"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
          {"key":"topology.kubernetes.io/zone","operator":"In","values":[]}]}]}}}})");
    volume["metadata"]["name"] = name;
    volume["spec"]["claimRef"]["name"] = claim;
    Json& term = (*volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].AsArray())[0];
    (*term["matchExpressions"].AsArray())[0]["values"].Append(zone);
    Create(kVolumes, ToText(volume));
  }
  static kube::Pod PodWith(const std::string& claim) {
    kube::Pod pod;
    pod.metadata.ns = "team-a";
    pod.spec.volumes.resize(1);
    pod.spec.volumes[0].claim.emplace().claim_name = claim;
    return pod;
  }
  std::set<std::string> Told() {
    std::lock_guard lock(mutex_);
    return std::exchange(told_, {});
  }

  kube::Informer& claims_ = Cache<kube::PersistentVolumeClaim>();
  kube::Informer& pvs_ = Cache<kube::PersistentVolume>();
  kube::Informer& classes_ = Cache<kube::StorageClass>();
  kube::Informer& priorities_ = Cache<kube::PriorityClass>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  PodVolumes volumes_{claims_, pvs_, classes_};
  ClusterAccount account_{nodes_, pods_, clock_, Nominations::kAuto, &volumes_};
  std::mutex mutex_;  // Guards told_.
  std::set<std::string> told_;
};

TEST_F(PodVolumesTest, ABoundClaimHoldsThePodWhereItsVolumeIs) {
  AddVolume("pv-1", "a", "data");
  AddClaim("data", "pv-1", "fast");
  const kube::Pod pod = PodWith("data");
  const ShapePtr shape = account_.ShapeOf(pod, account_.VolumesOf(pod));
  NodeState node;
  node.labels = {{"topology.kubernetes.io/zone", "a"}};
  EXPECT_TRUE(Accepts(node, *shape));
  node.labels = {{"topology.kubernetes.io/zone", "b"}};
  EXPECT_FALSE(Accepts(node, *shape));
}

TEST_F(PodVolumesTest, PodsWithVolumesOfOneZoneShareAShape) {
  for (const char* name : {"x", "y"}) {
    AddVolume(std::string("pv-") + name, "a", name);
    AddClaim(name, std::string("pv-") + name, "fast");
  }
  const kube::Pod x = PodWith("x"), y = PodWith("y");
  EXPECT_EQ(account_.ShapeOf(x, account_.VolumesOf(x)), account_.ShapeOf(y, account_.VolumesOf(y)));
}

TEST_F(PodVolumesTest, AClaimThatIsNotThereIsAProblem) {
  EXPECT_EQ(volumes_.LimitsOf(PodWith("data")).problem, "PersistentVolumeClaim team-a/data does not exist");
}

TEST_F(PodVolumesTest, AClaimThatWaitsForItsPodIsNoProblemOnceItsClassIsKnown) {
  AddClaim("data", "", "late");
  EXPECT_THAT(volumes_.LimitsOf(PodWith("data")).problem, HasSubstr("not bound"));
  (void)Told();
  Create(kClasses, R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"late"},
                       "provisioner":"example.com/x","volumeBindingMode":"WaitForFirstConsumer"})");
  EXPECT_EQ(volumes_.LimitsOf(PodWith("data")).problem, "");
  EXPECT_THAT(Told(), ElementsAre("data")) << "who waits for it looks again";
}

TEST_F(PodVolumesTest, TellsOfAClaimWhenItOrItsVolumeComesAndNotOfOtherWrites) {
  AddClaim("data", "pv-1", "fast");
  EXPECT_THAT(Told(), ElementsAre("data"));
  AddVolume("pv-1", "a", "data");
  EXPECT_THAT(Told(), ElementsAre("data"));
  const auto patched = client_.Patch(KindOf<kube::PersistentVolumeClaim>(), {"team-a", "data"}, kube::PatchType::kMerge,
                                     *kube::ParseJson(R"({"metadata":{"labels":{"a":"b"}}})"), {});
  ASSERT_TRUE(patched) << patched.error().message();
  Settle();
  EXPECT_THAT(Told(), SizeIs(0));
}

TEST_F(PodVolumesTest, WithoutThePermissionToReadClaimsNothingIsKnown) {
  kube::testing::FakeTransport transport{clock_};
  kube::Client client{transport, nullptr, clock_};
  transport.Expect("GET", "/api/v1/persistentvolumeclaims?watch=1",
                   kube::testing::StatusAnswer(403, "Forbidden", "persistentvolumeclaims is forbidden"));
  kube::Informer claims{client, KindOf<kube::PersistentVolumeClaim>(), {.is_optional = true}, clock_, log_};
  kube::Informer pvs{client, KindOf<kube::PersistentVolume>(), {}, clock_, log_};
  kube::Informer classes{client, KindOf<kube::StorageClass>(), {}, clock_, log_};
  const PodVolumes volumes(claims, pvs, classes);
  claims.Start();
  ASSERT_TRUE(claims.WaitForSync(clock_.Now() + 1h));
  EXPECT_EQ(volumes.LimitsOf(PodWith("data")).problem, "");
  claims.Stop();
  claims.Join();
}

TEST_F(PodVolumesTest, APriorityIsThatOfTheClassOrTheLowestDefault) {
  EXPECT_EQ(PriorityOf(priorities_, ""), 0);
  EXPECT_EQ(PriorityOf(priorities_, "high"), std::nullopt);
  for (const char* of_class :
       {R"("metadata":{"name":"high"},"value":100)", R"("metadata":{"name":"d1"},"value":9,"globalDefault":true)",
        R"("metadata":{"name":"d2"},"value":5,"globalDefault":true)"}) {
    Create(kPriorities,
           R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",)" + std::string(of_class) + "}");
  }
  EXPECT_EQ(PriorityOf(priorities_, "high"), 100);
  EXPECT_EQ(PriorityOf(priorities_, ""), 5);
}

}  // namespace
}  // namespace grus
