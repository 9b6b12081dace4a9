// SPDX-License-Identifier: Apache-2.0
// Jobs and gangs of two queues, on the real API server and scheduler: limits, loans, what is given back.
#include <gmock/gmock.h>

#include <array>
#include <chrono>

#include "crds/types/gpu_queue.h"
#include "tests/controllers/profile/profile_builders.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::KindOf;

// Each test has a pool of its own, so that tests do not influence each other, and queues named after it.
class Queues : public ElasticJob {
 protected:
  void SetUp() override {
    ElasticJob::SetUp();
    Make<api::NodePool>(ns(), R"({"nodeSelector":{"grus.test/pool":")" + ns() + R"("}})");
  }
  void TearDown() override {
    for (const std::string& profile : profiles_) Must(client().Delete(KindOf<api::WorkloadProfile>(), {"", profile}));
    for (const std::string& queue : queues_) world().Delete(KindOf<api::GpuQueue>(), {"", queue});
    world().Delete(KindOf<api::NodePool>(), {"", ns()});
    ElasticJob::TearDown();
  }

  template <typename T>
  void Make(const std::string& name, const std::string& spec) {
    kube::Json manifest =
        kube::Json::MakeObject({{"apiVersion", KindOf<T>().ApiVersion()}, {"kind", KindOf<T>().kind}});
    manifest["metadata"]["name"] = name;
    manifest["spec"] = Must(kube::ParseJson(spec));
    ASSERT_TRUE(client().Create(KindOf<T>(), "", manifest));
  }
  // A queue that any namespace may name; `quota` is JSON without braces: R"("guaranteed":4)".
  std::string AddQueue(const std::string& team, const std::string& quota) {
    queues_.push_back(ns() + "-" + team);
    Make<api::GpuQueue>(queues_.back(),
                        R"({"preemptionNoticeSeconds":3,"quotas":[{"pool":")" + ns() + R"(",)" + quota + "}]}");
    return queues_.back();
  }
  void SetLimit(const std::string& queue, int limit) {
    world().Patch(KindOf<api::GpuQueue>(), {"", queue}, kube::PatchType::kMerge,
                  FromText(R"({"spec":{"quotas":[{"pool":")" + ns() + R"(","limit":)" + std::to_string(limit) + "}]}}"),
                  "");
  }
  static std::string InQueue(const std::string& queue, int min, int max) {
    return R"({"queueName":")" + queue + R"(","elastic":{"cooldownSeconds":1},"workersSpec":{"minReplicas":)" +
           std::to_string(min) + R"(,"maxReplicas":)" + std::to_string(max) + "}}";
  }
  // Of a workload whose steps take so many milliseconds on 1, 2, 4 and 8 GPUs, with 32 samples on each.
  std::string AddProfile(const std::string& name, const std::array<double, 4>& milliseconds) {
    api::WorkloadProfile profile;
    profile.metadata.name = profile.spec.fingerprint = ns() + "-" + name;
    profile.spec.throughput_unit = api::ThroughputUnit::kSamplesPerSecond;
    for (int i = 0; i < 4; ++i) {
      profile.spec.points.push_back(MakePoint({"", 1 << i, 1, 32}, milliseconds[static_cast<std::size_t>(i)]));
      profile.spec.points.back().name = "g" + std::to_string(1 << i);
      profile.spec.points.back().time = kube::Time{std::chrono::system_clock::now()};
    }
    profiles_.push_back(profile.metadata.name);
    Must(client().Create(KindOf<api::WorkloadProfile>(), "",
                         FromText(kube::EncodeObject(KindOf<api::WorkloadProfile>(), profile))));
    return profiles_.back();
  }
  std::shared_ptr<const api::GpuQueue> TheQueue(const std::string& name) const {
    return world().Get<api::GpuQueue>("", name);
  }

 private:
  std::vector<std::string> queues_, profiles_;
};

TEST_F(Queues, ALimitHoldsUntilItIsRaised) {
  AddNode(8);
  const std::string queue = AddQueue("a", R"("limit":3)");
  Create(InQueue(queue, 1, 8));
  ASSERT_TRUE(AwaitTrains(3));
  EXPECT_TRUE(Stays(
      "it has three workers", [&] { return Workers().size() == 3; }, std::chrono::seconds(3)));
  ASSERT_TRUE(Await("the queue says so", [&] { return TheQueue(queue)->status.total.used == 3; }));

  SetLimit(queue, 5);
  EXPECT_TRUE(AwaitTrains(5));
}

TEST_F(Queues, SurplusGoesBackToWhomItIsGuaranteed) {
  AddNode(8);
  const std::string owner = AddQueue("owner", R"("guaranteed":4)"), other = AddQueue("other", R"("limit":8)");
  Create(InQueue(other, 1, 8), "borrows");
  ASSERT_TRUE(AwaitTrains(8, "borrows"));
  ASSERT_TRUE(Await("the loan is told", [&] { return TheQueue(other)->status.total.borrowed == 8; }));
  EXPECT_TRUE(Await("by whom, too", [&] { return TheQueue(owner)->status.total.lent == 4; }));

  Create(InQueue(owner, 4, 4), "claims");
  EXPECT_TRUE(AwaitTrains(4, "claims"));
  EXPECT_TRUE(AwaitTrains(4, "borrows"));
  ASSERT_TRUE(Await("the loan has ended", [&] { return TheQueue(other)->status.total.borrowed == 4; }));
  EXPECT_TRUE(Await("on both sides", [&] { return TheQueue(owner)->status.total.lent == 0; }));
}

TEST_F(Queues, AJobThatCannotShrinkIsPreemptedAfterANoticeAndComesBack) {
  AddNode(8);
  const std::string owner = AddQueue("owner", R"("guaranteed":4)"), other = AddQueue("other", R"("limit":8)");
  Create(InQueue(other, 8, 8), "borrows");
  ASSERT_TRUE(AwaitTrains(8, "borrows"));

  Create(InQueue(owner, 4, 4), "claims");
  EXPECT_TRUE(Await("it is told", [&] { return Says("Ready", "claims", "borrows"); }));
  EXPECT_TRUE(AwaitTrains(4, "claims"));
  EXPECT_TRUE(Await("all of it has gone", [&] { return HoldsNothing("borrows"); })) << "4 GPUs are enough to begin";
  ASSERT_TRUE(Await("it waits in its queue", [&] { return TheQueue(other)->status.waiting_jobs == 1; }));
  EXPECT_EQ(TheQueue(other)->status.first_waiting.front().name, "borrows");

  Delete<api::ElasticHorovodJob>("claims");
  EXPECT_TRUE(AwaitTrains(8, "borrows"));
}

TEST_F(Queues, JobsAreSizedByWhatAGpuIsWorthInEach) {
  AddNode(8);
  const auto elastic = [](const std::string& profile) {
    return R"({"profile":")" + profile +
           R"(","elastic":{"cooldownSeconds":1},"workersSpec":{"minReplicas":1,"maxReplicas":8}})";
  };
  Create(elastic(AddProfile("flat", {100, 198, 396, 792})), "flat");
  ASSERT_TRUE(Await("it runs on few GPUs, although all are free", [&] {
    return Phase("flat") == "Running" && Workers("flat").size() <= 2 &&
           Says("Ready", "with more it would gain too little", "flat");
  }));
  Create(elastic(AddProfile("scales", {100, 102, 105, 108})), "scales");
  EXPECT_TRUE(
      Await("the other one takes more", [&] { return Workers("scales").size() >= 4 && Phase("scales") == "Running"; }));
  EXPECT_LE(Workers("flat").size(), 2U);
}

TEST_F(Queues, AQueueThatIsNotThereIsNamed) {
  AddNode(4);
  Create(InQueue("no-such-queue", 1, 1));
  EXPECT_TRUE(Await("it says so", [&] { return Says("Ready", "there is no queue no-such-queue: create it"); }));
  EXPECT_TRUE(HoldsNothing());
}

TEST_F(Queues, AFaultIsToldOnTheQueue) {
  AddNode(4);
  const std::string queue = AddQueue("a", R"("guaranteed":400)");
  EXPECT_TRUE(
      Await("the queue says so", [&] { return kit::ReasonOf(TheQueue(queue), "Ready") == "GuaranteesExceedPool"; }));
}

}  // namespace
}  // namespace grus::testing
