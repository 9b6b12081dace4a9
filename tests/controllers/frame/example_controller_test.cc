// SPDX-License-Identifier: Apache-2.0
#include "tests/controllers/frame/example_controller.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/kit/reconciler_fixture.h"

namespace example {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr char kQuorums[] = "quorums.example.com";
const kube::ObjectKey kKey{"team-a", "q"};

class ExampleControllerTest : public grus::testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    kube::CrdInfo crd;
    crd.kind = &kube::KindOf<Quorum>();
    Create("customresourcedefinitions.apiextensions.k8s.io", kube::MakeCrd(crd));
    kube::Json quorum = Named("example.com/v1", "Quorum", "q", "team-a");
    quorum["spec"]["minimum"] = 2;
    Create(kQuorums, std::move(quorum));
    for (const char* name : {"p1", "p2"}) {
      kube::Json pod = Named("v1", "Pod", name, "team-a");
      pod["metadata"]["labels"][kQuorumLabel] = "q";
      pod["spec"] = *kube::ParseJson(R"({"containers":[{"name":"c","image":"i"}]})");
      Create("pods", std::move(pod));
      SetPhase(name, "Running");
    }
    reconciler_.FeedQueue(queue_);
    StartCaches();
  }
  void SetPhase(const std::string& pod, const std::string& phase) {
    SetStatus("pods", {"team-a", pod}, R"({"phase":")" + phase + R"("})");
  }
  // When it looks again.
  kube::Duration Pass() {
    const auto action = reconciler_.Reconcile(kKey, {});
    EXPECT_TRUE(action) << action.error().message();
    return action ? action->delay().value_or(kube::Duration::zero()) : kube::Duration::zero();
  }
  bool IsReady() { return kube::IsConditionTrue(Live<Quorum>(kKey)->status.conditions, "Ready"); }

  kube::Informer& quorums_ = Cache<Quorum>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  QuorumReconciler reconciler_{client_, quorums_, pods_, events_, clock_, log_};
};

TEST_F(ExampleControllerTest, SaysThatEnoughPodsRun) {
  EXPECT_EQ(queue_.Get()->key, kKey);
  EXPECT_EQ(Pass(), grus::kSafetyResync);
  EXPECT_TRUE(IsReady());
  EXPECT_EQ(Live<Quorum>(kKey)->status.running, 2);
}

TEST_F(ExampleControllerTest, APodThatGetsANewLabelWakesBothItsQuorums) {
  Settle();
  clock_.Advance(grus::kMinorChangeWait);
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  Edit("pods", {"team-a", "p1"}, [](kube::Json& pod) { pod["metadata"]["labels"][kQuorumLabel] = "other"; });
  Settle();
  clock_.Advance(grus::kMinorChangeWait);

  std::set<std::string> woken;
  while (queue_.counts().depth + queue_.counts().delayed > 0) {
    const kube::ObjectKey key = queue_.Get()->key;
    woken.insert(key.name);
    queue_.Done(key);
  }
  EXPECT_EQ(woken, (std::set<std::string>{"q", "other"}));
}

TEST(PlanQuorum, TellsWhenPodsAreLost) {
  auto quorum = std::make_shared<Quorum>();
  quorum->spec.minimum = 2;
  QuorumView view{quorum, {}, 2};
  quorum->status = PlanQuorum(view).status;
  EXPECT_TRUE(PlanQuorum(view).events.empty());
  view.running = 1;
  const QuorumPlan plan = PlanQuorum(view);
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_THAT(plan.events[0].note, HasSubstr("1 pods run; 2 are needed"));
  EXPECT_FALSE(kube::IsConditionTrue(plan.status.conditions, "Ready"));
}

}  // namespace
}  // namespace example
