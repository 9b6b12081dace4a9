// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/run_book.h"

#include <gmock/gmock.h>

namespace grus {
namespace {

using std::chrono::seconds;

kube::Time At(int second) { return {kube::Time{}.value + std::chrono::hours(24 * 365 * 50) + seconds(second)}; }

NodeGpus GpusOf(const std::string& node) { return {.type = node.empty() ? "" : "A100", .memory = 80e9}; }

JobRef Job(const std::string& name) { return {"Job", {"team-a", name}, "uid-" + name}; }

GpuPod Pod(const std::string& name, const std::string& job, int started, int gpus = 2) {
  return {.key = {"team-a", name},
          .uid = "pod-" + name + "-" + std::to_string(started),
          .owner = std::make_shared<const JobRef>(Job(job)),
          .gpus = gpus,
          .node = "n1",
          .started = At(started)};
}

GpuPod Ended(GpuPod pod, int when, api::RunOutcome outcome = api::RunOutcome::kSucceeded) {
  pod.ended = At(when);
  pod.outcome = outcome;
  return pod;
}

UsageByPod Uses(std::initializer_list<std::pair<const char*, double>> utilization) {
  UsageByPod usage;
  for (const auto& [pod, share] : utilization) {
    PodUsage& used = usage[{"team-a", pod}];
    used.gpu_utilization = used.max_gpu_utilization = share;
    used.max_gpu_memory = share * 1e9;
  }
  return usage;
}

std::vector<JobRun> RunsOf(const RunBook& book, const std::vector<JobNow>& jobs) {
  std::vector<JobRun> runs;
  for (const JobNow& job : jobs) runs.push_back(*book.RunOf(job.ref.Id()));
  return runs;
}

class RunBookTest : public ::testing::Test {
 protected:
  std::vector<JobRun> End(int now, const UsageByPod& usage, double window = 60, double reach = 600) {
    return RunsOf(book_, book_.EndInterval(usage, At(now), window, reach, GpusOf));
  }
  RunBook book_;
};

TEST_F(RunBookTest, AddsUpThePodsOfAJob) {
  book_.See(Pod("a-0", "a", 0));
  book_.See(Pod("a-1", "a", 10));
  book_.See(Pod("b-0", "b", 0));
  const auto runs = End(60, Uses({{"a-0", 0.5}, {"a-1", 0.9}, {"b-0", 0.1}, {"stranger", 1}}));
  ASSERT_EQ(runs.size(), 2U);
  const api::WorkloadRun& a = runs[0].run;
  EXPECT_EQ(a.job, "Job/team-a/a");
  EXPECT_EQ(a.gpus, 4);
  EXPECT_EQ(a.gpu_seconds, 2 * 60 + 2 * 50);
  EXPECT_EQ(a.gpu_type, "A100");
  EXPECT_EQ(a.usage.gpu_utilization_percent, 68) << "60 s at 50 %, 50 s at 90 %";
  EXPECT_EQ(a.usage.max_gpu_utilization_percent, 90);
  EXPECT_EQ(a.usage.max_gpu_memory_bytes, 900'000'000);
  EXPECT_FALSE(a.end);
  EXPECT_EQ(runs[1].run.usage.gpu_utilization_percent, 10);
}

TEST_F(RunBookTest, APodThatVanishesWithinTheIntervalStillCounts) {
  book_.See(Pod("a-0", "a", 0));
  book_.Remove({"team-a", "a-0"}, "pod-a-0-0", At(40));
  const auto runs = End(60, Uses({{"a-0", 0.5}}));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_TRUE(runs[0].is_over());
  EXPECT_EQ(runs[0].run.gpu_seconds, 80);
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 50);
  EXPECT_EQ(runs[0].run.outcome, api::RunOutcome::kDeleted);
  EXPECT_EQ(runs[0].run.end, At(40));
  EXPECT_EQ(book_.pod_count(), 0U);
}

TEST_F(RunBookTest, ARunStaysUntilItIsForgotten) {
  book_.See(Ended(Pod("a-0", "a", 0), 40));
  (void)End(60, Uses({{"a-0", 0.5}}));
  const auto again = End(120, {});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].run.usage.gpu_utilization_percent, 50);
  EXPECT_EQ(again[0].run.outcome, api::RunOutcome::kSucceeded);
  book_.Forget({"team-a", "uid-a"});
  EXPECT_TRUE(End(180, {}).empty());
}

TEST_F(RunBookTest, TheLastPodSaysHowItEnded) {
  book_.See(Ended(Pod("a-0", "a", 0), 20, api::RunOutcome::kFailed));
  book_.See(Ended(Pod("a-1", "a", 20), 50, api::RunOutcome::kSucceeded));
  EXPECT_EQ(End(60, {})[0].run.outcome, api::RunOutcome::kSucceeded);
}

TEST_F(RunBookTest, MeansAreWeightedByTime) {
  book_.See(Pod("a-0", "a", 0));
  (void)End(60, Uses({{"a-0", 0.9}}));
  (void)End(240, Uses({{"a-0", 0.1}}), 180);
  EXPECT_EQ(End(240, {})[0].run.usage.gpu_utilization_percent, 30);
}

TEST_F(RunBookTest, WhatAPodDidBeforeTheWindowIsNotGuessed) {
  api::WorkloadRun before{.uid = "uid-a", .gpus = 2, .gpu_seconds = 2 * 6000, .start = At(0)};
  before.usage.gpu_utilization_percent = 80;
  book_.See(Pod("a-0", "a", 0));
  (void)End(6060, Uses({{"a-0", 0.0}}));
  book_.Resume({"team-a", "uid-a"}, before);
  const auto runs = End(6060, {});
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 79) << "a hundred minutes at 80 %, one at 0";
  EXPECT_EQ(runs[0].run.gpu_seconds, 2 * 6060);
}

TEST_F(RunBookTest, ARunThatComesAgainAddsToWhatItWas) {
  api::WorkloadRun before{.uid = "uid-a", .gpus = 2, .gpu_seconds = 36000, .start = At(0)};
  before.end = At(18000);
  book_.See(Pod("a-0", "a", 20000));
  (void)End(20060, {});
  book_.Resume({"team-a", "uid-a"}, before);
  EXPECT_EQ(End(20060, {})[0].run.gpu_seconds, 36000 + 120);
}

TEST_F(RunBookTest, MeansAreOfGpusAndOfTheTimeThatEachRan) {
  book_.See(Pod("a-0", "a", 0, 8));
  book_.See(Pod("a-1", "a", 0, 1));
  EXPECT_EQ(End(60, Uses({{"a-0", 0.9}, {"a-1", 0.1}}))[0].run.usage.gpu_utilization_percent, 81);
  book_.See(Pod("b-0", "b", 60, 1));
  book_.See(Pod("b-1", "b", 115, 1));
  EXPECT_EQ(End(120, Uses({{"b-0", 0.65}, {"b-1", 0.0}}))[1].run.usage.gpu_utilization_percent, 60);
}

TEST_F(RunBookTest, APodOfWhichNothingIsToldIsTakenForAsBusyAsTheOthers) {
  book_.See(Pod("a-0", "a", 0));
  book_.See(Pod("a-1", "a", 0));
  UsageByPod usage;
  usage[{"team-a", "a-0"}].cpu_cores = 3;
  EXPECT_EQ(End(60, usage)[0].run.usage.cpu_cores, "6");
}

TEST_F(RunBookTest, RetriesAreNoGpusAtATime) {
  for (int i = 0; i < 3; ++i) book_.See(Ended(Pod("a-" + std::to_string(i), "a", 10 * i, 8), 10 * i + 10));
  EXPECT_EQ(End(60, {})[0].run.gpus, 8);
}

TEST_F(RunBookTest, ARunOfSeveralGpuTypesHasNone) {
  book_.See(Pod("a-0", "a", 0));
  GpuPod other = Pod("a-1", "a", 0);
  other.node = "n2";
  book_.See(other);
  const auto gpus_of = [](const std::string& node) {
    return node == "n1" ? NodeGpus{"A100", 40e9} : NodeGpus{"H100", 80e9};
  };
  const auto jobs = book_.EndInterval({}, At(60), 60, 600, gpus_of);
  EXPECT_EQ(RunsOf(book_, jobs)[0].run.gpu_type, "");
  EXPECT_EQ(jobs[0].use.memory, 0);
}

TEST_F(RunBookTest, AJobWhosePodsCameBackIsNotForgotten) {
  book_.See(Ended(Pod("a-0", "a", 0), 40));
  ASSERT_TRUE(End(60, Uses({{"a-0", 0.5}}))[0].is_over());
  book_.See(Pod("a-0", "a", 61));
  EXPECT_FALSE(book_.Forget({"team-a", "uid-a"}));
  const auto runs = End(120, Uses({{"a-0", 0.5}}));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_FALSE(runs[0].is_over());
  EXPECT_EQ(runs[0].run.gpu_seconds, 80 + 118);
}

TEST_F(RunBookTest, ANameThatAnotherJobHadShortlyBeforeCountsForNeither) {
  book_.See(Ended(Pod("same", "a", 0), 50));
  (void)End(60, {});
  book_.See(Pod("same", "b", 65));
  EXPECT_FALSE(End(120, Uses({{"same", 1}}))[1].run.usage.gpu_utilization_percent);
  EXPECT_EQ(End(720, Uses({{"same", 1}}), 60)[1].run.usage.gpu_utilization_percent, 100);
}

TEST_F(RunBookTest, APartThatEndedBeforeItsRootWasKnownIsItsRootsRun) {
  book_.See(Ended(Pod("s-1", "s-1", 0), 40));
  (void)End(60, Uses({{"s-1", 0.5}}));
  book_.SetRoot({"team-a", "uid-s-1"}, {"JobSet", {"team-a", "s"}, "uid-s"});
  const auto runs = End(120, {});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].run.uid, "uid-s");
  EXPECT_EQ(runs[0].run.end, At(40));
  EXPECT_EQ(runs[0].run.gpu_seconds, 80);
  EXPECT_TRUE(book_.Forget({"team-a", "uid-s"}));
  EXPECT_EQ(book_.job_count(), 0U);
}

TEST_F(RunBookTest, WhatNoSourceToldIsNotZero) {
  book_.See(Pod("a-0", "a", 0));
  (void)End(60, Uses({{"a-0", 0.8}}));
  const auto runs = End(120, {});
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 80) << "the mean of what is known";
  EXPECT_FALSE(runs[0].run.usage.memory_bandwidth_percent);
  EXPECT_EQ(runs[0].run.usage.cpu_cores, "");
}

TEST_F(RunBookTest, ANameThatTwoJobsHadCountsForNeither) {
  book_.See(Ended(Pod("same", "a", 0), 20));
  book_.See(Pod("same", "b", 30));
  for (const JobRun& run : End(60, Uses({{"same", 1}}))) EXPECT_FALSE(run.run.usage.gpu_utilization_percent);
  (void)End(120, {});
  const auto later = End(720, Uses({{"same", 1}}));
  EXPECT_FALSE(later[0].run.usage.gpu_utilization_percent);
  EXPECT_EQ(later[1].run.usage.gpu_utilization_percent, 100) << "only b has it now";
}

TEST_F(RunBookTest, AReplacementOfTheSameJobCounts) {
  book_.See(Ended(Pod("a-0", "a", 0), 20));
  book_.See(Pod("a-0", "a", 30));
  const auto runs = End(60, Uses({{"a-0", 0.5}}));
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 50);
  EXPECT_EQ(runs[0].run.gpus, 2);
  EXPECT_EQ(runs[0].run.gpu_seconds, 40 + 60);
}

TEST_F(RunBookTest, PodsBelongToTheRootOfTheirOwners) {
  book_.See(Pod("s-1", "s-1", 0));
  book_.See(Pod("s-2", "s-2", 0));
  (void)End(60, Uses({{"s-1", 0.2}, {"s-2", 0.4}}));
  const JobRef set{"JobSet", {"team-a", "s"}, "uid-s"};
  book_.SetRoot({"team-a", "uid-s-1"}, set);
  book_.SetRoot({"team-a", "uid-s-2"}, set);
  const auto runs = End(120, Uses({{"s-1", 0.2}, {"s-2", 0.4}}));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].run.job, "JobSet/team-a/s");
  EXPECT_EQ(runs[0].run.gpus, 4);
  EXPECT_EQ(runs[0].run.gpu_seconds, 480);
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 30);
}

TEST_F(RunBookTest, APodOfAnotherNamespaceThatNamesTheSameOwnerIsAnotherJobs) {
  book_.See(Pod("a-0", "a", 0));
  GpuPod forged = Pod("a-1", "a", 0);
  forged.key.ns = "team-b";
  forged.owner = std::make_shared<const JobRef>(JobRef{"Job", {"team-b", "a"}, "uid-a"});
  forged.uid = "forged";
  book_.See(forged);
  UsageByPod usage = Uses({{"a-0", 0.8}});
  usage[{"team-b", "a-1"}].gpu_utilization = 0;
  const auto runs = End(60, usage);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 80);
  EXPECT_EQ(runs[0].run.gpus, 2);
}

TEST_F(RunBookTest, GoesOnWithWhatWasRecordedBefore) {
  book_.See(Pod("a-0", "a", 100));
  (void)End(160, Uses({{"a-0", 0.2}}));
  api::WorkloadRun before;
  before.uid = "uid-a";
  before.start = At(0);
  before.gpus = 4;
  before.gpu_seconds = 4 * 180;
  before.usage.gpu_utilization_percent = 60;
  before.usage.max_gpu_memory_bytes = 5'000'000'000;
  book_.Resume({"team-a", "uid-a"}, before);
  const auto runs = End(160, {});
  EXPECT_EQ(runs[0].run.start, At(0));
  EXPECT_EQ(runs[0].run.gpus, 4);
  EXPECT_EQ(runs[0].run.gpu_seconds, 720);
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 54) << "720 GPU seconds at 60 %, 120 at 20 %";
  EXPECT_EQ(runs[0].run.usage.max_gpu_memory_bytes, 5'000'000'000);
}

TEST_F(RunBookTest, AfterARestartPodsThatHadGoneStillCount) {
  // Two of four pods went after an hour; what was recorded then has all of them, and this process sees the others.
  const api::WorkloadRun before{.uid = "uid-a", .gpus = 4, .gpu_seconds = 4 * 3600, .start = At(0)};
  book_.See(Pod("a-0", "a", 0));
  EXPECT_EQ(End(3660, {})[0].run.gpu_seconds, 2 * 3660);
  book_.Resume({"team-a", "uid-a"}, before);
  EXPECT_EQ(End(3720, {})[0].run.gpu_seconds, 4 * 3600 + 2 * 60) << "it does not stand still until the two catch up";
  book_.See(Ended(Pod("a-0", "a", 0), 7320));
  EXPECT_EQ(End(7380, {})[0].run.gpu_seconds, 4 * 3600 + 2 * 3660);
}

TEST_F(RunBookTest, ARunWhoseLastPodEndedWhileNobodyLookedKeepsWhatWasKnownAndEndsWithThePod) {
  api::WorkloadRun before{.uid = "uid-a", .gpus = 2, .gpu_seconds = 2 * 360, .start = At(0)};
  before.usage.gpu_utilization_percent = 60;
  book_.See(Ended(Pod("a-0", "a", 0), 580));
  (void)End(660, {});
  book_.Resume({"team-a", "uid-a"}, before);
  const auto runs = End(720, {});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].run.end, At(580));
  EXPECT_EQ(runs[0].run.gpu_seconds, 2 * 580);
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 60);
}

TEST_F(RunBookTest, ARunEndsNotBeforeTheTimeForWhichItWasRecordedToRun) {
  // One pod failed early and is still there; the others went with nobody looking.
  api::WorkloadRun before{.uid = "uid-a", .gpus = 4, .gpu_seconds = 4 * 360, .start = At(0)};
  before.usage.gpu_utilization_percent = 60;
  book_.See(Ended(Pod("a-0", "a", 0), 100));
  (void)End(660, {});
  book_.Resume({"team-a", "uid-a"}, before);
  EXPECT_EQ(End(720, {})[0].run.end, At(360));
}

TEST_F(RunBookTest, WhatIsToldOnlyOnceAJobHasEndedCountsIfNothingWasToldBefore) {
  book_.See(Pod("a-0", "a", 10));
  book_.See(Pod("b-0", "b", 10));
  (void)End(60, Uses({{"b-0", 0.3}}));  // Of a, nobody answers.
  book_.See(Ended(Pod("a-0", "a", 10), 110));
  book_.See(Ended(Pod("b-0", "b", 10), 110));
  (void)End(120, {});
  auto runs = End(180, Uses({{"a-0", 0.7}, {"b-0", 0.9}}));
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, 70);
  EXPECT_EQ(runs[0].run.usage.max_gpu_memory_bytes, 700'000'000);
  EXPECT_EQ(runs[0].run.end, At(110));
  EXPECT_EQ(runs[0].run.gpu_seconds, 200);
  EXPECT_EQ(runs[1].run.usage.gpu_utilization_percent, 30) << "it was told before";
}

TEST_F(RunBookTest, WhatIsToldLateOfThePartOfARunThatIsLeftSaysOnlyWhatItsMostWas) {
  struct Case {
    int ended;
    double reach;
    std::optional<std::int32_t> mean;
  };
  for (const Case& c : {Case{36'000, 600, {}}, Case{1'000, 600, 70}, Case{1'000, 520, {}}, Case{200, 260, 70}}) {
    RunBook book;
    const auto end = [&](int now, const UsageByPod& usage) {
      return RunsOf(book, book.EndInterval(usage, At(now), 60, c.reach, GpusOf));
    };
    book.See(Pod("a-0", "a", 0));
    (void)end(c.ended - 30, {});
    book.See(Ended(Pod("a-0", "a", 0), c.ended));
    (void)end(c.ended + 30, {});
    const auto runs = end(c.ended + 90, Uses({{"a-0", 0.7}}));
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0].run.usage.gpu_utilization_percent, c.mean) << c.ended << ", of " << c.reach;
    EXPECT_EQ(runs[0].run.usage.max_gpu_utilization_percent, 70);
    EXPECT_EQ(runs[0].run.usage.max_gpu_memory_bytes, 700'000'000);
  }
}

TEST_F(RunBookTest, WhatIsToldLateOfANameThatTwoJobsHadIsOfNeither) {
  book_.See(Pod("x", "a", 10));
  book_.See(Ended(Pod("x", "a", 10), 50));
  (void)End(60, {});
  book_.See(Pod("x", "b", 70));
  for (const JobRun& run : End(120, Uses({{"x", 0.7}}))) EXPECT_EQ(run.run.usage, api::ResourceUsage());
}

TEST(MergeRun, KeepsThoseThatRunAndThoseThatEndedLast) {
  std::vector<api::WorkloadRun> runs;
  const auto run = [](const std::string& uid, int start, std::optional<int> end) {
    api::WorkloadRun made;
    made.uid = uid;
    made.start = At(start);
    if (end) made.end = At(*end);
    return made;
  };
  runs = MergeRun(runs, run("old-but-runs", 0, {}), 3);
  runs = MergeRun(runs, run("ended-first", 1, 10), 3);
  runs = MergeRun(runs, run("ended-later", 1, 20), 3);
  runs = MergeRun(runs, run("new", 30, {}), 3);
  std::vector<std::string> left;
  for (const auto& one : runs) left.push_back(one.uid);
  EXPECT_THAT(left, ::testing::ElementsAre("old-but-runs", "ended-later", "new"));
  EXPECT_EQ(MergeRun(runs, run("new", 30, 40), 3).back().end, At(40));
}

TEST(FeaturesOf, WeighsRunsByGpuSecondsAndKeepsMaxima) {
  std::vector<api::WorkloadRun> runs(3);
  runs[0] = {.uid = "a", .gpu_type = "A100", .gpu_seconds = 900, .usage = {.gpu_utilization_percent = 80}};
  runs[0].usage.max_gpu_memory_bytes = 10;
  runs[1] = {.uid = "b", .gpu_type = "A100", .gpu_seconds = 100, .usage = {.gpu_utilization_percent = 20}};
  runs[1].usage.max_gpu_memory_bytes = 30;
  runs[2] = {.uid = "c", .gpu_type = "H100", .gpu_seconds = 100};
  const auto features = FeaturesOf(runs);
  ASSERT_EQ(features.size(), 1U) << "of the H100 nothing is known";
  EXPECT_EQ(features[0].gpu_type, "A100");
  EXPECT_EQ(features[0].runs, 2);
  EXPECT_EQ(features[0].usage.gpu_utilization_percent, 74);
  EXPECT_EQ(features[0].usage.max_gpu_memory_bytes, 30);
}

TEST(IsNews, OnlyWhatAReaderWouldNotice) {
  api::ResourceUsage before{.gpu_utilization_percent = 50, .max_gpu_memory_bytes = 10LL << 30};
  api::ResourceUsage after = before;
  EXPECT_FALSE(IsNews(before, after));
  after.max_gpu_memory_bytes = 105LL << 27;
  EXPECT_TRUE(IsNews(before, after));
  after.max_gpu_memory_bytes = 101LL << 27;
  EXPECT_TRUE(IsNews(before, after)) << "26 % more";
  after = before;
  after.max_gpu_memory_bytes = (10LL << 30) + (900LL << 20);
  EXPECT_FALSE(IsNews(before, after)) << "9 % more";
  after = before;
  after.gpu_utilization_percent = 54;
  EXPECT_FALSE(IsNews(before, after));
  after.gpu_utilization_percent = 44;
  EXPECT_TRUE(IsNews(before, after));
  after = before;
  after.disk_bytes_per_second = 0;
  EXPECT_TRUE(IsNews(before, after)) << "it was not known before";
}

TEST_F(RunBookTest, NumbersByNameAreOfAPodThatNoOtherSharedItsNameWith) {
  book_.See(Pod("a-0", "a", 0));
  book_.See(Pod("b-0", "b", 0));
  book_.See(Ended(Pod("c-0", "c", 0), 50));
  End(60, {});
  book_.Remove({"team-a", "a-0"}, "pod-a-0-0", At(70));
  book_.See(Pod("a-0", "a", 71));  // The job's own, too.
  End(120, {});
  const auto alone = [&](int now) {
    std::set<std::string> names;
    for (const auto& [pod, is_alone] : book_.RunningPods(At(now), 120)) {
      names.insert(pod.uid.str() + (is_alone ? " alone" : ""));
    }
    return names;
  };
  EXPECT_THAT(alone(180), ::testing::ElementsAre("pod-a-0-71", "pod-b-0-0 alone"));
  EXPECT_THAT(alone(191), ::testing::ElementsAre("pod-a-0-71 alone", "pod-b-0-0 alone"));
}

TEST_F(RunBookTest, KnowsTheNamesOfPodsThatRunOrEndedLately) {
  book_.See(Pod("a-0", "a", 0));
  book_.See(Ended(Pod("b-0", "b", 0), 50));
  const auto names = [&] {
    std::string known;
    for (const char* name : {"a-0", "b-0", "stranger"}) {
      if (const auto found = book_.NameOf({"team-a", name})) known += found->name.str() + " ";
    }
    return known;
  };
  EXPECT_EQ(names(), "a-0 b-0 ");
  (void)End(60, {});
  EXPECT_EQ(names(), "a-0 b-0 ") << "what is told late of b-0 still counts";
  (void)End(720, {});
  EXPECT_EQ(names(), "a-0 ");
  EXPECT_FALSE(book_.NameOf({"team-b", "a-0"}));
}

TEST_F(RunBookTest, ForgetsRunsWhosePodsHaveGoneAndNoOthers) {
  constexpr int kMany = 20;
  for (int i = 0; i < kMany; ++i) {
    const std::string name = std::to_string(i);
    book_.See(Pod("stays-" + name, "train", 0));
    book_.See(Ended(Pod("short-" + name, "short-" + name, 0), 1));
  }
  End(60, {});
  ASSERT_EQ(book_.job_count(), kMany + 1U);
  for (int i = 0; i < kMany; ++i) EXPECT_TRUE(book_.Forget(JobId("team-a", "uid-short-" + std::to_string(i))));
  EXPECT_FALSE(book_.Forget(JobId("team-a", "uid-train")));
  EXPECT_EQ(book_.job_count(), 1U);
}

TEST_F(RunBookTest, ARunWhoseOwnerTurnsOutToHavePodsIsNotForgotten) {
  book_.See(Ended(Pod("a-0", "a", 0), 30));
  End(60, {});
  book_.See(Pod("b-0", "b", 70));
  book_.SetRoot(JobId("team-a", "uid-b"), Job("a"));
  EXPECT_FALSE(book_.Forget(JobId("team-a", "uid-a")));
  book_.See(Pod("b-1", "b", 80));
  End(120, {});
  EXPECT_FALSE(book_.Forget(JobId("team-a", "uid-a")));
}

}  // namespace
}  // namespace grus
