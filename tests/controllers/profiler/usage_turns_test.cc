// SPDX-License-Identifier: Apache-2.0
// How many runs and annotations the profiler writes a second, and whose come first.
#include <gmock/gmock.h>

#include "controllers/profiler/usage_watch.h"
#include "tests/controllers/profiler/usage_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;

class UsageTurnsTest : public testing::UsageFixture {
 protected:
  // Pods "p0" to "p11", each a job of its own.
  void AddTwelveJobs() {
    for (int i = 0; i < 12; ++i) {
      const std::string name = "p" + std::to_string(i);
      AddPod(name, "", "", "", 1);
      utilization_[name] = 50;
    }
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    for (const auto& pod : pods_.List<kube::Pod>()) Resolve(pod->metadata.uid);
  }
};

TEST_F(UsageTurnsTest, AtMostFourRunsAreWrittenASecond) {
  Start();
  AddTwelveJobs();
  clock_.Advance(60s);
  std::vector<std::size_t> written;
  for (int i = 0; i < 3; ++i) {
    const auto action = watch_.Reconcile(UsageWatch::Sweep(), {});
    ASSERT_TRUE(action);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    written.push_back(Runs().size());
    clock_.Advance(1s);
  }
  EXPECT_THAT(written, ::testing::ElementsAre(4, 8, 12));
}

TEST_F(UsageTurnsTest, AtMostEightWritesASecondAlsoWhereEachProfileTakesThePlaceOfAnother) {
  Start();
  for (std::size_t i = 0; i < kMostOfNamespace; ++i) {
    const std::string name = "old-" + std::to_string(i);
    api::WorkloadRun run{.uid = name, .job = "Job/team-a/" + name, .gpus = 1};
    run.end = kube::Time{};
    ASSERT_TRUE(store_.Save({.fingerprint = name, .workload = {.ns = "team-a"}, .runs = {run}}));
  }
  for (int i = 0; i < 6; ++i) {
    const std::string name = "p" + std::to_string(i);
    AddPod(name, "", "", "", i + 1);  // Each is a workload of its own.
    utilization_[name] = 50;
  }
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  for (const auto& pod : pods_.List<kube::Pod>()) Resolve(pod->metadata.uid);
  clock_.Advance(60s);
  // Each run is a profile and its status, and a deletion if the store has heard of all that are there.
  // The server counts writes; the last one is to a pod, or to the profile of a run.
  const auto writes = [&] {
    std::int64_t version = 0;
    for (const char* resource : {"pods", "workloadprofiles.ai.centauruscloud.io"}) {
      for (const auto& object : server_.List(resource)) {
        version = std::max<std::int64_t>(version, std::stoll(*object->At({"metadata", "resourceVersion"})->AsString()));
      }
    }
    return version;
  };
  std::vector<std::int64_t> written;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t before = writes();
    ASSERT_TRUE(watch_.Reconcile(UsageWatch::Sweep(), {}));
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    written.push_back(writes() - before);
    clock_.Advance(1s);
  }
  EXPECT_LT(Runs().size(), kMostOfNamespace + 6) << "others had to go";
  EXPECT_EQ(std::ranges::count_if(Runs(), [](const api::WorkloadRun& run) { return !run.end; }), 6);
  EXPECT_THAT(written, ::testing::Each(::testing::Le(8)));
  EXPECT_THAT(written, ::testing::Contains(::testing::Ge(6))) << "and no fewer than fit";
}

TEST_F(UsageTurnsTest, TheNextWritesComeASecondLaterAlsoWhenASweepIsDue) {
  Start();
  AddTwelveJobs();
  slowness_ = 7s;  // A sweep takes longer than a minute.
  clock_.Advance(60s);
  for (int i = 0; i < 4; ++i) {
    const auto action = watch_.Reconcile(UsageWatch::Sweep(), {});
    ASSERT_TRUE(action);
    EXPECT_GE(*action->delay(), 1s);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  EXPECT_EQ(Runs().size(), 12U);
}

TEST_F(UsageTurnsTest, RunsThatEndedAreWrittenFirst) {
  Start();
  AddTwelveJobs();
  for (const char* pod : {"p2", "p11"}) SetPhase(pod, "Succeeded");
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  clock_.Advance(60s);
  ASSERT_TRUE(watch_.Reconcile(UsageWatch::Sweep(), {}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(Runs().size(), 4U);
  EXPECT_EQ(std::ranges::count_if(Runs(), [](const api::WorkloadRun& run) { return run.end.has_value(); }), 2);
}

TEST_F(UsageTurnsTest, RunsOfANamespaceDoNotWaitForThatManyOfAnother) {
  Start();
  namespace_ = "team-b";
  Create("namespaces", Named("v1", "Namespace", "team-b"));
  AddTwelveJobs();
  for (int i = 0; i < 12; ++i) SetPhase("p" + std::to_string(i), "Succeeded");
  namespace_ = "team-a";
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  std::string& rows = rows_["container_memory_working_set_bytes"];
  for (int i = 0; i < 12; ++i) {
    rows += R"({"metric":{"namespace":"team-b","pod":"p)" + std::to_string(i) + R"("},"value":[1,"1000"]},)";
  }
  rows += R"({"metric":{"namespace":"team-a","pod":"train-0"},"value":[1,"1000"]})";
  clock_.Advance(60s);
  ASSERT_TRUE(watch_.Reconcile(UsageWatch::Sweep(), {}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(Runs().size(), 4U);
  EXPECT_EQ(std::ranges::count(Runs(), "PyTorchJob/team-a/train", &api::WorkloadRun::job), 1);
}

TEST_F(UsageTurnsTest, APodThatAKubeletRefusedIsNoRunAndCostsNoRequest) {
  Start();
  first_phase_ = "Failed";
  AddPod("refused", "PyTorchJob", "train", "u1");
  Resolve("u1");
  EXPECT_EQ(tap_.Count("GET"), 0);
  utilization_ = {{"refused", 50}};
  Sweep();
  EXPECT_TRUE(Runs().empty());
  first_phase_ = "Running";
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  SetPhase("train-0", "Failed");
  utilization_ = {{"train-0", 50}};
  Sweep();
  ASSERT_EQ(Runs().size(), 1U) << "one that ran";
  EXPECT_TRUE(Runs()[0].end);
}

}  // namespace
}  // namespace grus
