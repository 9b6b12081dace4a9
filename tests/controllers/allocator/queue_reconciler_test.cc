// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kit/conditions.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr char kQueues[] = "gpuqueues.ai.centauruscloud.io";
constexpr char kPools[] = "nodepools.ai.centauruscloud.io";

// Queues of one node of 8 GPUs, beside an API server in this process.
class QueueReconcilerTest : public testing::ReconcilerFixture {
 protected:
  void AddQueue(const std::string& name, std::string_view spec) { Add(kQueues, "GpuQueue", name, spec); }
  void AddPool(const std::string& name, const std::string& node) {
    Add(kPools, "NodePool", name, R"({"nodeSelector":{"kubernetes.io/hostname":")" + node + R"("}})");
  }
  void Add(const char* resource, const char* kind, const std::string& name, std::string_view spec) {
    Json object = Named("ai.centauruscloud.io/v1alpha1", kind, name);
    object["spec"] = *kube::ParseJson(spec);
    Create(resource, std::move(object));
  }
  // A pod of nobody's that holds GPUs.
  void AddPod(const std::string& name, int gpus) {
    Create("pods", kit::MakePod(name, kit::PodSpec(gpus, R"({"nodeName":"n1"})"), {}, "team-a"));
  }
  void LabelNamespace(const std::string& team) {
    Edit("namespaces", {"", "team-a"}, [&](Json& ns) { ns["metadata"]["labels"]["team"] = team; });
  }
  void Start() {
    reconciler_.FeedQueue(queue_);
    StartCaches();
  }
  kube::Result<kube::Action> Pass() {
    Settle();
    return reconciler_.Reconcile({"", "queues"}, {});
  }
  void TakeKeys() {
    Settle();
    while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);
  }
  std::shared_ptr<const api::GpuQueue> QueueNamed(const std::string& name) { return Live<api::GpuQueue>({"", name}); }
  std::vector<std::string> EventsTold() {
    Settle();
    std::vector<std::string> told;
    for (const auto& event : server_.List("events.events.k8s.io")) {
      told.push_back(*event->At({"regarding", "name"})->AsString() + " " + *event->Find("reason")->AsString() + ": " +
                     *event->Find("note")->AsString());
    }
    return told;
  }

  kube::Informer& queues_ = Cache<api::GpuQueue>();
  kube::Informer& pools_ = Cache<api::NodePool>();
  kube::Informer& namespaces_ = Cache<kube::Namespace>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Registry metrics_;
  ClusterAccount account_{nodes_, pods_, clock_};
  QueueReconciler reconciler_{client_, {queues_, pools_, namespaces_}, account_, events_, clock_, log_, metrics_};
};

TEST_F(QueueReconcilerTest, StatusesSayWhoHoldsWhatAndAreWrittenOnce) {
  LabelNamespace("vision");
  AddPool("a100", "n1");
  AddQueue("vision", R"({"namespaceSelector":{"matchLabels":{"team":"vision"}},
                         "quotas":[{"pool":"a100","guaranteed":4}]})");
  AddPod("train", 6);
  Start();
  ASSERT_TRUE(Pass());

  const auto queue = QueueNamed("vision");
  EXPECT_THAT(queue->status.pools, ElementsAre(api::QueuePoolStatus{"a100", 4, 6, 2, 0, 6, 0}));
  EXPECT_EQ(kit::ReasonOf(queue), "Ready");
  const auto pool = Live<api::NodePool>({"", "a100"});
  EXPECT_EQ(std::tie(pool->status.nodes, pool->status.gpus, pool->status.used, pool->status.free),
            std::make_tuple(1, 8, 6, 2));
  EXPECT_EQ(kit::ReasonOf(pool), "Ready");
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(grus_queue_gpus{queue="vision",pool="a100",state="used"} 6)"));

  const std::uint64_t revision = server_.revision();
  ASSERT_TRUE(Pass());
  EXPECT_EQ(server_.revision(), revision);
}

TEST_F(QueueReconcilerTest, NothingIsPlannedBeforeQueuesAreKnown) {
  AddQueue("vision", "{}");
  Start();
  GangDemand first;  // Whatever comes first. No pass has been yet.
  first.key = "team-a/first";
  account_.Ask(first);
  const QueuesReport report = account_.Queues();
  ASSERT_EQ(report.queues.size(), 2U);
  EXPECT_EQ(report.queues[1].queue, "vision");
}

TEST_F(QueueReconcilerTest, AFaultIsToldOnceAndGoesWhenItIsMended) {
  AddQueue("vision", R"({"parent":"research"})");
  Start();
  ASSERT_TRUE(Pass());
  EXPECT_EQ(kit::ReasonOf(QueueNamed("vision"), "Stalled"), "ParentMissing");
  ASSERT_TRUE(Pass());
  EXPECT_THAT(EventsTold(),
              ElementsAre(HasSubstr("vision ParentMissing: spec.parent: there is no queue research: create")));

  AddQueue("research", "{}");
  ASSERT_TRUE(Pass());
  EXPECT_EQ(kit::ReasonOf(QueueNamed("vision")), "Ready");
  EXPECT_EQ(EventsTold().size(), 1U);
}

TEST_F(QueueReconcilerTest, AFaultThatAnEarlierProcessToldIsNotToldAgain) {
  AddQueue("vision", R"({"parent":"research"})");
  Start();
  ASSERT_TRUE(Pass());
  Settle();
  kube::Registry metrics;
  QueueReconciler next{client_, {queues_, pools_, namespaces_}, account_, events_, clock_, log_, metrics};
  ASSERT_TRUE(next.Reconcile({"", "queues"}, {}));
  EXPECT_EQ(EventsTold().size(), 1U);
}

TEST_F(QueueReconcilerTest, ChangesByUsersAreSeenAtOnceAndThoseOfUseTogetherAfterASecond) {
  AddQueue("vision", "{}");
  AddPool("a100", "n1");
  Start();
  ASSERT_TRUE(Pass());
  TakeKeys();
  EXPECT_EQ(queue_.counts().depth, 0U) << "own writes need no pass";

  AddPod("one", 1);
  AddPod("two", 1);
  Settle();
  EXPECT_EQ(queue_.counts().depth, 0U);
  EXPECT_EQ(queue_.counts().delayed, 1U);
  clock_.Advance(1s);
  EXPECT_EQ(queue_.Get()->key.name, "queues");
  queue_.Done({"", "queues"});

  const std::function<void()> changes[] = {
      [&] { LabelNamespace("vision"); },
      [&] { Create("namespaces", Named("v1", "Namespace", "team-b")); },
      [&] {
        Edit(kQueues, {"", "vision"}, [](Json& queue) { queue["spec"]["stop"] = "Hold"; });
      },
      [&] {
        ASSERT_TRUE(server_.Delete(kPools, {"", "a100"}));
      },
      [&] {
        SetStatus(kQueues, {"", "vision"}, R"({"runningJobs":7})");
      },
  };
  for (const auto& change : changes) {
    change();
    Settle();
    EXPECT_EQ(queue_.counts().depth, 1U) << &change - changes;
    TakeKeys();
  }
}

// The pass that takes it off the account may be late, for an answer that was slow for example.
TEST_F(QueueReconcilerTest, AJobThatEndsAfterItsPodsAreGoneRunsNoLonger) {
  AddQueue("vision", "{}");
  Create("pods", kit::MakePod("train-0", kit::PodSpec(1, R"({"nodeName":"n1"})"), kit::MemberOf("train"), "team-a"));
  Start();
  account_.PutHolder("team-a/train", {.queue_name = "vision", .workers = 1});
  ASSERT_TRUE(Pass());
  EXPECT_EQ(QueueNamed("vision")->status.running_jobs, 1);
  ASSERT_TRUE(server_.Delete("pods", {"team-a", "train-0"}));
  Settle();
  const auto takes_late_key = [&] {
    clock_.Advance(1s);
    queue_.Done(queue_.Get()->key);
  };
  takes_late_key();
  ASSERT_TRUE(Pass());
  TakeKeys();

  account_.RemoveHolder("team-a/train");
  ASSERT_EQ(queue_.counts().delayed, 1U);
  takes_late_key();
  ASSERT_TRUE(Pass());
  EXPECT_EQ(QueueNamed("vision")->status.running_jobs, 0);

  account_.RemoveHolder("team-a/train");
  EXPECT_EQ(queue_.counts().delayed, 0U) << "each pass over a job that has ended removes it";
}

TEST_F(QueueReconcilerTest, ASelectedNamespaceMovesWithItsLabel) {
  AddPool("a100", "n1");
  for (const std::string team : {"a", "b"}) {
    AddQueue(team, R"({"namespaceSelector":{"matchLabels":{"team":")" + team + R"("}}})");
  }
  AddPod("train", 6);
  LabelNamespace("a");
  Start();
  ASSERT_TRUE(Pass());
  EXPECT_EQ(QueueNamed("a")->status.total.used, 6);
  LabelNamespace("b");
  ASSERT_TRUE(Pass());
  EXPECT_EQ(QueueNamed("a")->status.total.used, 0);
  EXPECT_EQ(QueueNamed("b")->status.total.used, 6);
}

// Refuses to write GpuQueues.
struct NoQueues final : kube::WriteGate {
  explicit NoQueues(kube::ErrorCode its_code) : code(its_code) {}
  kube::Status MayWrite(const kube::Kind& kind) const override {
    if (&kind == &kube::KindOf<api::GpuQueue>()) return kube::Error(code, "no");
    return {};
  }
  const kube::ErrorCode code;
};

TEST_F(QueueReconcilerTest, AWriteThatFailsKeepsNoOtherStatusFromBeingWritten) {
  AddQueue("vision", "{}");
  AddPool("a100", "n1");
  Start();
  const NoQueues unavailable(kube::ErrorCode::kUnavailable), forbidden(kube::ErrorCode::kForbidden);
  client_.SetWriteGate(&unavailable);
  EXPECT_FALSE(Pass()) << "it is tried again with a backoff";
  EXPECT_EQ(kit::ReasonOf(Live<api::NodePool>({"", "a100"})), "Ready");

  client_.SetWriteGate(&forbidden);
  for (int i = 0; i < 2; ++i) {
    const auto refused = Pass();
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->delay(), 15s);
  }
  EXPECT_THAT(EventsTold(), ElementsAre(HasSubstr("vision NotPermitted: write the status of GpuQueue vision: ")));
  client_.SetWriteGate(nullptr);
}

TEST_F(QueueReconcilerTest, SizesAreDecidedAgainWithTimeWhileThereAreJobsOfKnownSpeed) {
  Start();
  const std::vector<SpeedPoint> curve = {{1, 1, 1, 1}, {2, 2, 2, 2}};
  account_.SetResizeSeconds(5);
  account_.PutHolder(
      "team-a/train",
      {.workers = 1, .wanted_workers = 2, .curve = std::make_shared<const std::vector<SpeedPoint>>(curve)});
  Create("pods", kit::MakePod("train-0", kit::PodSpec(1, R"({"nodeName":"n1"})"), kit::MemberOf("train"), "team-a"));
  Settle();
  account_.Ask({});  // A controller plans.
  const auto passed = Pass();
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->delay(), std::chrono::seconds(15));
}

TEST_F(QueueReconcilerTest, WithoutQueuesAndPoolsNothingIsWritten) {
  Start();
  const std::uint64_t revision = server_.revision();
  ASSERT_TRUE(Pass());
  EXPECT_EQ(server_.revision(), revision);
  EXPECT_THAT(account_.Queues().queues, IsEmpty());
}

}  // namespace
}  // namespace grus
