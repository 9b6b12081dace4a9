// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/alnair_annotations.h"

#include <gmock/gmock.h>

#include "controllers/frame/alnair_news.h"
#include "crds/types/alnair_names.h"
#include "tests/controllers/profiler/alnair_fixture.h"

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

using AlnairAnnotationsTest = testing::AlnairFixture;

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

TEST_F(AlnairAnnotationsTest, AreAtMostFourASecondAndEightWithTheWritesOfRuns) {
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
  EXPECT_THAT(annotations, ElementsAre(3, 6, 9, 12, 12));
  EXPECT_THAT(runs, ElementsAre(2, 4, 6, 8, 12));
  rows_.clear();
  for (int i = 0; i < 12; ++i) Cores("p" + std::to_string(i), 1.12);  // No news of runs.
  clock_.Advance(60s);
  annotations.clear();
  for (int second = 0; second < 4; ++second) {
    ASSERT_TRUE(watch_.Reconcile(UsageWatch::Sweep(), {}));
    annotations.push_back(Patches() - 12);
    clock_.Advance(1s);
  }
  EXPECT_LE(annotations[0], 4);
  EXPECT_EQ(annotations[3], 12);
}

TEST_F(AlnairAnnotationsTest, NamespacesTakeTurnsHoweverMuchIsNewInOneOfThem) {
  StartLongAgo();
  AddPod("train-0", "", "", "", 1);
  Cores("train-0", 1);
  Sweep();
  const auto before = On("pods", "train-0");
  ASSERT_EQ(before.size(), 2U);
  namespace_ = "team-b";
  Create("namespaces", Named("v1", "Namespace", "team-b"));
  RunBook book;
  UsageAnswer answer;
  for (std::size_t i = 0; i < AlnairAnnotations::kMostDue + 10; ++i) {
    const kube::ObjectKey pod{"team-b", "p" + std::to_string(i)};
    AddPod(pod.name, "", "", "", 1);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    book.See(*GpuPodOf(*pods_.Get<kube::Pod>(pod), nullptr, {}));
    answer.usage[pod].cpu_cores = 1;
  }
  book.See(*GpuPodOf(*pods_.Get<kube::Pod>({"team-a", "train-0"}), nullptr, {}));
  answer.usage[{"team-a", "train-0"}].cpu_cores = 1.2;
  AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log_);
  annotations.Take(book.RunningPods({clock_.WallNow()}, 120), answer);
  EXPECT_EQ(annotations.WriteSome(2, {}), 2);
  EXPECT_NE(On("pods", "train-0"), before);
}

class ElsewhereTest : public AlnairAnnotationsTest {
 protected:
  ElsewhereTest()
      : AlnairFixture({.url = "http://p:9090", .namespaces = {"team-b"}, .writes_alnair_annotations = true}) {}
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
