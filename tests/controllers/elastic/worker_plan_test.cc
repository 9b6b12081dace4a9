// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/controllers/elastic/view_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkerPlan PlanOf(const View& view) { return PlanWorkers(view, SizesOf(view.job->spec)); }

std::vector<int> OrdinalsOf(const std::vector<const Worker*>& workers) {
  std::vector<int> ordinals;
  for (const Worker* worker : workers) ordinals.push_back(worker->ordinal);
  return ordinals;
}

void ExpectSize(const WorkerPlan& plan, int replicas, int granted) {
  EXPECT_EQ(plan.size.replicas, replicas);
  EXPECT_EQ(plan.size.granted, granted);
  EXPECT_EQ(plan.size.is_gated, replicas > granted);
}

// Start.

TEST(WorkerPlan, StartsWithWhatFits) {
  struct Case {
    int min, max, room, start;
  };
  const Case kCases[] = {{1, 8, 3, 3}, {1, 8, 8, 8}, {1, 8, 50, 8}, {4, 8, 4, 4}, {0, 8, 1, 1}, {8, 8, 8, 8}};
  for (const Case& c : kCases) {
    const View view = ViewBuilder().MinMax(c.min, c.max).Room(c.room).Build();
    const WorkerPlan plan = PlanOf(view);
    ExpectSize(plan, c.start, c.start);
    EXPECT_EQ(plan.reason, ScaleReason::kStarted);
    EXPECT_FALSE(plan.is_waiting);
  }
}

TEST(WorkerPlan, WorkersThatNoSchedulerJudgesAreGivenBack) {
  for (const int asked : {-200, -400}) {
    View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Waiting({0, 1}).Build();
    for (Worker& worker : view.pods) worker.asked_since = At(asked);
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.reason, asked < -300 ? ScaleReason::kBelowMinimum : ScaleReason::kNone) << asked;
  }
}

TEST(WorkerPlan, AGangWithoutAPlaceForAllIsGivenBackAfterTheGraceOfItsStart) {
  for (const bool lacks_places : {false, true}) {
    View view = ViewBuilder().MinMax(2, 2).Set(2, 2).Waiting({0, 1}).LastScale("Started", -60).Build();
    view.lacks_places = lacks_places;
    EXPECT_EQ(PlanOf(view).reason, lacks_places ? ScaleReason::kBelowMinimum : ScaleReason::kNone);
  }
}

TEST(WorkerPlan, WaitsWithoutPodsWhileTheMinimumDoesNotFit) {
  for (const auto& [min, room] : {std::pair(4, 3), {4, 0}, {0, 0}}) {
    const View view = ViewBuilder().MinMax(min, 8).Room(room).Build();
    const WorkerPlan plan = PlanOf(view);
    ExpectSize(plan, 0, 0);
    EXPECT_TRUE(plan.is_waiting);
    EXPECT_EQ(plan.reason, ScaleReason::kNone);
  }
}

TEST(WorkerPlan, StartsNothingWhenNoneAreWanted) {
  const WorkerPlan plan = PlanOf(ViewBuilder().MinMax(0, 8).Target(0).Room(8).Build());
  ExpectSize(plan, 0, 0);
  EXPECT_FALSE(plan.is_waiting);
}

TEST(WorkerPlan, AsksForTheRestOnceAllThatFittedAreBound) {
  const ViewBuilder without = ViewBuilder().MinMax(2, 6).Set(4, 4).LastScale("Started", -5, 0, 4).Room(0);
  const ViewBuilder builder = ViewBuilder(without).LauncherRuns();

  const WorkerPlan before = PlanOf(ViewBuilder(builder).Bound({0, 1, 2}).Waiting({3}).Build());
  ExpectSize(before, 4, 4);
  ExpectSize(PlanOf(ViewBuilder(without).Bound({0, 1, 2, 3}).Build()), 4, 4);  // They could take the launcher's room.

  // Our own count of free GPUs may be wrong either way; the scheduler is asked once.
  const WorkerPlan after = PlanOf(ViewBuilder(builder).Bound({0, 1, 2, 3}).Build());
  ExpectSize(after, 6, 6);
  EXPECT_EQ(after.reason, ScaleReason::kRequested);
}

TEST(WorkerPlan, DoesNotGrowWhileOthersWaitForRoomThatItsWorkersCouldTake) {
  for (const auto& [last, did_choose] :
       {std::pair("Started", false), {"Unschedulable", true}, {"RoomAppeared", false}}) {
    ViewBuilder builder =
        ViewBuilder().MinMax(2, 6).Set(4, 4).Bound({0, 1, 2, 3}).LauncherRuns().LastScale(last, -60, 0, 4).Room(2);
    if (did_choose) builder.Target(6).Job([](auto& job) { job.metadata.generation = 2; });
    View view = builder.Build();
    ExpectSize(PlanOf(view), 6, 6);
    view.reserved_for = "team-a/large";
    ExpectSize(PlanOf(view), 4, 4);
  }
}

TEST(WorkerPlan, AMinimumRaisedAboveWhatRunsIsReachedAtOnceOrAllIsGivenBack) {
  const auto raised = [](int room) {
    return ViewBuilder()
        .MinMax(5, 6)
        .Set(4, 4)
        .Ready({0, 1, 2, 3})
        .LastScale("Unschedulable", -1, 6, 4)
        .Room(room)
        .Build();
  };
  ExpectSize(PlanOf(raised(1)), 5, 5);
  const View view = raised(0);
  const WorkerPlan plan = PlanOf(view);
  ExpectSize(plan, 0, 0);
  EXPECT_TRUE(plan.is_waiting);
  EXPECT_EQ(plan.reason, ScaleReason::kBelowMinimum);
}

TEST(WorkerPlan, NeverGrowsBeyondWhatQuotasAdmit) {
  struct Case {
    const char* last_reason;
    int quota, granted;
  };
  const Case kCases[] = {{"Started", 3, 3},      {"Started", 2, 2},      {"Started", 1, 2},  // What runs stays.
                         {"RoomAppeared", 3, 3}, {"RoomAppeared", 2, 2}, {"Requested", 4, 4}};
  for (const Case& c : kCases) {
    ViewBuilder builder = ViewBuilder().MinMax(2, 4).Set(2, 2).Ready({0, 1}).Room(8).Quota(c.quota);
    const WorkerPlan plan = PlanOf(builder.LastScale(c.last_reason, -1000).Build());
    ExpectSize(plan, c.granted, c.granted);
    EXPECT_EQ(plan.reason != ScaleReason::kNone, c.granted > 2) << c.last_reason << " " << c.quota;
  }
}

TEST(WorkerPlan, AMinimumRaisedAboveTheQuotaIsNotReached) {
  const WorkerPlan plan = PlanOf(ViewBuilder().MinMax(4, 4).Set(2, 2).Ready({0, 1}).Room(8).Quota(3).Build());
  ExpectSize(plan, 0, 0);
  EXPECT_EQ(plan.reason, ScaleReason::kBelowMinimum);
}

TEST(WorkerPlan, AsksForTheRestOnlyOnce) {
  for (const char* last : {"Requested", "Unschedulable", "RoomAppeared", "SpecChanged"}) {
    const View view = ViewBuilder().MinMax(2, 6).Set(4, 4).Bound({0, 1, 2, 3}).LastScale(last, -500).Build();
    ExpectSize(PlanOf(view), 4, 4);
  }
}

TEST(WorkerPlan, AfterGivingBackTheNextStartWaitsForTheCooldown) {
  ViewBuilder builder = ViewBuilder().MinMax(2, 6).Set(0, 0).Room(6);

  const WorkerPlan early = PlanOf(ViewBuilder(builder).LastScale("BelowMinimum", -10).Build());
  ExpectSize(early, 0, 0);
  EXPECT_TRUE(early.is_waiting);
  EXPECT_EQ(early.look_again, kube::Duration(seconds(20)));

  const WorkerPlan later = PlanOf(ViewBuilder(builder).LastScale("BelowMinimum", -30).Build());
  ExpectSize(later, 6, 6);
}

// Shrink.

TEST(WorkerPlan, ShrinksAfterTheGraceAndNeverBefore) {
  for (const auto& [age, granted] : {std::pair(0, 4), {14, 4}, {15, 3}, {400, 3}}) {
    const View view = ViewBuilder().MinMax(1, 4).Set(4, 4).Bound({0, 1, 2}).Unschedulable({3}, -age).Build();
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.size.granted, granted) << age;
    if (granted == 4) {
      EXPECT_EQ(plan.look_again, kube::Duration(seconds(15 - age)));
    } else {
      EXPECT_EQ(plan.reason, ScaleReason::kUnschedulable);
    }
  }
}

TEST(WorkerPlan, LooksAgainWhenTheFirstGraceEnds) {
  const View view = ViewBuilder()
                        .MinMax(1, 4)
                        .Set(4, 4)
                        .Bound({0})
                        .Waiting({1})
                        .Unschedulable({2}, -3)
                        .Unschedulable({3}, -11)
                        .Build();
  EXPECT_EQ(PlanOf(view).look_again, kube::Duration(seconds(4)));
}

TEST(WorkerPlan, ScalesAwayTrailingUnschedulableOrdinals) {
  const View view = ViewBuilder().MinMax(1, 6).Set(6, 6).Bound({0, 1, 2}).Unschedulable({3, 4, 5}, -20).Build();
  const WorkerPlan plan = PlanOf(view);
  ExpectSize(plan, 3, 3);
  EXPECT_THAT(plan.park, IsEmpty());
}

TEST(WorkerPlan, ParksUnschedulableOrdinalsBelowARunningOne) {
  ViewBuilder builder = ViewBuilder().MinMax(1, 6).Bound({0, 2, 4}).Unschedulable({1, 3, 5}, -20);

  // First the gate and the size: deleted now, the pods would come back without the gate.
  const WorkerPlan shrink = PlanOf(ViewBuilder(builder).Set(6, 6).Build());
  ExpectSize(shrink, 5, 3);
  EXPECT_THAT(shrink.park, IsEmpty());

  const WorkerPlan unseen = PlanOf(ViewBuilder(builder).Set(5, 3).Unobserved().Build());
  ExpectSize(unseen, 5, 3);
  EXPECT_THAT(unseen.park, IsEmpty());

  const View view = ViewBuilder(builder).Set(5, 3).Build();
  const WorkerPlan park = PlanOf(view);
  ExpectSize(park, 5, 3);
  EXPECT_THAT(OrdinalsOf(park.park), ElementsAre(1, 3));
  EXPECT_THAT(park.lift, IsEmpty());
  EXPECT_EQ(park.reason, ScaleReason::kNone);
}

TEST(WorkerPlan, TheIssuesThirtyFourOnThirtyTwoGpusLoseNobody) {
  // Of 34 Parallel pods on 32 GPUs the two that wait were not the highest ordinals.
  ViewBuilder builder = ViewBuilder().MinMax(8, 34).Set(34, 34).Unschedulable({17, 30}, -20);
  for (int ordinal = 0; ordinal < 34; ++ordinal) {
    if (ordinal != 17 && ordinal != 30) builder.Bound({ordinal});
  }
  ExpectSize(PlanOf(builder.Build()), 34, 32);
}

TEST(WorkerPlan, AParkedPodAgainIsNoSecondChange) {
  const View view = ViewBuilder().MinMax(1, 6).Set(5, 3).Bound({0, 2, 4}).Gated({1, 3}).Build();
  const WorkerPlan plan = PlanOf(view);
  ExpectSize(plan, 5, 3);
  EXPECT_THAT(plan.park, IsEmpty());
  EXPECT_THAT(plan.lift, IsEmpty());
}

TEST(WorkerPlan, WhoeverHasNotBeenAskedYetKeepsItsChance) {
  // 3 waits within its grace, 4 does not exist yet, 5 is being replaced: only 2 has had its answer.
  const View view =
      ViewBuilder().MinMax(1, 6).Set(6, 6).Bound({0, 1}).Unschedulable({2}, -20).Waiting({3}).Ending({5}).Build();
  EXPECT_EQ(PlanOf(view).size.granted, 5);
}

TEST(WorkerPlan, GivesEverythingBackBelowTheMinimum) {
  const View view = ViewBuilder().MinMax(3, 6).Set(6, 6).Bound({0, 1}).Unschedulable({2, 3, 4, 5}, -20).Build();
  const WorkerPlan plan = PlanOf(view);
  ExpectSize(plan, 0, 0);
  EXPECT_EQ(plan.reason, ScaleReason::kBelowMinimum);
  EXPECT_TRUE(plan.is_waiting);
}

TEST(WorkerPlan, AMinimumOfNoneStillNeedsOneToRun) {
  ExpectSize(PlanOf(ViewBuilder().MinMax(0, 2).Set(2, 2).Bound({1}).Unschedulable({0}, -20).Build()), 2, 1);
  ExpectSize(PlanOf(ViewBuilder().MinMax(0, 2).Set(2, 2).Unschedulable({0, 1}, -20).Build()), 0, 0);
}

// Growth.

TEST(WorkerPlan, GrowsAfterTheCooldownAndOnlyToTheRoom) {
  struct Case {
    const char* rule;
    int since, room, max, granted;
  };
  const Case kCases[] = {{"no room", -500, 0, 8, 4},
                         {"within the cool-down", -29, 2, 8, 4},
                         {"after the cool-down", -30, 2, 8, 6},
                         {"never above what is wanted", -30, 9, 5, 5}};
  for (const Case& c : kCases) {
    const View view = ViewBuilder()
                          .MinMax(1, c.max)
                          .Set(4, 4)
                          .Bound({0, 1, 2, 3})
                          .LastScale("Unschedulable", c.since)
                          .Room(c.room)
                          .Build();
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.size.granted, c.granted) << c.rule;
    EXPECT_EQ(plan.reason, c.granted > 4 ? ScaleReason::kRoomAppeared : ScaleReason::kNone) << c.rule;
    const bool is_cooling = c.room > 0 && c.since > -30;
    EXPECT_EQ(plan.look_again.has_value(), is_cooling) << c.rule;
  }
}

TEST(WorkerPlan, DoesNotGrowOnItsOwnWhenToldNotTo) {
  const View view = ViewBuilder()
                        .MinMax(1, 8)
                        .Set(4, 4)
                        .Bound({0, 1, 2, 3})
                        .Room(4)
                        .LastScale("Unschedulable", -500)
                        .Job([](auto& job) { job.spec.elastic.scale_up = false; })
                        .Build();
  ExpectSize(PlanOf(view), 4, 4);
}

TEST(WorkerPlan, ANewTargetIsAskedForAtOnce) {
  ViewBuilder builder =
      ViewBuilder().MinMax(1, 8).Set(4, 4).Bound({0, 1, 2, 3}).LauncherRuns().LastScale("Unschedulable", -1);
  const WorkerPlan plan = PlanOf(builder.Target(7).Job([](auto& job) { job.metadata.generation = 2; }).Build());
  ExpectSize(plan, 7, 7);
  EXPECT_EQ(plan.reason, ScaleReason::kSpecChanged);
}

TEST(WorkerPlan, LiftsGatesOfParkedPodsLowestFirstUpToTheGrant) {
  ViewBuilder builder =
      ViewBuilder().MinMax(1, 8).Set(6, 3).Bound({0, 3, 5}).Gated({1, 2, 4}).LastScale("Unschedulable", -500);

  const View two = ViewBuilder(builder).Room(2).Build();
  const WorkerPlan plan = PlanOf(two);
  ExpectSize(plan, 6, 5);
  EXPECT_THAT(OrdinalsOf(plan.lift), ElementsAre(1, 2));

  const View all = ViewBuilder(builder).Room(9).Build();
  const WorkerPlan more = PlanOf(all);
  ExpectSize(more, 8, 8);
  EXPECT_THAT(OrdinalsOf(more.lift), ElementsAre(1, 2, 4));
}

TEST(WorkerPlan, AParkedWorkerTakesThePlaceOfALostOne) {
  const View view = ViewBuilder().MinMax(1, 8).Set(4, 3).Bound({0, 1}).Gated({2}).Lost({3}).Build();
  const WorkerPlan plan = PlanOf(view);
  ExpectSize(plan, 4, 3);
  EXPECT_THAT(OrdinalsOf(plan.lift), ElementsAre(2));
}

TEST(WorkerPlan, OneThatWasToBeParkedAndFoundAPlaceStays) {
  const View view = ViewBuilder().MinMax(1, 8).Set(5, 3).Bound({0, 1, 2, 4}).Gated({3}).Build();
  const WorkerPlan plan = PlanOf(view);
  ExpectSize(plan, 5, 4);
  EXPECT_THAT(plan.lift, IsEmpty());
}

TEST(WorkerPlan, AStatefulSetScaledByHandIsBroughtIntoOrder) {
  // kubectl scale to 6 where 4 are granted: who is bound stays, who does not fit is parked or scaled away.
  ViewBuilder builder = ViewBuilder().MinMax(1, 8).Bound({0, 1, 2, 3, 5}).Unschedulable({4}, -20);
  ViewBuilder by_hand = ViewBuilder(builder).Set(6, 4);
  const View view = by_hand.Build();
  View ungated = view;
  ungated.workers->is_gated = false;

  const WorkerPlan plan = PlanOf(ungated);

  EXPECT_TRUE(plan.size.is_gated);
  EXPECT_THAT(plan.park, IsEmpty());
  EXPECT_THAT(OrdinalsOf(PlanOf(view).park), ElementsAre(4));
}

TEST(WorkerPlan, AStatefulSetScaledDownByHandGetsBackWhatWasGranted) {
  // Not less for want of room: the pods that end still hold their GPUs.
  View view = ViewBuilder().MinMax(6, 6).Bound({0}).Set(1, 1).Build();
  view.workers->promised = 6;
  EXPECT_EQ(PlanOf(view).size, (WorkersState{6, 6, false, false}));
  // A number that somebody wrote is not believed beyond what is wanted.
  view.workers->promised = 1'000'000;
  EXPECT_EQ(PlanOf(view).size, (WorkersState{6, 6, false, false}));
}

// The user asks for fewer.

TEST(WorkerPlan, AUserShrinkKeepsTheLowestBoundOrdinals) {
  struct Case {
    const char* rule;
    ViewBuilder view;
    int target, replicas, granted;
  };
  const Case kCases[] = {
      {"all bound", ViewBuilder().Set(6, 6).Bound({0, 1, 2, 3, 4, 5}), 3, 3, 3},
      {"bound before waiting", ViewBuilder().Set(6, 6).Bound({0, 4, 5}).Waiting({1, 2, 3}), 3, 6, 3},
      {"parked ones do not count", ViewBuilder().Set(6, 4).Bound({0, 2, 4, 5}).Gated({1, 3}), 3, 5, 3},
      {"the waiting fill up", ViewBuilder().Set(5, 5).Bound({0, 1}).Waiting({2, 3, 4}), 3, 3, 3},
      {"what does not exist yet", ViewBuilder().Set(6, 6), 3, 3, 3},
      {"none at all", ViewBuilder().Set(3, 3).Bound({0, 1, 2}), 0, 0, 0},
  };
  for (Case c : kCases) {
    SCOPED_TRACE(c.rule);
    const View view = c.view.MinMax(c.target == 0 ? 0 : 1, 8).Target(c.target).Build();
    const WorkerPlan plan = PlanOf(view);
    ExpectSize(plan, c.replicas, c.granted);
    EXPECT_TRUE(plan.must_drain);
    EXPECT_EQ(plan.reason, ScaleReason::kSpecChanged);
  }
}

// For any view in which the user has not asked for fewer.

struct RandomView {
  ViewBuilder builder;
  bool has_expired = false;
  int promised = 0;  // Bound, within their grace, or not answered yet.
};

RandomView MakeRandomView(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  RandomView result;
  const int replicas = 1 + below(14), granted = 1 + below(replicas);
  int bound = 0, known = 0;
  // More ordinals than replicas: those above are on their way out.
  for (int ordinal = 0; ordinal < replicas + below(3); ++ordinal) {
    const bool counts = ordinal < replicas;
    switch (below(9)) {
      case 0: result.builder.Gated({ordinal}); break;
      case 1: result.builder.Lost({ordinal}); break;
      case 2: result.builder.Ending({ordinal}); break;
      case 3: break;  // Not created yet.
      case 4:
        result.builder.Waiting({ordinal});
        known += counts, result.promised += counts;
        break;
      case 5: {
        const int age = below(30);
        result.builder.Unschedulable({ordinal}, -age);
        known += counts;
        if (age < 15) result.promised += counts;
        else if (counts) result.has_expired = true;
        break;
      }
      default:
        result.builder.Ready({ordinal});
        bound += counts, known += counts, result.promised += counts;
        break;
    }
  }
  result.promised += std::max(0, granted - known);
  const int wanted = std::max(granted, bound) + below(4);
  static const char* const kReasons[] = {"Started", "Requested", "Unschedulable", "RoomAppeared", "SpecChanged"};
  result.builder.MinMax(1 + below(granted), wanted).Set(replicas, granted).Room(below(4));
  if (below(2) == 0) result.builder.LastScale(kReasons[below(5)], -below(60));
  if (below(3) == 0) result.builder.Unobserved();
  return result;
}

TEST(WorkerPlan, NeverRemovesABoundWorkerBecauseAnotherDoesNotFit) {
  for (unsigned seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomView world = MakeRandomView(seed);
    const View view = world.builder.Build();
    const Sizes sizes = SizesOf(view.job->spec);
    const WorkersState& now = *view.workers;

    const WorkerPlan plan = PlanWorkers(view, sizes);

    // Everything is given back only where the minimum cannot be held.
    const bool gave_back = plan.size.replicas == 0;
    EXPECT_EQ(gave_back, world.has_expired && world.promised < sizes.NeededToRun());
    if (gave_back) continue;
    for (const Worker& worker : view.pods) {
      const bool runs = worker.is_bound && !worker.is_ending && !worker.has_lost_node;
      if (runs && worker.ordinal < now.replicas) {
        EXPECT_LT(worker.ordinal, plan.size.replicas);
      }
    }
    for (const Worker* worker : plan.park) {
      EXPECT_FALSE(worker->is_bound);
      EXPECT_TRUE(worker->unschedulable_since && view.now.value - worker->unschedulable_since->value >= seconds(15));
      EXPECT_TRUE(now.is_gated && now.is_observed && plan.size.is_gated);
    }
    // Nothing shrinks before a grace is over, and never to less than can run.
    if (plan.size.granted < now.granted) {
      EXPECT_TRUE(world.has_expired);
      EXPECT_GE(plan.size.granted, sizes.NeededToRun());
      EXPECT_EQ(plan.reason, ScaleReason::kUnschedulable);
    }
    EXPECT_EQ(plan.reason != ScaleReason::kNone, plan.size.granted != now.granted);
    EXPECT_FALSE(plan.must_drain);
    EXPECT_LE(plan.size.granted, sizes.wanted);
    EXPECT_LE(plan.size.granted, plan.size.replicas);
    EXPECT_EQ(plan.size.is_gated, plan.size.replicas > plan.size.granted);
    // No more gates are lifted than workers granted, and the lowest ordinals go first.
    int free_to_run = 0, lowest_held = 1'000'000;
    for (const Worker& worker : view.pods) {
      if (worker.is_ending || worker.has_lost_node || worker.ordinal >= now.replicas) continue;
      const bool is_lifted = std::find(plan.lift.begin(), plan.lift.end(), &worker) != plan.lift.end();
      if (!worker.is_gated || is_lifted) ++free_to_run;
      if (worker.is_gated && !is_lifted) lowest_held = std::min(lowest_held, worker.ordinal);
    }
    for (const Worker* worker : plan.lift) {
      EXPECT_TRUE(worker->is_gated);
      EXPECT_LT(worker->ordinal, lowest_held);
    }
    if (!plan.lift.empty()) {
      EXPECT_LE(free_to_run - static_cast<int>(plan.park.size()), plan.size.granted);
    }
    if (::testing::Test::HasFailure()) return;  // One seed tells enough.
  }
}

TEST(WorkerPlan, BrokenWorkersGiveTheirGpusBackAfterAGrace) {
  const auto plan_of = [](int since) {
    const View view = ViewBuilder().MinMax(2, 4).Set(4, 4).Ready({0, 1, 2}).Broken({3}, since).Build();
    return PlanWorkers(view, SizesOf(view.job->spec));
  };
  const WorkerPlan early = plan_of(-59);
  EXPECT_EQ(early.size.granted, 4);
  EXPECT_EQ(early.look_again, kube::Duration(std::chrono::seconds(1)));

  const WorkerPlan late = plan_of(-60);
  EXPECT_EQ(late.size.granted, 3);
  EXPECT_EQ(late.size.replicas, 3);
  EXPECT_EQ(late.reason, ScaleReason::kPodsBroken);
}

TEST(WorkerPlan, BelowTheMinimumOfSoundWorkersAllGoes) {
  const View view = ViewBuilder().MinMax(2, 4).Set(4, 4).Ready({0}).Broken({1, 2, 3}, -60).Build();
  const WorkerPlan plan = PlanWorkers(view, SizesOf(view.job->spec));
  EXPECT_EQ(plan.size.replicas, 0);
  EXPECT_TRUE(plan.is_waiting);
  EXPECT_EQ(plan.reason, ScaleReason::kPodsBroken);
}

TEST(WorkerPlan, AWorkerThatIsOnlyNotReadyIsNotBroken) {
  View view = ViewBuilder().MinMax(2, 4).Set(4, 4).Ready({0, 1}).Bound({2, 3}, -1000).Build();
  for (Worker& worker : view.pods) {
    if (!worker.is_ready) worker.unready_since = At(-1000);
  }
  EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).size.granted, 4);
}

TEST(WorkerPlan, PodsThatAreRefusedKeepNoPlaceForLong) {
  for (const auto& [since, granted] : {std::pair(-59, 4), {-60, 2}}) {
    View view = ViewBuilder().MinMax(2, 4).Set(4, 4).Ready({0, 1}).Build();
    view.refused_workers = Refusal{"exceeded quota", At(since)};
    const WorkerPlan plan = PlanWorkers(view, SizesOf(view.job->spec));
    EXPECT_EQ(plan.size.granted, granted) << since;
  }
}

TEST(WorkerPlan, ALauncherThatCannotStartHoldsNoGpus) {
  for (const auto& [since, replicas] : {std::pair(-59, 4), {-60, 0}}) {
    View view = ViewBuilder().MinMax(2, 4).Set(4, 4).Ready({0, 1, 2, 3}).Launcher(LauncherState::kActive).Build();
    LauncherPod pod;
    pod.trouble = "container launcher cannot pull image";
    pod.created = At(since);
    view.launcher_pods.push_back(pod);
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).size.replicas, replicas) << since;

    view.launcher_pods.clear();
    view.refused_launcher = Refusal{"exceeded quota", At(since)};
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).size.replicas, replicas) << since;
  }
}

TEST(WorkerPlan, ATryThatFailedOnBrokenPodsIsRepeatedAfterFiveMinutesOrAtOnceWhenTheSpecChanged) {
  struct Case {
    int since;
    bool is_edited;
    int replicas;
  };
  for (const Case& c : {Case{-299, false, 0}, Case{-300, false, 4}, Case{-10, true, 4}}) {
    const View view = ViewBuilder()
                          .MinMax(2, 4)
                          .Set(0, 0)
                          .Room(4)
                          .LastScale("PodsBroken", c.since, 4, 0)
                          .Job([&](auto& job) {
                            job.metadata.generation = c.is_edited ? 2 : 1;
                            job.status.observed_generation = 1;
                          })
                          .Build();
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).size.replicas, c.replicas) << c.since;
  }
}

TEST(WorkerPlan, TooLongBelowTheMinimumAllGoes) {
  for (const auto& [since, replicas] : {std::pair(-599, 3), {-600, 0}}) {
    const View view = ViewBuilder()
                          .MinMax(2, 3)
                          .Set(3, 3)
                          .Ready({0})
                          .Ending({1, 2})
                          .LauncherRuns()
                          .Job([s = since](auto& job) {
                            kube::Condition below;
                            below.type = "Ready";
                            below.status = "False";
                            below.reason = "BelowMinimum";
                            below.last_transition_time = At(s);
                            job.status.conditions.push_back(below);
                          })
                          .Build();
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).size.replicas, replicas) << since;
  }
}

}  // namespace
}  // namespace grus
