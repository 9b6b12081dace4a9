// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "controllers/elastic/elastic_plan.h"
#include "tests/controllers/elastic/view_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;

WorkerPlan PlanOf(const View& view) { return PlanWorkers(view, SizesOf(view.job->spec)); }

// What `plan` leaves of the workers that exist.
std::vector<int> KeptOf(const View& view, const WorkerPlan& plan) {
  std::vector<int> ordinals;
  for (const Worker& worker : view.pods) {
    if (!worker.is_leaving() && !plan.drop.contains(&worker)) ordinals.push_back(worker.ordinal);
  }
  return ordinals;
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
    EXPECT_EQ(plan.granted, c.start);
    EXPECT_EQ(plan.reason, ScaleReason::kStarted);
    EXPECT_FALSE(plan.is_waiting);
  }
}

TEST(WorkerPlan, WorkersThatNoSchedulerJudgesAreGivenBack) {
  for (const int asked : {-200, -400}) {
    View view = ViewBuilder().MinMax(2, 2).Granted(2).Waiting({0, 1}).Build();
    for (Worker& worker : view.pods) worker.asked_since = At(asked);
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.reason, asked < -300 ? ScaleReason::kBelowMinimum : ScaleReason::kNone) << asked;
  }
}

TEST(WorkerPlan, AGangWithoutAPlaceForAllIsGivenBackAfterTheGraceOfItsStart) {
  for (const bool lacks_places : {false, true}) {
    View view = ViewBuilder().MinMax(2, 2).Granted(2).Waiting({0, 1}).LastScale("Started", -60).Build();
    view.lacks_places = lacks_places;
    EXPECT_EQ(PlanOf(view).reason, lacks_places ? ScaleReason::kBelowMinimum : ScaleReason::kNone);
  }
}

// A manager died after it had lifted two of four gates, and before the status told of the start.
TEST(WorkerPlan, AStartThatWasCutOffGoesOnWithTheWorkersThatExist) {
  struct Case {
    int room, granted;
    std::vector<int> kept;
  };
  for (const Case& c : {Case{0, 2, {0, 1}}, {1, 3, {0, 1, 2}}, {2, 4, {0, 1, 2, 3}}, {9, 4, {0, 1, 2, 3}}}) {
    for (const bool scale_up : {false, true}) {
      View view = ViewBuilder()
                      .MinMax(2, 4)
                      .Job([&](auto& job) { job.spec.elastic.scale_up = scale_up; })
                      .LastScale("PodsBroken", -5)
                      .Waiting({0, 1})
                      .Gated({2, 3})
                      .Room(c.room)
                      .Build();
      view.workers = ReadWorkersState(view);
      const WorkerPlan plan = PlanOf(view);
      EXPECT_EQ(plan.granted, c.granted) << c.room;
      EXPECT_EQ(KeptOf(view, plan), c.kept) << c.room;
      EXPECT_EQ(PlanElasticJob(view).missing, 0) << c.room << ": it has all that are granted";
    }
  }
}

TEST(WorkerPlan, GrowsWithGatedWorkersBeforeItMakesOthers) {
  View view = ViewBuilder().MinMax(2, 6).Granted(2).Bound({0, 1}).Gated({2, 3}).LauncherRuns().Room(3).Build();
  EXPECT_EQ(PlanOf(view).granted, 5);
  EXPECT_THAT(KeptOf(view, PlanOf(view)), ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(PlanElasticJob(view).missing, 1);
}

TEST(WorkerPlan, WaitsWithoutPodsWhileTheMinimumDoesNotFit) {
  for (const auto& [min, room] : {std::pair(4, 3), {4, 0}, {0, 0}}) {
    const View view = ViewBuilder().MinMax(min, 8).Room(room).Build();
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.granted, 0);
    EXPECT_TRUE(plan.is_waiting);
    EXPECT_EQ(plan.reason, ScaleReason::kNone);
  }
}

TEST(WorkerPlan, StartsNothingWhenNoneAreWanted) {
  const WorkerPlan plan = PlanOf(ViewBuilder().MinMax(0, 8).Target(0).Room(8).Build());
  EXPECT_EQ(plan.granted, 0);
  EXPECT_FALSE(plan.is_waiting);
}

TEST(WorkerPlan, GrowsIntoFreeRoomAloneAndAfterTheCooldown) {
  const ViewBuilder builder = ViewBuilder().MinMax(2, 6).Granted(4).Bound({0, 1, 2, 3}).LauncherRuns();
  for (const char* last : {"Started", "Unschedulable", "RoomAppeared", "SpecChanged"}) {
    const auto granted = [&](int since, int room) {
      return PlanOf(ViewBuilder(builder).LastScale(last, since, 0, 4).Room(room).Build()).granted;
    };
    EXPECT_EQ(granted(-500, 0), 4);
    EXPECT_EQ(granted(-29, 1), 4);
    EXPECT_EQ(granted(-30, 1), 5);
    EXPECT_EQ(granted(-30, 9), 6);
  }
}

TEST(WorkerPlan, ATargetThatTheUserHasJustRaisedIsReachedAsFarAsThereIsRoomWithoutACooldown) {
  const ViewBuilder builder =
      ViewBuilder().MinMax(2, 8).Granted(4).Target(6).Bound({0, 1, 2, 3}).LastScale("Started", -1, 0, 4);
  for (const int room : {0, 1, 5}) {
    const ViewBuilder raised = ViewBuilder(builder).Room(room).Job([](auto& job) { job.metadata.generation = 2; });
    EXPECT_EQ(PlanOf(ViewBuilder(raised).Build()).granted, std::min(4 + room, 6));
  }
}

TEST(WorkerPlan, DoesNotGrowWhileOthersWaitForRoomThatItsWorkersCouldTake) {
  for (const auto& [last, did_choose] :
       {std::pair("Started", false), {"Unschedulable", true}, {"RoomAppeared", false}}) {
    ViewBuilder builder =
        ViewBuilder().MinMax(2, 6).Granted(4).Bound({0, 1, 2, 3}).LauncherRuns().LastScale(last, -60, 0, 4).Room(2);
    if (did_choose) builder.Target(6).Job([](auto& job) { job.metadata.generation = 2; });
    View view = builder.Build();
    EXPECT_EQ(PlanOf(view).granted, 6);
    view.reserved_for = "team-a/large";
    EXPECT_EQ(PlanOf(view).granted, 4);
  }
}

TEST(WorkerPlan, AMinimumRaisedAboveWhatRunsIsReachedAtOnceOrAllIsGivenBack) {
  const auto raised = [](int room) {
    return ViewBuilder()
        .MinMax(5, 6)
        .Granted(4)
        .Ready({0, 1, 2, 3})
        .LastScale("Unschedulable", -1, 6, 4)
        .Room(room)
        .Build();
  };
  EXPECT_EQ(PlanOf(raised(1)).granted, 5);
  const View view = raised(0);
  const WorkerPlan plan = PlanOf(view);
  EXPECT_EQ(plan.granted, 0);
  EXPECT_TRUE(plan.is_waiting);
  EXPECT_EQ(plan.reason, ScaleReason::kBelowMinimum);
}

TEST(WorkerPlan, NeverGrowsBeyondWhatQuotasAdmit) {
  struct Case {
    const char* last_reason;
    int quota, granted;
  };
  const Case kCases[] = {{"Started", 3, 3},
                         {"Started", 2, 2},
                         {"Started", 1, 2},  // What runs stays.
                         {"RoomAppeared", 3, 3},
                         {"RoomAppeared", 2, 2}};
  for (const Case& c : kCases) {
    ViewBuilder builder = ViewBuilder().MinMax(2, 4).Granted(2).Ready({0, 1}).Room(8).Quota(c.quota);
    const WorkerPlan plan = PlanOf(builder.LastScale(c.last_reason, -1000).Build());
    EXPECT_EQ(plan.granted, c.granted);
    EXPECT_EQ(plan.reason != ScaleReason::kNone, c.granted > 2) << c.last_reason << " " << c.quota;
  }
}

TEST(WorkerPlan, AMinimumRaisedAboveTheQuotaIsNotReached) {
  const WorkerPlan plan = PlanOf(ViewBuilder().MinMax(4, 4).Granted(2).Ready({0, 1}).Room(8).Quota(3).Build());
  EXPECT_EQ(plan.granted, 0);
  EXPECT_EQ(plan.reason, ScaleReason::kBelowMinimum);
}

TEST(WorkerPlan, AfterGivingBackTheNextStartWaitsForTheCooldown) {
  ViewBuilder builder = ViewBuilder().MinMax(2, 6).Granted(0).Room(6);

  const WorkerPlan early = PlanOf(ViewBuilder(builder).LastScale("BelowMinimum", -10).Build());
  EXPECT_EQ(early.granted, 0);
  EXPECT_TRUE(early.is_waiting);
  EXPECT_EQ(early.look_again, kube::Duration(seconds(20)));

  const WorkerPlan later = PlanOf(ViewBuilder(builder).LastScale("BelowMinimum", -30).Build());
  EXPECT_EQ(later.granted, 6);
}

// Shrink.

TEST(WorkerPlan, ShrinksAfterTheGraceAndNeverBefore) {
  for (const auto& [age, granted] : {std::pair(0, 4), {14, 4}, {15, 3}, {400, 3}}) {
    const View view = ViewBuilder().MinMax(1, 4).Granted(4).Bound({0, 1, 2}).Unschedulable({3}, -age).Build();
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.granted, granted) << age;
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
                        .Granted(4)
                        .Bound({0})
                        .Waiting({1})
                        .Unschedulable({2}, -3)
                        .Unschedulable({3}, -11)
                        .Build();
  EXPECT_EQ(PlanOf(view).look_again, kube::Duration(seconds(4)));
}

TEST(WorkerPlan, DropsWhatIsUnschedulableWhereverItStands) {
  for (const auto& [bound, expired] : {std::pair(std::vector{0, 1, 2}, std::vector{3, 4, 5}), {{0, 2, 4}, {1, 3, 5}}}) {
    const View view = ViewBuilder().MinMax(1, 6).Granted(6).Bound(bound).Unschedulable(expired, -20).Build();
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.granted, 3);
    EXPECT_EQ(KeptOf(view, plan), bound);
  }
}

TEST(WorkerPlan, ShrinksWhereTheJobHasFewWorkers) {
  const std::vector<std::string> nodes = {"a", "b", "b", "c", "b", "c"};
  const auto kept = [&](int most) {
    View view = ViewBuilder().MinMax(1, most).Granted(6).Ready({0, 1, 2, 3, 4, 5}).Build();
    for (Worker& worker : view.pods) worker.node = nodes[static_cast<std::size_t>(worker.ordinal)];
    return KeptOf(view, PlanOf(view));
  };
  EXPECT_EQ(kept(5), (std::vector{1, 2, 3, 4, 5}));
  EXPECT_EQ(kept(4), (std::vector{1, 2, 3, 4})) << "of one node, the highest ordinals go";
  EXPECT_EQ(kept(3), (std::vector{1, 2, 4}));
}

TEST(WorkerPlan, TheIssuesThirtyFourOnThirtyTwoGpusLoseNobody) {
  // Of 34 Parallel pods on 32 GPUs the two that wait were not the highest ordinals.
  ViewBuilder builder = ViewBuilder().MinMax(8, 34).Granted(34).Unschedulable({17, 30}, -20);
  for (int ordinal = 0; ordinal < 34; ++ordinal) {
    if (ordinal != 17 && ordinal != 30) builder.Bound({ordinal});
  }
  EXPECT_EQ(PlanOf(builder.Build()).granted, 32);
}

TEST(WorkerPlan, WhoeverHasNotBeenAskedYetKeepsItsChance) {
  // 3 waits within its grace, 4 does not exist yet, 5 is being replaced: only 2 has had its answer.
  const View view =
      ViewBuilder().MinMax(1, 6).Granted(6).Bound({0, 1}).Unschedulable({2}, -20).Waiting({3}).Lost({5}).Build();
  EXPECT_EQ(PlanOf(view).granted, 5);
}

TEST(WorkerPlan, GivesEverythingBackBelowTheMinimum) {
  const View view = ViewBuilder().MinMax(3, 6).Granted(6).Bound({0, 1}).Unschedulable({2, 3, 4, 5}, -20).Build();
  const WorkerPlan plan = PlanOf(view);
  EXPECT_EQ(plan.granted, 0);
  EXPECT_EQ(plan.reason, ScaleReason::kBelowMinimum);
  EXPECT_TRUE(plan.is_waiting);
}

TEST(WorkerPlan, AMinimumOfNoneStillNeedsOneToRun) {
  EXPECT_EQ(PlanOf(ViewBuilder().MinMax(0, 2).Granted(2).Bound({1}).Unschedulable({0}, -20).Build()).granted, 1);
  EXPECT_EQ(PlanOf(ViewBuilder().MinMax(0, 2).Granted(2).Unschedulable({0, 1}, -20).Build()).granted, 0);
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
                          .Granted(4)
                          .Bound({0, 1, 2, 3})
                          .LastScale("Unschedulable", c.since)
                          .Room(c.room)
                          .Build();
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.granted, c.granted) << c.rule;
    EXPECT_EQ(plan.reason, c.granted > 4 ? ScaleReason::kRoomAppeared : ScaleReason::kNone) << c.rule;
    const bool is_cooling = c.room > 0 && c.since > -30;
    EXPECT_EQ(plan.look_again.has_value(), is_cooling) << c.rule;
  }
}

TEST(WorkerPlan, DoesNotGrowOnItsOwnWhenToldNotTo) {
  const View view = ViewBuilder()
                        .MinMax(1, 8)
                        .Granted(4)
                        .Bound({0, 1, 2, 3})
                        .Room(4)
                        .LastScale("Unschedulable", -500)
                        .Job([](auto& job) { job.spec.elastic.scale_up = false; })
                        .Build();
  EXPECT_EQ(PlanOf(view).granted, 4);
}

// The user asks for fewer.

TEST(WorkerPlan, AUserShrinkKeepsTheLowestBoundOrdinals) {
  struct Case {
    const char* rule;
    ViewBuilder view;
    int target;
    std::vector<int> kept;
  };
  const Case kCases[] = {
      {"all bound", ViewBuilder().Granted(6).Bound({0, 1, 2, 3, 4, 5}), 3, {0, 1, 2}},
      {"bound before waiting", ViewBuilder().Granted(6).Bound({0, 4, 5}).Waiting({1, 2, 3}), 3, {0, 4, 5}},
      {"the waiting fill up", ViewBuilder().Granted(5).Bound({0, 1}).Waiting({2, 3, 4}), 3, {0, 1, 2}},
      {"what does not exist yet", ViewBuilder().Granted(6), 3, {}},
      {"none at all", ViewBuilder().Granted(3).Bound({0, 1, 2}), 0, {}},
  };
  for (Case c : kCases) {
    SCOPED_TRACE(c.rule);
    const View view = c.view.MinMax(c.target == 0 ? 0 : 1, 8).Target(c.target).Build();
    const WorkerPlan plan = PlanOf(view);
    EXPECT_EQ(plan.granted, c.target);
    EXPECT_EQ(KeptOf(view, plan), c.kept);
    EXPECT_TRUE(plan.must_drain);
    EXPECT_EQ(plan.reason, ScaleReason::kSpecChanged);
  }
}

// For any view in which the user has not asked for fewer.

TEST(WorkerPlan, AReplacementWaitsForWhatTheWorkerBeforeItStillHas) {
  struct Case {
    const char* rule;
    std::optional<int> leaves_by;
    bool waits;
  };
  for (const Case& c : {Case{"it may leave in its own time", 20, true}, Case{"which may be long", 600, true},
                        Case{"it is a little late", -29, true}, Case{"its node does not answer", -30, false}}) {
    View view = ViewBuilder().MinMax(4, 4).Granted(4).Ready({0, 1, 2}).Ending({3}).Unschedulable({4}, -60).Build();
    view.pods[3].leaves_by = At(*c.leaves_by);
    EXPECT_EQ(PlanOf(view).reason, c.waits ? ScaleReason::kNone : ScaleReason::kBelowMinimum) << c.rule;

    View refused = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1, 2}).Ending({3}).Build();
    refused.pods[3].leaves_by = At(*c.leaves_by);
    EXPECT_EQ(refused.HoldingOn() > 0, c.waits) << c.rule;
  }
}

TEST(WorkerPlan, TheGraceOfAReplacementWithoutAPlaceCountsFromItsOwnStart) {
  for (const int age : {14, 15}) {
    View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Waiting({1}).LastScale("Started", -3600).Build();
    view.lacks_places = true;
    view.pods[1].created = At(-age);
    EXPECT_EQ(PlanOf(view).reason, age < 15 ? ScaleReason::kNone : ScaleReason::kBelowMinimum) << age;
  }
}

struct RandomView {
  ViewBuilder builder;
  bool has_expired = false;
  int promised = 0;  // Bound, within their grace, or owed.
};

RandomView MakeRandomView(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  RandomView result;
  int alive = 0, expired = 0, ending = 0;
  for (int ordinal = 0, ordinals = 1 + below(14); ordinal < ordinals; ++ordinal) {
    switch (below(8)) {
      case 0: result.builder.Lost({ordinal}); break;
      case 1:
        result.builder.Ending({ordinal});
        ++ending;
        break;
      case 2: break;  // Not there.
      case 3:
        result.builder.Waiting({ordinal});
        ++alive, ++result.promised;
        break;
      case 4: {
        const int age = below(30);
        result.builder.Unschedulable({ordinal}, -age);
        ++alive;
        if (age < 15) ++result.promised;
        else ++expired;
        break;
      }
      default:
        result.builder.Ready({ordinal});
        ++alive, ++result.promised;
        break;
    }
  }
  const int granted = std::max(1, alive + below(3));
  result.promised += granted - alive + std::min(expired, ending);
  result.has_expired = expired > ending;
  const int wanted = granted + below(4);
  static const char* const kReasons[] = {"Started", "Unschedulable", "RoomAppeared", "SpecChanged"};
  result.builder.MinMax(1 + below(granted), wanted).Granted(granted).Room(below(4));
  if (below(2) == 0) result.builder.LastScale(kReasons[below(4)], -below(60));
  return result;
}

TEST(WorkerPlan, NeverRemovesABoundWorkerBecauseAnotherDoesNotFit) {
  for (unsigned seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomView world = MakeRandomView(seed);
    const View view = world.builder.Build();
    const Sizes sizes = SizesOf(view.job->spec);
    const int granted = view.granted();

    const WorkerPlan plan = PlanWorkers(view, sizes);

    // Everything is given back only where the minimum cannot be held.
    const bool gave_back = plan.granted == 0;
    EXPECT_EQ(gave_back, world.has_expired && world.promised < sizes.NeededToStart());
    if (gave_back) {
      EXPECT_EQ(plan.drop, AllOf(view));
      continue;
    }
    for (const Worker* worker : plan.drop) {
      EXPECT_FALSE(worker->is_bound);
      EXPECT_TRUE(worker->unschedulable_since && view.now.value - worker->unschedulable_since->value >= seconds(15));
    }
    // Nothing shrinks before a grace is over, and never to less than can run.
    if (plan.granted < granted) {
      EXPECT_TRUE(world.has_expired);
      EXPECT_GE(plan.granted, sizes.NeededToRun());
      EXPECT_EQ(plan.reason, ScaleReason::kUnschedulable);
    }
    EXPECT_EQ(plan.reason != ScaleReason::kNone, plan.granted != granted);
    EXPECT_FALSE(plan.must_drain);
    EXPECT_LE(plan.granted, sizes.wanted);
    EXPECT_LE(view.alive() - static_cast<int>(plan.drop.size()), plan.granted);
    if (::testing::Test::HasFailure()) return;  // One seed tells enough.
  }
}

TEST(WorkerPlan, BrokenWorkersGiveTheirGpusBackAfterAGrace) {
  const auto plan_of = [](int since) {
    const View view = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1, 2}).Broken({3}, since).Build();
    return PlanWorkers(view, SizesOf(view.job->spec));
  };
  const WorkerPlan early = plan_of(-59);
  EXPECT_EQ(early.granted, 4);
  EXPECT_EQ(early.look_again, kube::Duration(std::chrono::seconds(1)));

  const WorkerPlan late = plan_of(-60);
  EXPECT_EQ(late.granted, 3);
  EXPECT_EQ(late.reason, ScaleReason::kPodsBroken);
}

TEST(WorkerPlan, BelowTheMinimumOfSoundWorkersAllGoes) {
  const View view = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0}).Broken({1, 2, 3}, -60).Build();
  const WorkerPlan plan = PlanWorkers(view, SizesOf(view.job->spec));
  EXPECT_EQ(plan.granted, 0);
  EXPECT_TRUE(plan.is_waiting);
  EXPECT_EQ(plan.reason, ScaleReason::kPodsBroken);
}

TEST(WorkerPlan, AWorkerThatIsOnlyNotReadyIsNotBroken) {
  View view = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1}).Bound({2, 3}, -1000).Build();
  for (Worker& worker : view.pods) {
    if (!worker.is_ready) worker.unready_since = At(-1000);
  }
  EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).granted, 4);
}

TEST(WorkerPlan, PodsThatAreRefusedKeepNoPlaceForLong) {
  for (const auto& [since, granted] : {std::pair(-59, 4), {-60, 2}}) {
    View view = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1}).Build();
    view.refused_workers = Refusal{"exceeded quota", At(since)};
    const WorkerPlan plan = PlanWorkers(view, SizesOf(view.job->spec));
    EXPECT_EQ(plan.granted, granted) << since;
  }
}

TEST(WorkerPlan, ALauncherThatCannotStartHoldsNoGpus) {
  for (const auto& [since, replicas] : {std::pair(-59, 4), {-60, 0}}) {
    View view = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1, 2, 3}).Launcher(LauncherState::kActive).Build();
    LauncherPod pod;
    pod.trouble = "container launcher cannot pull image";
    pod.created = At(since);
    view.launcher_pods.push_back(pod);
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).granted, replicas) << since;

    view.launcher_pods.clear();
    view.refused_launcher = Refusal{"exceeded quota", At(since)};
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).granted, replicas) << since;
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
                          .Granted(0)
                          .Room(4)
                          .LastScale("PodsBroken", c.since, 4, 0)
                          .Job([&](auto& job) {
                            job.metadata.generation = c.is_edited ? 2 : 1;
                            job.status.observed_generation = 1;
                          })
                          .Build();
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).granted, c.replicas) << c.since;
  }
}

TEST(WorkerPlan, TooLongBelowTheMinimumAllGoes) {
  for (const auto& [since, replicas] : {std::pair(-599, 3), {-600, 0}}) {
    const View view = ViewBuilder()
                          .MinMax(2, 3)
                          .Granted(3)
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
    EXPECT_EQ(PlanWorkers(view, SizesOf(view.job->spec)).granted, replicas) << since;
  }
}

// Where workers are made.

TEST(NodesForMissing, AreThePlacesThatNoWorkerWithoutANodeHas) {
  const auto shape = std::make_shared<const PodShape>();
  const std::vector<Place> places{{"n1", shape}, {"n1", shape}, {"n2", shape}};
  const View view = ViewBuilder().MinMax(1, 4).Granted(4).Bound({0}).Waiting({1}).Build();
  EXPECT_EQ(NodesForMissing(view, {4, Gang::kNone}, places), (std::vector<std::string>{"n1", "n2"}));
  EXPECT_TRUE(NodesForMissing(view, {4, Gang::kGated}, places).empty()) << "they are nominated";
}

TEST(NodesForMissing, WorkersWithoutDevicesMayRunAnywhere) {
  const std::vector<Place> places{{"n1", std::make_shared<const PodShape>()}};
  const View view = ViewBuilder()
                        .MinMax(1, 1)
                        .Granted(1)
                        .Job([](api::ElasticHorovodJob& job) { job.spec.workers.gpus_per_worker = 0; })
                        .Build();
  EXPECT_TRUE(NodesForMissing(view, {1, Gang::kNone}, places).empty());
}

}  // namespace
}  // namespace grus
