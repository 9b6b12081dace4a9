// SPDX-License-Identifier: Apache-2.0
// spec.runPolicy.schedulingPolicy, as the plan of the workers carries it out.
#include <gtest/gtest.h>

#include "controllers/elastic/elastic_plan.h"
#include "tests/controllers/elastic/view_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;

// A job of 2 to 8 workers.
ViewBuilder With(std::optional<int> min_available, std::optional<int> timeout = {}, bool is_ungated = false) {
  return ViewBuilder().MinMax(2, 8).Job([=](auto& job) {
    api::SchedulingPolicy& policy = job.spec.run_policy.scheduling_policy;
    policy.min_available = min_available;
    policy.schedule_timeout_seconds = timeout;
    if (is_ungated) policy.when_unschedulable = api::WhenUnschedulable::kUngate;
  });
}
WorkerPlan PlanOf(const View& view) { return PlanWorkers(view, SizesOf(view.job->spec)); }

TEST(SchedulingPolicy, AJobStartsWithMinAvailableOrMore) {
  EXPECT_TRUE(PlanOf(With(4).Room(3).Build()).is_waiting);
  EXPECT_EQ(PlanOf(With(4).Room(4).Build()).granted, 4);
}

TEST(SchedulingPolicy, AStartThatDoesNotReachMinAvailableGivesAllBackAndATrainingShrinks) {
  const ViewBuilder three = With(4).Granted(4).Ready({0, 1, 2}).Unschedulable({3}, -15);

  EXPECT_EQ(PlanOf(ViewBuilder(three).Build()).granted, 0);
  EXPECT_EQ(PlanOf(ViewBuilder(three).LauncherRuns().Build()).granted, 3);
}

TEST(SchedulingPolicy, TheLauncherWaitsForMinAvailable) {
  const ViewBuilder builder = With(4).Granted(6).Bound({4, 5});

  EXPECT_FALSE(PlanElasticJob(ViewBuilder(builder).Bound({3}).Ready({0, 1, 2}).Build()).wants_launcher);
  EXPECT_TRUE(PlanElasticJob(ViewBuilder(builder).Ready({0, 1, 2, 3}).Build()).wants_launcher);
}

TEST(SchedulingPolicy, TheTimeoutIsThatOfAStartAlone) {
  const ViewBuilder start = With({}, 100).Granted(4).Bound({0, 1}).Unschedulable({2, 3}, -99);
  EXPECT_EQ(PlanOf(ViewBuilder(start).Build()).granted, 4);
  EXPECT_EQ(PlanOf(ViewBuilder(start).Build()).look_again, kube::Duration(seconds(1)));
  EXPECT_EQ(PlanOf(ViewBuilder(start).LauncherRuns().Build()).granted, 2) << "15 s by elastic.*";
}

TEST(SchedulingPolicy, UngatedWorkersAreMadeWithoutRoomAndStay) {
  View none = With(4, {}, true).Room(0).Build();
  none.may_start = false;
  const WorkerPlan plan = PlanOf(none);
  EXPECT_FALSE(plan.is_waiting);
  EXPECT_EQ(plan.granted, 4);

  const ViewBuilder made = With(4, {}, true).Granted(4).Bound({0});
  EXPECT_EQ(PlanOf(ViewBuilder(made).Unschedulable({1, 2, 3}, -599).Build()).granted, 4);
  EXPECT_EQ(PlanOf(ViewBuilder(made).Unschedulable({1, 2, 3}, -600).Build()).granted, 0);
}

TEST(SchedulingPolicy, UngatedWorkersThatCannotBeMadeWait) {
  View refused = With({}, {}, true).Room(0).Build();
  refused.may_start = false;
  refused.refusal = "PriorityClass \"high\" does not exist";
  EXPECT_TRUE(PlanOf(refused).is_waiting);

  View limited = With({}, {}, true).Room(8).Quota(1).Build();
  limited.may_start = false;
  EXPECT_TRUE(PlanOf(limited).is_waiting);
}

}  // namespace
}  // namespace grus
