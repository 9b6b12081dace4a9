// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "crds/types/alnair_names.h"
#include "tests/controllers/profiler/alnair_fixture.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::kJobs;
using ::testing::UnorderedElementsAre;

constexpr char kSets[] = "statefulsets.apps";

using AlnairOwnersTest = testing::AlnairFixture;

TEST_F(AlnairOwnersTest, OwnersOfKindsThatAreNotListedAreLeftAlone) {
  StartLongAgo();
  Json set = Named("apps/v1", "StatefulSet", "web", "team-a");
  set["spec"] = *kube::ParseJson(R"({"serviceName":"w","selector":{"matchLabels":{"a":"b"}},"template":{"metadata":)"
                                 R"({"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"a"}]}}})");
  Json other = set;
  Create(kSets, std::move(set));
  other["kind"] = "ReplicaSet";
  other["spec"].Erase("serviceName");
  Create("replicasets.apps", std::move(other));
  const Json spec = *server_.Get(kSets, {"team-a", "web"})->Find("spec");
  api_version_ = "apps/v1";
  AddPod("web-0", "StatefulSet", "web", UidOf(kSets, "web"));
  AddPod("web-x", "ReplicaSet", "web", UidOf("replicasets.apps", "web"));
  AddPod("bare", "", "", "");
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  for (const char* pod : {"web-0", "web-x", "bare"}) Cores(pod, 1);
  Sweep();
  for (const char* pod : {"web-0", "web-x", "bare"}) EXPECT_EQ(On("pods", pod).size(), 2U) << pod;
  EXPECT_THAT(On(kSets, "web"), UnorderedElementsAre(Key(api::kAlnairOfAnnotation), Key("ai.centaurus.io/web-0")));
  EXPECT_EQ(*server_.Get(kSets, {"team-a", "web"})->Find("spec"), spec);
  EXPECT_EQ(*server_.Get(kSets, {"team-a", "web"})->At({"metadata", "generation"})->AsInt(), 1);
  EXPECT_THAT(On("replicasets.apps", "web"), IsEmpty());
  EXPECT_EQ(tap_.Count("PATCH", "/apis/apps/v1/namespaces/team-a/replicasets"), 0);
}

// The kind, as metrics of requests have it.
class Kinds final : public kube::RequestObserver {
 public:
  void OnRequest(std::string_view verb, const kube::Kind& kind, int, kube::Duration) override {
    seen.insert(std::string(verb) + " " + std::string(kind.kind));
  }
  std::set<std::string> seen;
};

TEST_F(AlnairOwnersTest, WhatAPodCallsItsOwnerLeadsToNoOtherObjectNorIntoMetrics) {
  StartLongAgo();
  Create(kSets, *kube::ParseJson(R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"web",)"
                                 R"("namespace":"team-a"},"spec":{"serviceName":"w","selector":{"matchLabels":)"
                                 R"({"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":)"
                                 R"([{"name":"c","image":"a"}]}}}})"));
  const std::string uid = UidOf(kSets, "web");
  Kinds kinds;
  kube::Client client(tap_, nullptr, clock_, {}, &kinds);
  AlnairAnnotations annotations(client, pods_, source_, clock_, log_);
  const auto owner_requests = [&](const char* pod, const char* api_version, const char* kind, const std::string& of) {
    api_version_ = api_version;
    AddPod(pod, kind, "web", of, 1);
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    UsageAnswer answer;
    answer.usage[{"team-a", pod}].cpu_cores = 1;
    RunBook book;
    book.See(*GpuPodOf(*pods_.Get<kube::Pod>({"team-a", pod}), nullptr, {}));
    const int before = tap_.Count("GET", "/api") + tap_.Count("PATCH", "/api");
    for (int i = 0; i < 3; ++i) {
      annotations.Take(book.RunningPods({clock_.WallNow()}, 120), answer);
      annotations.WriteSome(10, {});
      EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    }
    EXPECT_EQ(On("pods", pod).size(), 2U) << pod;
    return tap_.Count("GET", "/api") + tap_.Count("PATCH", "/api") - before - 1;  // Without the pod's.
  };
  EXPECT_EQ(owner_requests("a", "batch/v1%2Fnamespaces%2Fteam-b%2Fjobs%2Fvictim?x=", "Job", "u1"), 0);
  EXPECT_EQ(owner_requests("b", "apps/v1?x=", "StatefulSet", "u2"), 0);
  EXPECT_EQ(owner_requests("c", "batch/v1", "jOb", "u3"), 0);
  EXPECT_EQ(owner_requests("d", "apps/v1", "statefulSet", "u4"), 0);
  EXPECT_EQ(owner_requests("e", "apps/v1", "STATEFULSET", uid), 1) << "it is read once, and is of another kind";
  EXPECT_THAT(On(kSets, "web"), IsEmpty());
  EXPECT_EQ(owner_requests("f", "apps/v1", "StatefulSet", uid + "x"), 1);
  EXPECT_EQ(owner_requests("g", "apps/v1", "StatefulSet", uid), 2);
  EXPECT_EQ(On(kSets, "web").size(), 2U);
  EXPECT_THAT(kinds.seen, UnorderedElementsAre("patch Pod", "get ", "patch statefulsets"));
}

TEST_F(AlnairOwnersTest, AnOwnerThatIsAnotherOneNowIsLeftAlone) {
  StartLongAgo();
  MakeJob("train");
  AddWorker("train-0", "train", "of-one-before");
  Cores("train-0", 1);
  Sweep();
  Sweep();
  EXPECT_THAT(On(kJobs, "train"), IsEmpty());
  EXPECT_EQ(On("pods", "train-0").size(), 2U);
  EXPECT_EQ(tap_.Count("PATCH", "/apis/ai.centauruscloud.io"), 0);
}

TEST_F(AlnairOwnersTest, AnOwnerThatWasMadeAnewSinceItWasReadIsLeftAlone) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  Cores("train-0", 1);
  Sweep();
  ASSERT_EQ(On(kJobs, "train").size(), 2U);
  ASSERT_TRUE(server_.Delete(kJobs, {"team-a", "train"}));
  MakeJob("train");
  rows_.clear();
  Cores("train-0", 2);
  Sweep();
  EXPECT_EQ(tap_.Count("PATCH", "/apis/ai.centauruscloud.io"), 2);
  EXPECT_THAT(On(kJobs, "train"), IsEmpty());
}

TEST_F(AlnairOwnersTest, AnOwnerHasThoseOfSomePodsOnly) {
  const std::string uid = MakeJob("train");
  StartLongAgo();
  WriteSome(0, 200, uid);
  EXPECT_EQ(On(kJobs, "train").size(), 200U + 1);
  WriteSome(200, 300, uid);
  EXPECT_EQ(On(kJobs, "train").size(), AlnairAnnotations::kMostPodsOfOwner + 1);
  WriteSome(300, 600, uid);
  EXPECT_EQ(On(kJobs, "train").size(), AlnairAnnotations::kMostPodsOfOwner + 1);
  EXPECT_EQ(On("pods", "train-599").size(), 2U);
}

TEST_F(AlnairOwnersTest, TextsOfPodsThatAreGoneMakeRoomForNewOnes) {
  const std::string uid = MakeJob("train", R"({"ai.centaurus.io/mine": "x"})");
  StartLongAgo();
  AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log_);
  WriteSome(annotations, 0, 255, uid);  // One more has a name that a user chose.
  ASSERT_EQ(On(kJobs, "train").size(), 255U + 2);
  for (int i = 10; i < 20; ++i) Bury("train-" + std::to_string(i));
  WriteSome(annotations, 250, 260, uid);
  const auto after = On(kJobs, "train");
  EXPECT_EQ(after.size(), AlnairAnnotations::kMostPodsOfOwner + 2) << "no more are removed than need be";
  for (int i = 250; i < 260; ++i) EXPECT_TRUE(after.contains("ai.centaurus.io/train-" + std::to_string(i))) << i;
  EXPECT_FALSE(after.contains("ai.centaurus.io/train-10"));
  EXPECT_TRUE(after.contains("ai.centaurus.io/train-19"));
  EXPECT_TRUE(after.contains("ai.centaurus.io/train-9")) << "of a pod that is there";
  EXPECT_EQ(after.at("ai.centaurus.io/mine"), "x");
}

TEST_F(AlnairOwnersTest, TextsOfAnOwnerAreBoundedInBytes) {
  const std::string uid = MakeJob("train");
  StartLongAgo();
  PodDetail detail;
  for (std::int32_t gpu = 0; gpu < 100; ++gpu) detail.gpu_memory[gpu] = 1e10;
  AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log_);
  const auto bytes = [&] {
    std::size_t all = 0;
    for (const auto& [name, text] : On(kJobs, "train")) all += name.size() + text.size();
    return all;
  };
  WriteSome(annotations, 0, 60, uid, detail);
  EXPECT_GT(bytes(), AlnairAnnotations::kMostBytesOfOwner - 4096);
  EXPECT_LE(bytes(), AlnairAnnotations::kMostBytesOfOwner + 200) << "beside the UID";
  const int before = tap_.Count("PATCH", "/apis/");
  WriteSome(annotations, 0, 60, uid, detail);
  EXPECT_EQ(tap_.Count("PATCH", "/apis/"), before) << "what has no room is not tried each minute";
  for (int i = 10; i < 15; ++i) Bury("train-" + std::to_string(i));
  WriteSome(annotations, 55, 60, uid, detail);
  EXPECT_TRUE(On(kJobs, "train").contains("ai.centaurus.io/train-59"));
  EXPECT_LE(bytes(), AlnairAnnotations::kMostBytesOfOwner + 200);
  detail.gpu_memory.clear();
  for (std::int32_t gpu = 0; gpu < 1000; ++gpu) detail.gpu_memory[gpu] = 1e10;  // No reader would take it.
  AlnairAnnotations other(tapped_, pods_, source_, clock_, log_);
  WriteSome(other, 100, 101, uid, detail);
  EXPECT_FALSE(On(kJobs, "train").contains("ai.centaurus.io/train-100"));
}

TEST_F(AlnairOwnersTest, NoMoreOfAnOwnerIsReadThanGrusWrites) {
  const std::string uid = MakeJob("train");
  Edit(kJobs, {"team-a", "train"}, [&](Json& job) {
    Json& notes = job["metadata"]["annotations"] = Json::MakeObject({{api::kAlnairOfAnnotation, uid}});  // As a liar.
    for (int i = 0; i < 300; ++i) notes["ai.centaurus.io/gone-" + std::to_string(i)] = "{'cpu_util': 1.0}";
  });
  StartLongAgo();
  WriteSome(0, 1, uid);
  const auto after = On(kJobs, "train");
  EXPECT_TRUE(after.contains("ai.centaurus.io/train-0"));
  EXPECT_EQ(after.size(), 300U + 1) << "of those that were read one made room; the others are not grus'";
}

TEST_F(AlnairOwnersTest, WhatIsRefusedOrRemovedOnItsWayIsNotTriedEachMinuteAndTakesNoRoom) {
  const std::string uid = MakeJob("train");
  StartLongAgo();
  const std::string removed =
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"train","uid":")" + uid +
      "\"}}";
  int owner_patches = 0;
  for (const kube::HttpResponse& answer : {Invalid(), kube::HttpResponse{200, {}, removed}}) {
    AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log_);
    tap_.Refuse(answer);
    WriteSome(annotations, 0, 256, uid);
    ASSERT_EQ(tap_.Count("PATCH", "/apis/"), ++owner_patches);
    WriteSome(annotations, 0, 256, uid);
    EXPECT_EQ(tap_.Count("PATCH", "/apis/"), owner_patches) << "nothing changed";
    tap_.Refuse(std::nullopt);
    WriteSome(annotations, 256, 300, uid);
    EXPECT_EQ(On(kJobs, "train").size(), 44U + 1) << "of 256 others nothing stands there";
    ++owner_patches;
    Edit(kJobs, {"team-a", "train"}, [](Json& job) { job["metadata"].Erase("annotations"); });
  }
}

TEST_F(AlnairOwnersTest, ANameThatIsTooLongForAnAnnotationIsOnlyOnThePod) {
  StartLongAgo();
  const std::string name = "train-" + std::string(60, 'x');
  AddWorker(name, "train", MakeJob("train"));
  Cores(name, 1);
  Sweep();
  EXPECT_EQ(On("pods", name).size(), 2U);
  EXPECT_THAT(On(kJobs, "train"), IsEmpty());
  EXPECT_EQ(tap_.Count("PATCH", "/apis/"), 0);
}

}  // namespace
}  // namespace grus
