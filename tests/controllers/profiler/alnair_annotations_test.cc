// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/alnair_annotations.h"

#include <gmock/gmock.h>

#include "controllers/frame/alnair_news.h"
#include "crds/types/alnair_names.h"
#include "tests/controllers/profiler/usage_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::kJobs;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kSets[] = "statefulsets.apps";

class AlnairAnnotationsTest : public testing::UsageFixture {
 protected:
  explicit AlnairAnnotationsTest(UsageSource source = {.url = "http://p:9090",
                                                       .owner_kinds = {{"apps", "statefulsets"}},
                                                       .writes_alnair_annotations = true})
      : UsageFixture(std::move(source)) {}

  void StartLongAgo() {
    Start();
    clock_.Advance(2min);
  }
  static std::string Row(const std::string& labels, const std::string& pod, double value) {
    return R"({"metric":{"namespace":"team-a","pod":")" + pod + "\"" + labels + R"(},"value":[1,")" +
           std::to_string(value) + "\"]}";
  }
  // A process on GPU 0, and that GPU.
  void Busy(const std::string& pod, double gpu, const std::string& pid = {}, double process = 0) {
    std::string rows = Row(R"(,"series":"busy","gpu":"0")", pod, gpu);
    if (!pid.empty()) rows += "," + Row(R"(,"series":"busy","gpu":"0","pid":")" + pid + "\"", pod, process);
    std::string& all = rows_["grus_gpu_process_sm_ratio"];
    all += (all.empty() ? "" : ",") + rows;
  }
  void Cores(const std::string& pod, double cores) {
    std::string& all = rows_["container_cpu_usage_seconds_total"];
    all += (all.empty() ? "" : ",") + Row("", pod, cores);
  }

  std::map<std::string, std::string> On(std::string_view resource, const std::string& name) {
    std::map<std::string, std::string> annotations;
    const auto object = server_.Get(resource, {"team-a", name});
    const Json* given = object ? object->At({"metadata", "annotations"}) : nullptr;
    if (given == nullptr) return annotations;
    for (const auto& [key, value] : *given->AsObject()) annotations[key] = *value.AsString();
    return annotations;
  }
  std::string UidOf(std::string_view resource, const std::string& name) {
    return *server_.Get(resource, {"team-a", name})->At({"metadata", "uid"})->AsString();
  }
  std::string MakeJob(const std::string& name, const std::string& annotations = "{}") {
    Json job = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", name, "team-a");
    job["metadata"]["annotations"] = *kube::ParseJson(annotations);
    job["spec"] =
        *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":["x"]},"workersSpec":{"image":"a"}})");
    Create(kJobs, std::move(job));
    api_version_ = "ai.centauruscloud.io/v1alpha1";
    return UidOf(kJobs, name);
  }
  void AddWorker(const std::string& name, const std::string& job, const std::string& uid) {
    AddPod(name, "ElasticHorovodJob", job, uid);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  int Patches() const { return tap_.Count("PATCH"); }
};

TEST_F(AlnairAnnotationsTest, OfWhatWasBeforeItBeganAProcessBelievesOnlyPodsThatWereThere) {
  Start();
  AddWorker("train-0", "train", MakeJob("train"));  // Maybe there was one of that name before.
  Cores("train-0", 1);
  Sweep();
  EXPECT_THAT(On("pods", "train-0"), IsEmpty());
  Sweep();
  EXPECT_EQ(On("pods", "train-0").size(), 2U);
}

TEST_F(AlnairAnnotationsTest, SayWhatAPodUsedAtMostOnThePodAndOnItsController) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  Busy("train-0", 97, "4711", 60);
  Cores("train-0", 3.5);
  Sweep();
  EXPECT_THAT(On("pods", "train-0"), ElementsAre(Pair(api::kAlnairOfAnnotation, UidOf("pods", "train-0")),
                                                 Pair("alnair.centaurusinfra.io/gpu_util", "{'gpu_0_4711': 60}"),
                                                 Pair("alnair.centaurusinfra.io/max_cpu_util", "350.0")));
  EXPECT_THAT(On(kJobs, "train"),
              UnorderedElementsAre(
                  Pair(api::kAlnairOfAnnotation, UidOf(kJobs, "train")),
                  Pair("ai.centaurus.io/train-0", "{'cpu_util': 350.0, 'n1-gpu-0_util': 97.0, 'node': 'n1'}")));
  EXPECT_LE(queries_, 12);
}

TEST_F(AlnairAnnotationsTest, AreWrittenOnlyWhenANumberRisesByATenth) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  Cores("train-0", 2);
  Sweep();
  EXPECT_EQ(Patches(), 2);
  for (const double cores : {2.0, 2.1, 0.5}) {
    rows_.clear();
    Cores("train-0", cores);
    Sweep();
  }
  rows_.clear();
  Sweep();
  EXPECT_EQ(Patches(), 2) << "nothing rose by a tenth";
  EXPECT_EQ(On("pods", "train-0").at("alnair.centaurusinfra.io/max_cpu_util"), "200.0");
  Cores("train-0", 2.5);
  Sweep();
  EXPECT_EQ(Patches(), 4);
  EXPECT_EQ(On("pods", "train-0").at("alnair.centaurusinfra.io/max_cpu_util"), "250.0");
  EXPECT_THAT(On(kJobs, "train").at("ai.centaurus.io/train-0"), HasSubstr("250.0"));
}

TEST_F(AlnairAnnotationsTest, WhatNoSourceTellsIsNotWritten) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  Sweep();
  EXPECT_THAT(On("pods", "train-0"), IsEmpty());
  EXPECT_THAT(On(kJobs, "train"), IsEmpty());
  is_down_ = true;
  Sweep();
  EXPECT_EQ(Patches(), 0);
}

TEST_F(AlnairAnnotationsTest, AnotherProcessGoesOnWithoutWritingEqualValues) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  Cores("train-0", 4);
  Sweep();
  ASSERT_EQ(Patches(), 2);
  Sweep();
  Sweep();
  UsageWatch second(tapped_, {jobs_, pods_, nodes_, profiles_}, store_, prometheus_, source_, clock_, log_);
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  const auto sweep = [&] {
    ASSERT_TRUE(second.Reconcile(UsageWatch::Sweep(), {}));
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    clock_.Advance(60s);
  };
  rows_.clear();
  Cores("train-0", 3);
  for (int i = 0; i < 3; ++i) sweep();
  EXPECT_EQ(Patches(), 2);
  EXPECT_EQ(tap_.Count("GET", "/apis/ai.centauruscloud.io"), 2) << "each process reads the owner at most once";
  rows_.clear();
  Cores("train-0", 5);
  sweep();
  EXPECT_EQ(Patches(), 4);
  EXPECT_EQ(On("pods", "train-0").at("alnair.centaurusinfra.io/max_cpu_util"), "500.0");
  EXPECT_EQ(On(kJobs, "train").at("ai.centaurus.io/train-0"), "{'cpu_util': 500.0, 'node': 'n1'}");
}

TEST_F(AlnairAnnotationsTest, WhatUsersWroteIsNotBelievedAndOtherNamesStay) {
  StartLongAgo();
  AddWorker("train-0", "train",
            MakeJob("train", R"({"ai.centaurus.io/train-0": "{'cpu_util': 9000.0, 'node': 'n1'}",)"
                             R"("ai.centaurus.io/mine": "x", "team": "a"})"));
  Edit("pods", {"team-a", "train-0"}, [](Json& pod) {
    pod["metadata"]["annotations"] = *kube::ParseJson(
        R"({"alnair.centaurusinfra.io/max_cpu_util":"9000.0","alnair.centaurusinfra.io/own":"1","team":"a"})");
  });
  Cores("train-0", 1);
  Sweep();
  EXPECT_THAT(On("pods", "train-0"),
              UnorderedElementsAre(Key(api::kAlnairOfAnnotation), Pair("alnair.centaurusinfra.io/own", "1"),
                                   Pair("team", "a"), Pair("alnair.centaurusinfra.io/max_cpu_util", "100.0")));
  EXPECT_THAT(On(kJobs, "train"),
              UnorderedElementsAre(Key(api::kAlnairOfAnnotation), Pair("ai.centaurus.io/mine", "x"), Pair("team", "a"),
                                   Pair("ai.centaurus.io/train-0", "{'cpu_util': 100.0, 'node': 'n1'}")));
}

TEST_F(AlnairAnnotationsTest, APodOfTheSameNameHasNoneOfThoseOfTheLastOne) {
  StartLongAgo();
  const std::string uid = MakeJob("train");
  AddWorker("train-0", "train", uid);
  Cores("train-0", 4);
  Sweep();
  Bury("train-0");
  AddWorker("train-0", "train", uid);
  Sweep();
  EXPECT_THAT(On("pods", "train-0"), IsEmpty()) << "the numbers of that name may be the last one's";
  Sweep();
  rows_.clear();
  Cores("train-0", 1);
  Sweep();
  EXPECT_EQ(On("pods", "train-0").at("alnair.centaurusinfra.io/max_cpu_util"), "100.0");
  EXPECT_THAT(On(kJobs, "train").at("ai.centaurus.io/train-0"), HasSubstr("400.0")) << "of all pods of that name";
}

TEST_F(AlnairAnnotationsTest, OwnersOfKindsThatAreNotListedAreLeftAlone) {
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

TEST_F(AlnairAnnotationsTest, AnOwnerThatIsAnotherOneNowIsLeftAlone) {
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

TEST_F(AlnairAnnotationsTest, AnOwnerThatWasMadeAnewSinceItWasReadIsLeftAlone) {
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

TEST_F(AlnairAnnotationsTest, APodThatIsGoneIsNotWritten) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  Cores("train-0", 1);
  Bury("train-0");
  Sweep();
  EXPECT_EQ(tap_.Count("PATCH", "/api/v1/namespaces/team-a/pods"), 0);
}

TEST_F(AlnairAnnotationsTest, ARefusalIsToldOnceAMinuteAndTriedAgainAtTheNextChange) {
  StartLongAgo();
  for (int i = 0; i < 3; ++i) {
    AddPod("p" + std::to_string(i), "", "", "", 1);
    Cores("p" + std::to_string(i), 1);
  }
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  const kube::Log log(kube::LogLevel::kWarn);
  AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log);
  RunBook book;
  for (const auto& pod : pods_.List<kube::Pod>()) book.See(*GpuPodOf(*pod, nullptr, {}));
  const auto take = [&](double cores) {
    UsageAnswer answer;
    for (const char* pod : {"p0", "p1", "p2"}) answer.usage[{"team-a", pod}].cpu_cores = cores;
    annotations.Take(book.RunningPods({clock_.WallNow()}, 120), answer);
    ::testing::internal::CaptureStderr();
    annotations.WriteSome(10, {});
    const std::string lines = ::testing::internal::GetCapturedStderr();
    return std::ranges::count(lines, '\n');
  };
  const kube::HttpResponse forbidden{
      403, {}, R"({"kind":"Status","status":"Failure","reason":"Forbidden","message":"no","code":403})"};
  tap_.Refuse(forbidden);
  EXPECT_EQ(take(1), 1) << "three refusals";
  EXPECT_EQ(Patches(), 3);
  clock_.Advance(60s);
  EXPECT_EQ(take(1), 0) << "nothing changed";
  EXPECT_EQ(Patches(), 3);
  EXPECT_EQ(take(2), 1);
  EXPECT_EQ(Patches(), 6);
  tap_.Refuse(kube::Result<kube::HttpResponse>(kube::Error(kube::ErrorCode::kUnavailable, "nobody answers")));
  EXPECT_EQ(take(3), 1);
  tap_.Refuse(std::nullopt);
  EXPECT_EQ(take(3), 0) << "what did not arrive is sent again";
  EXPECT_EQ(On("pods", "p2").at("alnair.centaurusinfra.io/max_cpu_util"), "300.0");
}

TEST_F(AlnairAnnotationsTest, WhatSomethingRemovesOnItsWayIsNotWrittenEachMinute) {
  StartLongAgo();
  AddPod("p0", "", "", "", 1);
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  Cores("p0", 1);
  const std::string metadata =
      R"({"name":"p0","namespace":"team-a","annotations":{"team":"a"},"uid":")" + UidOf("pods", "p0") + "\"}";
  tap_.Refuse(kube::HttpResponse{
      200, {}, R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":)" + metadata + "}"});
  for (int i = 0; i < 3; ++i) Sweep();
  EXPECT_EQ(Patches(), 1);
  tap_.Refuse(std::nullopt);
  rows_.clear();
  Cores("p0", 2);
  Sweep();
  EXPECT_EQ(On("pods", "p0").at("alnair.centaurusinfra.io/max_cpu_util"), "200.0");
}

TEST_F(AlnairAnnotationsTest, NewOnesAreWrittenFirstThenThoseThatRoseMost) {
  StartLongAgo();
  for (int i = 0; i < 3; ++i) {
    AddPod("p" + std::to_string(i), "", "", "", 1);
    Cores("p" + std::to_string(i), 1);
  }
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  Sweep();
  ASSERT_EQ(Patches(), 3);
  AddPod("p3", "", "", "", 1);
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log_);
  RunBook book;
  UsageAnswer answer;
  for (const auto& [pod, cores] : {std::pair("p0", 1.5), {"p1", 1.2}, {"p2", 2.5}, {"p3", 0.1}}) {
    book.See(*GpuPodOf(*pods_.Get<kube::Pod>({"team-a", pod}), nullptr, {}));
    answer.usage[{"team-a", pod}].cpu_cores = cores;
  }
  annotations.Take(book.RunningPods({clock_.WallNow()}, 120), answer);
  for (const std::string pod : {"p3", "p2", "p0", "p1"}) {
    const auto before = On("pods", pod);
    EXPECT_EQ(annotations.WriteSome(1, {}), 1);
    EXPECT_NE(On("pods", pod), before) << pod << " is next";
  }
  EXPECT_FALSE(annotations.has_more());
}

TEST_F(AlnairAnnotationsTest, AreAtMostFiveASecondAndTenWithTheWritesOfRuns) {
  StartLongAgo();
  for (int i = 0; i < 12; ++i) {
    const std::string name = "p" + std::to_string(i);
    AddPod(name, "", "", "", 1);
    utilization_[name] = 50;
    Cores(name, 1);
  }
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  for (const auto& pod : pods_.List<kube::Pod>()) Resolve(pod->metadata.uid);
  clock_.Advance(60s);
  std::vector<int> annotations, runs;
  for (int second = 0; second < 5; ++second) {
    const auto action = watch_.Reconcile(UsageWatch::Sweep(), {});
    ASSERT_TRUE(action);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    annotations.push_back(Patches());
    runs.push_back(static_cast<int>(Runs().size()));
    if (*action->delay() > 1s) break;
    clock_.Advance(1s);
  }
  // A run is two writes.
  EXPECT_THAT(annotations, ElementsAre(4, 8, 12, 12));
  EXPECT_THAT(runs, ElementsAre(3, 6, 9, 12));
  rows_.clear();
  for (int i = 0; i < 12; ++i) Cores("p" + std::to_string(i), 1.12);  // No news of runs.
  clock_.Advance(60s);
  annotations.clear();
  for (int second = 0; second < 3; ++second) {
    ASSERT_TRUE(watch_.Reconcile(UsageWatch::Sweep(), {}));
    annotations.push_back(Patches() - 12);
    clock_.Advance(1s);
  }
  EXPECT_LE(annotations[0], 5);
  EXPECT_EQ(annotations[2], 12);
}

TEST_F(AlnairAnnotationsTest, AnOwnerHasThoseOfSomePodsOnly) {
  const std::string uid = MakeJob("train");
  StartLongAgo();
  UsageAnswer answer;
  const auto write = [&](int from, int to) {  // Another process; only these pods run.
    AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log_);
    RunBook book;
    for (int i = from; i < to; ++i) {
      const std::string name = "train-" + std::to_string(i);
      AddPod(name, "ElasticHorovodJob", "train", uid, 1);
      answer.usage[{"team-a", name}].cpu_cores = 1;
      ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
      book.See(*GpuPodOf(*pods_.Get<kube::Pod>({"team-a", name}), nullptr, {}));
    }
    annotations.Take(book.RunningPods({clock_.WallNow()}, 120), answer);
    annotations.WriteSome(1000, {});
  };
  write(0, 200);
  EXPECT_EQ(On(kJobs, "train").size(), 200U + 1);
  write(200, 300);
  EXPECT_EQ(On(kJobs, "train").size(), AlnairAnnotations::kMostPodsOfOwner + 1);
  write(300, 600);
  EXPECT_EQ(On(kJobs, "train").size(), AlnairAnnotations::kMostPodsOfOwner + 1);
  EXPECT_EQ(On("pods", "train-599").size(), 2U);
}

TEST_F(AlnairAnnotationsTest, ANameThatIsTooLongForAnAnnotationIsOnlyOnThePod) {
  StartLongAgo();
  const std::string name = "train-" + std::string(60, 'x');
  AddWorker(name, "train", MakeJob("train"));
  Cores(name, 1);
  Sweep();
  EXPECT_EQ(On("pods", name).size(), 2U);
  EXPECT_THAT(On(kJobs, "train"), IsEmpty());
  EXPECT_EQ(tap_.Count("PATCH", "/apis/"), 0);
}

class ElsewhereTest : public AlnairAnnotationsTest {
 protected:
  ElsewhereTest()
      : AlnairAnnotationsTest({.url = "http://p:9090", .namespaces = {"team-b"}, .writes_alnair_annotations = true}) {}
};

TEST_F(ElsewhereTest, NothingIsWrittenInOtherNamespaces) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  Cores("train-0", 1);
  Sweep();
  EXPECT_EQ(Patches(), 0);
}

class SwitchedOffTest : public testing::UsageFixture {};

TEST_F(SwitchedOffTest, NothingIsWrittenNorAskedFor) {
  Start();
  AddPod("train-0", "", "", "");
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  Resolve(pods_.Get<kube::Pod>({"team-a", "train-0"})->metadata.uid);
  utilization_ = {{"train-0", 50}};
  Sweep();
  ASSERT_EQ(Runs().size(), 1U);
  EXPECT_EQ(tap_.Count("PATCH"), 0);
  EXPECT_LE(queries_, 9);
}

TEST_F(AlnairAnnotationsTest, AreNoNewsForReconcilers) {
  StartLongAgo();
  AddWorker("train-0", "train", MakeJob("train"));
  std::vector<bool> is_news;
  kube::WorkQueue queue(clock_);
  KeyFeed feed{1s};
  feed.Open(queue);
  const kube::Kind& kind = kube::KindOf<api::ElasticHorovodJob>();
  const auto change = [&](auto edit) {
    const auto before = Live<api::ElasticHorovodJob>({"team-a", "train"});
    edit();
    const auto after = Live<api::ElasticHorovodJob>({"team-a", "train"});
    EXPECT_NE(before->metadata.resource_version, after->metadata.resource_version);
    const std::size_t waiting = queue.counts().depth;
    feed.AddChanged(before->metadata.Key(), kind, {before, after});
    if (queue.counts().depth == waiting) return false;
    queue.Done(queue.Get()->key);
    return true;
  };
  const auto annotate = [&](const char* name) {
    Edit(kJobs, {"team-a", "train"}, [&](Json& job) { job["metadata"]["annotations"][name] = "x"; });
  };
  Cores("train-0", 1);
  EXPECT_FALSE(change([&] { Sweep(); })) << "what the profiler wrote";
  EXPECT_TRUE(change([&] { annotate("ai.centauruscloud.io/samples-per-second"); }));
  EXPECT_TRUE(change([&] {
    annotate("ai.centaurus.io/train-0");
    Edit(
        kJobs, {"team-a", "train"}, [](Json& job) { job["status"]["phase"] = "Running"; }, "status");
  })) << "the status changed, too";
  EXPECT_TRUE(change([&] {
    Edit(kJobs, {"team-a", "train"}, [&](Json& job) {
      job["metadata"]["annotations"]["ai.centaurus.io/train-0"] = "y";
      job["spec"]["workersSpec"]["maxReplicas"] = 3;
    });
  })) << "the spec changed, too";
}

}  // namespace
}  // namespace grus
