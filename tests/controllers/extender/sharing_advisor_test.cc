// SPDX-License-Identifier: Apache-2.0
// Pods in a NodePool whose placement is Interference, by the calls of a scheduler, on an API server in this process.
#include "controllers/extender/sharing_advisor.h"

#include <gmock/gmock.h>

#include <map>

#include "controllers/extender/extender.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"
#include "crds/types/workload_profile.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kBound[] = R"({"Error":""})", kType[] = "V100";

class SharingAdvisorTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    extender_.refused_pods().FeedQueue(queue_);
    extender_.SetAdvisor(advisor_);
    StartCaches();
    Settle();
    UsePool(0);
    // Two hot jobs disturb each other; a cool one disturbs nobody.
    std::vector<CoRunSample> samples;
    for (const auto& [job, partner, speed] : {std::tuple("hot", "hot", 0.45), std::tuple("hot", "cool", 1.0),
                                              std::tuple("cool", "hot", 1.0), std::tuple("cool", "cool", 1.0)}) {
      samples.push_back(
          {{.fingerprint = WorkloadOfImage(job)}, {.fingerprint = WorkloadOfImage(partner)}, kType, speed, 1000});
    }
    auto model = InterferenceModel::Fit(samples);
    ASSERT_TRUE(model) << model.error().message();
    advisor_.SetModel(std::make_shared<const InterferenceModel>(*std::move(model)));
  }
  void UsePool(int least_speed_percent) {
    QueueSetup setup;
    setup.pools.push_back(
        {"shared", {{"pool", "shared"}}, "nvidia.com/gpu", PoolPlacement::kInterference, least_speed_percent});
    account_.SetQueues(setup);
    Settle();
  }
  // A node with so many GPUs of 16 GiB: a0, a1, ... of node a.
  void AddShared(const std::string& name, int gpus, const char* pool = "shared") {
    Json node = kit::MakeNode(name, 0);
    Json inventory = Json::MakeArray();
    for (int i = 0; i < gpus; ++i) {
      inventory.Append(Json::MakeObject(
          {{"uuid", name + std::to_string(i)}, {"memoryMiB", 16 * 1024}, {"milli", 1000}, {"mode", "gpushare"}}));
    }
    node["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(inventory);
    node["metadata"]["labels"]["pool"] = pool;
    node["metadata"]["labels"][kGpuProductLabel] = kType;
    node["status"]["allocatable"][api::kGpuMemResource] = std::to_string(16 * gpus);
    Create("nodes", std::move(node));
    Settle();
  }
  static Json Pod(const std::string& name, const std::string& image) {
    Json pod = kit::MakePod(name, kit::PodSpec(4, "{}", api::kGpuMemResource), Json(), "team-a");
    (*pod["spec"]["containers"].AsArray())[0]["image"] = image;
    return pod;
  }
  static std::string WorkloadOfImage(const std::string& image) {
    kube::ObjectMeta metadata;
    metadata.ns = "team-a";
    return IdentityOfRunningPod(Pod("any", image), metadata, ProfileTrust::kNamespace).fingerprint;
  }
  void AddPod(const std::string& name, const std::string& image) {
    Create("pods", Pod(name, image));
    Settle();
  }
  std::string Call(const std::string& pod, const std::string& names) {
    return R"({"Pod":)" + kube::ToText(*server_.Get("pods", {"team-a", pod})) + R"(,"NodeNames":)" + names + "}";
  }
  std::string Bind(const std::string& pod, const std::string& node) {
    const auto answer =
        extender_.Bind(R"({"PodName":")" + pod + R"(","PodNamespace":"team-a","Node":")" + node + R"("})");
    return answer ? *answer : "bad: " + answer.error().message();
  }
  std::string AnnotationOf(const std::string& pod, const char* key) {
    return std::string(Live<kube::Pod>({"team-a", pod})->metadata.Annotation(key));
  }
  std::string GpuOf(const std::string& pod) { return AnnotationOf(pod, api::kPlannedGpuAnnotation); }
  // The GPU that a new pod gets.
  std::string Place(const std::string& pod, const std::string& image, const std::string& node = "a") {
    AddPod(pod, image);
    EXPECT_EQ(Bind(pod, node), kBound);
    Settle();
    return GpuOf(pod);
  }

  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer &profiles_ = Cache<api::WorkloadProfile>(), &jobs_ = Cache<api::ElasticHorovodJob>();
  ClusterAccount account_{nodes_, pods_, clock_};
  kube::Registry metrics_;
  SharingAdvisor advisor_{client_, {pods_, nodes_, &profiles_, &jobs_}, account_, events_, clock_, log_};
  Extender extender_{client_, pods_, nodes_, account_, clock_, log_, metrics_};
};

TEST_F(SharingAdvisorTest, WhoDisturbsEachOtherIsPartedAndJoinsWhoDoesNot) {
  AddShared("a", 2);
  const std::string cool = Place("cool-1", "cool"), hot = Place("hot-1", "hot");
  EXPECT_NE(hot, cool) << "a free GPU is the best";
  EXPECT_EQ(Place("hot-2", "hot"), cool);
  EXPECT_EQ(AnnotationOf("hot-2", kWorkloadAnnotation), WorkloadOfImage("hot"));
}

TEST_F(SharingAdvisorTest, WhoIsBoundButNotSeenYetCounts) {
  AddShared("a", 2);
  AddPod("hot-1", "hot");
  AddPod("hot-2", "hot");
  // The cache hears of neither in between.
  EXPECT_EQ(Bind("hot-1", "a"), kBound);
  EXPECT_EQ(Bind("hot-2", "a"), kBound);
  EXPECT_NE(GpuOf("hot-1"), GpuOf("hot-2"));
}

TEST_F(SharingAdvisorTest, TheChoiceStandsInAnAnnotationAndInAnEvent) {
  AddShared("a", 2);
  Place("hot-1", "hot");
  Place("hot-2", "hot");
  const std::string text = AnnotationOf("hot-2", kGpuChoiceAnnotation);
  EXPECT_THAT(text, AllOf(HasSubstr(GpuOf("hot-2")), HasSubstr("is free; not \"" + GpuOf("hot-1") + "\": "),
                          HasSubstr("gain "), HasSubstr(WorkloadOfImage("hot"))));
  EXPECT_LE(text.size(), kMaxExplanationBytes);
  Settle();
  bool is_told = false;
  for (const auto& event : server_.List("events.events.k8s.io")) {
    is_told |= kube::ToText(*event).find("GpuChosen") != std::string::npos;
  }
  EXPECT_TRUE(is_told);
}

TEST_F(SharingAdvisorTest, WhatAPodSaysOfItselfIsNotBelieved) {
  AddShared("a", 2);
  Json pod = Pod("liar", "hot");
  pod["metadata"]["annotations"][kWorkloadAnnotation] = WorkloadOfImage("cool");
  pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = "a0";
  Create("pods", Pod("hot-1", "hot"));
  Settle();
  EXPECT_EQ(Bind("hot-1", "a"), kBound);
  pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = GpuOf("hot-1");
  Create("pods", std::move(pod));
  Settle();
  EXPECT_EQ(Bind("liar", "a"), kBound);
  EXPECT_NE(GpuOf("liar"), GpuOf("hot-1"));
  EXPECT_EQ(AnnotationOf("liar", kWorkloadAnnotation), WorkloadOfImage("hot"));
}

TEST_F(SharingAdvisorTest, NodesAreScoredByTheirBestGpu) {
  AddShared("a", 1);
  AddShared("b", 1);
  AddShared("other", 1, "none");
  Place("hot-1", "hot", "a");
  Place("cool-1", "cool", "b");
  AddPod("hot-2", "hot");
  const auto scores = extender_.Prioritize(Call("hot-2", R"(["a","b"])"));
  ASSERT_TRUE(scores);
  EXPECT_EQ(*scores, R"([{"Host":"a","Score":0},{"Host":"b","Score":10}])");
}

TEST_F(SharingAdvisorTest, WithoutALeastSpeedAPodIsNeverRefusedForSpeed) {
  AddShared("a", 1);
  Place("hot-1", "hot");
  AddPod("hot-2", "hot");
  const auto kept = extender_.Filter(Call("hot-2", R"(["a"])"));
  ASSERT_TRUE(kept);
  EXPECT_THAT(*kept, HasSubstr(R"("NodeNames":["a"])"));
  EXPECT_EQ(Bind("hot-2", "a"), kBound);
}

TEST_F(SharingAdvisorTest, WithALeastSpeedAPodWaitsWhereSomebodyWouldBeSlower) {
  UsePool(80);
  AddShared("a", 1);
  AddShared("b", 1);
  Place("hot-1", "hot", "a");
  AddPod("hot-2", "hot");
  const auto kept = extender_.Filter(Call("hot-2", R"(["a","b"])"));
  ASSERT_TRUE(kept);
  EXPECT_THAT(*kept, AllOf(HasSubstr(R"("NodeNames":["b"])"),
                           HasSubstr("a GPU on which each pod keeps 80 % of its speed (leastSpeedPercent")));
  EXPECT_THAT(Bind("hot-2", "a"), HasSubstr("node a has no room for a GPU on which each pod keeps 80 %"));
  EXPECT_EQ(Live<kube::Pod>({"team-a", "hot-2"})->spec.node_name, "");
  EXPECT_EQ(Bind("hot-2", "b"), kBound);
  EXPECT_EQ(Place("cool-1", "cool", "a"), "a0");
}

TEST_F(SharingAdvisorTest, OneNodeThatIsTooSlowDoesNotMakeTheOthersAlike) {
  for (const char* node : {"a", "b", "c"}) AddShared(node, 1);
  for (const char* pod : {"hot-1", "cool-1", "free"})
    AddPod(pod, std::string(pod).substr(0, std::string(pod).find('-')));
  EXPECT_EQ(Bind("hot-1", "a"), kBound);
  EXPECT_EQ(Bind("cool-1", "b"), kBound);
  Settle();
  AddPod("hot-2", "hot");
  const auto scores = extender_.Prioritize(Call("hot-2", R"(["a","b","c"])"));
  ASSERT_TRUE(scores);
  EXPECT_EQ(*scores, R"([{"Host":"a","Score":0},{"Host":"b","Score":0},{"Host":"c","Score":10}])");
}

TEST_F(SharingAdvisorTest, ANodeWhoseGpusAreNotKnownIsNotRefusedForSpeed) {
  UsePool(80);
  Json node = kit::MakeNode("a", 0);
  node["metadata"]["labels"]["pool"] = "shared";
  node["status"]["allocatable"][api::kGpuMilliResource] = "1000";
  Create("nodes", std::move(node));
  Create("pods", kit::MakePod("hot-1", kit::PodSpec(300, "{}", api::kGpuMilliResource), Json(), "team-a"));
  Settle();
  EXPECT_THAT(*extender_.Filter(Call("hot-1", R"(["a"])")), HasSubstr(R"("NodeNames":["a"])"));
  EXPECT_EQ(Bind("hot-1", "a"), kBound);
}

// S4: annotations are anybody's.
TEST_F(SharingAdvisorTest, APodWithoutAPartIsNobodysNeighbour) {
  UsePool(80);
  AddShared("a", 1);
  Json idle = kit::MakePod("idle", kit::PodSpec(0, R"({"nodeName":"a"})"), Json(), "team-a");
  idle["metadata"]["annotations"][api::kPlannedGpuAnnotation] = "a0";
  Create("pods", std::move(idle));
  AddPod("hot-1", "hot");
  EXPECT_EQ(Bind("hot-1", "a"), kBound);
}

TEST_F(SharingAdvisorTest, WorkloadsOfWhichNothingIsKnownAreOneQuestion) {
  AddShared("a", 1);
  Place("unknown-1", "unknown");
  Edit("pods", {"team-a", "unknown-1"},
       [](Json& pod) { pod["metadata"]["annotations"][kWorkloadAnnotation] = std::string(200'000, 'x'); });
  Settle();
  Place("unknown-2", "another");
  EXPECT_THAT(AnnotationOf("unknown-2", kGpuChoiceAnnotation), HasSubstr("a job without a name"));
}

TEST_F(SharingAdvisorTest, WhatPodsOfOtherNamespacesRunIsNotTold) {
  AddShared("a", 1);
  Create("namespaces", Named("v1", "Namespace", "team-b"));
  Json other = kit::MakePod("other", kit::PodSpec(4, R"({"nodeName":"a"})", api::kGpuMemResource), Json(), "team-b");
  other["metadata"]["annotations"][api::kPlannedGpuAnnotation] = "a0";
  other["metadata"]["annotations"][kWorkloadAnnotation] = WorkloadOfImage("hot");
  Create("pods", std::move(other));
  AddPod("cool-1", "cool");
  EXPECT_EQ(Bind("cool-1", "a"), kBound);
  EXPECT_THAT(AnnotationOf("cool-1", kGpuChoiceAnnotation),
              AllOf(HasSubstr("\"of another namespace\""), Not(HasSubstr(WorkloadOfImage("hot")))));
}

TEST_F(SharingAdvisorTest, AProfileSaysWhatAWorkloadOfItsNamespaceDoes) {
  AddShared("a", 1);
  Json profile = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", WorkloadOfImage("new"));
  profile["spec"]["fingerprint"] = WorkloadOfImage("new");
  profile["spec"]["workload"]["namespace"] = "team-a";
  Create("workloadprofiles.ai.centauruscloud.io", std::move(profile));
  Settle();
  Place("new-1", "new");
  Place("new-2", "new");
  EXPECT_THAT(AnnotationOf("new-2", kGpuChoiceAnnotation), HasSubstr(WorkloadOfImage("new")));
}

TEST_F(SharingAdvisorTest, InOtherPoolsNothingIsPredicted) {
  AddShared("a", 2, "none");
  const std::string first = Place("hot-1", "hot");
  EXPECT_EQ(Place("hot-2", "hot"), first) << "the fullest that has room";
  EXPECT_EQ(AnnotationOf("hot-2", kGpuChoiceAnnotation), "");
  EXPECT_EQ(AnnotationOf("hot-2", kWorkloadAnnotation), "");
  Json liar = Pod("liar", "hot");
  liar["metadata"]["annotations"][kWorkloadAnnotation] = WorkloadOfImage("cool");
  Create("pods", std::move(liar));
  Settle();
  EXPECT_EQ(Bind("liar", "a"), kBound);
  EXPECT_EQ(AnnotationOf("liar", kWorkloadAnnotation), "") << "what it said of itself";
}

}  // namespace
}  // namespace grus
