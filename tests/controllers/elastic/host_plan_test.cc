// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/host_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/controllers/elastic/view_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

Sizes MinMax(int min, int max) {
  Sizes sizes;
  sizes.min = min;
  sizes.max = sizes.wanted = max;
  return sizes;
}

std::vector<int> Ordinals(const HostList& list) {
  std::vector<int> ordinals;
  for (const Host& host : list.hosts) ordinals.push_back(OrdinalOf(host.pod, "bert-workers").value_or(-1));
  return ordinals;
}

// Workers with this ordinal or a higher one.
WorkerSet From(const View& view, int ordinal) {
  WorkerSet leaving;
  for (const Worker& worker : view.pods) {
    if (worker.ordinal >= ordinal) leaving.insert(&worker);
  }
  return leaving;
}

TEST(HostPlan, PublishesAWorkerWhenItIsReady) {
  const View view = ViewBuilder().Ready({0, 1, 2}).Bound({3}).Hosts({0, 1}, 7).Build();

  const HostPlan plan = PlanHosts(view, MinMax(1, 4), From(view, 4));

  EXPECT_NE(plan.list.revision, view.hosts->revision);
  EXPECT_THAT(Ordinals(plan.list), ElementsAre(0, 1, 2));
  EXPECT_EQ(plan.list.revision, 8);
  EXPECT_EQ(plan.list.published, view.now);
}

TEST(HostPlan, KeepsTheOrderOfKnownHostsAndAppendsNewOnes) {
  // Horovod gives the lowest ranks to the hosts it has known longest; rank 0 hands on the state.
  const View view = ViewBuilder().Ready({0, 1, 2, 3}).Hosts({3, 1}).Build();
  EXPECT_THAT(Ordinals(PlanHosts(view, MinMax(1, 4), From(view, 4)).list), ElementsAre(3, 1, 0, 2));
}

TEST(HostPlan, TakesAwayWhatIsDeadOrToLeave) {
  struct Case {
    const char* rule;
    ViewBuilder view;
    int replicas;
  };
  const Case kCases[] = {
      {"leaving", ViewBuilder().Ready({0, 1, 2}), 2},
      {"ending", ViewBuilder().Ready({0, 1}).Ending({2}), 3},
      {"not ready", ViewBuilder().Ready({0, 1}).Bound({2}), 3},
      {"its node is lost", ViewBuilder().Ready({0, 1}).Lost({2}), 3},
      {"gone", ViewBuilder().Ready({0, 1}), 3},
  };
  for (Case c : kCases) {
    const View view = c.view.Hosts({0, 1, 2}).Build();
    const HostPlan plan = PlanHosts(view, MinMax(2, 3), From(view, c.replicas));
    EXPECT_NE(plan.list.revision, view.hosts->revision) << c.rule;
    EXPECT_THAT(Ordinals(plan.list), ElementsAre(0, 1)) << c.rule;
  }
}

TEST(HostPlan, ADeadHostLeavesAtOnceAlsoBelowTheMinimum) {
  // The others train on: Horovod is told a minimum of one, since below its own it never restarts what it lost.
  const View one_alive = ViewBuilder().Ready({0}).Ending({1}).Lost({2}).Hosts({0, 1, 2}).Build();

  const HostPlan plan = PlanHosts(one_alive, MinMax(3, 3), From(one_alive, 3));

  EXPECT_THAT(Ordinals(plan.list), ElementsAre(0));
  EXPECT_THAT(plan.lost, ElementsAre(PodName(1), PodName(2)));
}

// The API server was away, and no kubelet has reported yet: the training goes on meanwhile.
TEST(HostPlan, WorkersThatAreAllCutOffStayListed) {
  const View view = ViewBuilder().CutOff({0, 1, 2}).Hosts({0, 1, 2}, 7).Build();
  const HostPlan plan = PlanHosts(view, MinMax(1, 4), {});
  EXPECT_EQ(plan.list.revision, 7);
  EXPECT_TRUE(plan.lost.empty());
  EXPECT_TRUE(plan.look_again);
}

TEST(HostPlan, WorkersThatAreCutOffStayWhileOthersComeBack) {
  const View back = ViewBuilder().Ready({0}, -5).CutOff({1, 2}).Hosts({0, 1, 2}, 7).Build();
  const HostPlan plan = PlanHosts(back, MinMax(1, 4), {});
  EXPECT_EQ(plan.list.revision, 7);
  EXPECT_EQ(plan.look_again, seconds(15));
  const View late = ViewBuilder().Ready({0}, -21).CutOff({1, 2}).Hosts({0, 1, 2}, 7).Build();
  EXPECT_THAT(Ordinals(PlanHosts(late, MinMax(1, 4), {}).list), ElementsAre(0));
}

TEST(HostPlan, WorkersThatAreCutOffAmongOthersAreLost) {
  const View view = ViewBuilder().Ready({0, 3}).CutOff({1, 2}).Hosts({0, 1, 2, 3}, 7).Build();
  const HostPlan plan = PlanHosts(view, MinMax(1, 4), {});
  EXPECT_THAT(Ordinals(plan.list), ElementsAre(0, 3));
  EXPECT_THAT(plan.lost, ::testing::SizeIs(2));
}

TEST(HostPlan, AWorkerThatIsCutOffAndNotListedIsNotPublished) {
  const View view = ViewBuilder().CutOff({0, 1}).Hosts({0}, 7).Build();
  EXPECT_THAT(Ordinals(PlanHosts(view, MinMax(1, 4), {}).list), ElementsAre(0));
}

TEST(HostPlan, APodThatCameBackWithAnotherAddressIsANewHost) {
  View view = ViewBuilder().Ready({0, 1}).Hosts({0, 1}).Build();
  view.pods.front().address = "10.0.9.9";

  const HostPlan plan = PlanHosts(view, MinMax(2, 2), From(view, 2));

  EXPECT_THAT(Ordinals(plan.list), ElementsAre(1, 0)) << "Horovod appends it";
  EXPECT_EQ(plan.list.hosts.back().address, "10.0.9.9");
  EXPECT_THAT(plan.lost, ElementsAre(PodName(0)));
}

TEST(HostPlan, AWorkerWithoutAnAddressIsNotPublished) {
  View view = ViewBuilder().Ready({0, 1}).Hosts({0}).Build();
  view.pods.back().address.clear();
  EXPECT_EQ(PlanHosts(view, MinMax(1, 2), From(view, 2)).list.revision, view.hosts->revision);
}

TEST(HostPlan, WhoIsToLeaveIsNotLost) {
  const View view = ViewBuilder().Ready({0, 1, 2}).Hosts({0, 1, 2}).Build();
  const HostPlan plan = PlanHosts(view, MinMax(1, 3), From(view, 2));
  EXPECT_THAT(Ordinals(plan.list), ElementsAre(0, 1));
  EXPECT_THAT(plan.lost, ElementsAre());
}

TEST(HostPlan, ADeadHostIsReplacedInOneChange) {
  const View view = ViewBuilder().Ready({0, 2}).Ending({1}).Hosts({0, 1}).Build();
  EXPECT_THAT(Ordinals(PlanHosts(view, MinMax(2, 3), From(view, 3)).list), ElementsAre(0, 2));
}

TEST(HostPlan, AWorkerThatIsToLeaveStaysUntilTheMinimumIsThereWithoutIt) {
  // The user asked for two, the lowest ordinals stay, and one of these does not answer yet.
  ViewBuilder builder = ViewBuilder().Ready({1, 2, 3}).Hosts({1, 2, 3});
  const View early = builder.Bound({0}).Build();
  EXPECT_THAT(Ordinals(PlanHosts(early, MinMax(2, 4), From(early, 2)).list), ElementsAre(1, 2));

  const View all_ready = ViewBuilder().Ready({0, 1, 2, 3}).Hosts({1, 2, 3}).Build();
  EXPECT_THAT(Ordinals(PlanHosts(all_ready, MinMax(2, 4), From(all_ready, 2)).list), ElementsAre(1, 0));
}

TEST(HostPlan, ListsWhoIsFitAndNeverTakesALivingWorkerBelowTheMinimum) {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ViewBuilder builder;
    std::vector<int> published;
    for (int ordinal = 0; ordinal < 8; ++ordinal) {
      switch (random() % 5) {
        case 0: builder.Ready({ordinal}); break;
        case 1: builder.Bound({ordinal}); break;
        case 2: builder.Ending({ordinal}); break;
        case 3: builder.Lost({ordinal}); break;
        default: break;
      }
      if (random() % 2 == 0) published.push_back(ordinal);
    }
    const int min = 1 + static_cast<int>(random() % 4), replicas = min + static_cast<int>(random() % 5);
    const View view = builder.Hosts(published).Build();

    const HostPlan plan = PlanHosts(view, MinMax(min, 8), From(view, replicas));

    int alive = 0;
    for (const Worker& worker : view.pods) {
      alive += view.hosts->Has(worker.name) && worker.is_usable() ? 1 : 0;
      if (!worker.is_usable()) {
        EXPECT_FALSE(plan.list.Has(worker.name));
      }
      const bool is_fit = worker.is_usable() && worker.ordinal < replicas;
      if (is_fit) {
        EXPECT_TRUE(plan.list.Has(worker.name));
      }
      if (plan.list.Has(worker.name) && !view.hosts->Has(worker.name)) {
        EXPECT_TRUE(is_fit);
      }
    }
    EXPECT_GE(static_cast<int>(plan.list.hosts.size()), std::min(alive, min));
  }
}

TEST(HostPlan, TheSameHostsInAnotherOrderAreNoChange) {
  const View view = ViewBuilder().Ready({0, 1, 2}).Hosts({2, 0, 1}, 5).Build();

  const HostPlan plan = PlanHosts(view, MinMax(1, 3), From(view, 3));

  EXPECT_EQ(plan.list.revision, view.hosts->revision);
  EXPECT_EQ(plan.list, *view.hosts);
  EXPECT_FALSE(plan.look_again);
}

TEST(HostPlan, TwoChangesAreTwoSecondsApart) {
  for (const auto& [age, is_due] : {std::pair(0, false), {1, false}, {2, true}, {3, true}}) {
    const View view = ViewBuilder().Ready({0, 1}).Hosts({0}, 4, -age).Build();
    const HostPlan plan = PlanHosts(view, MinMax(1, 2), From(view, 2));
    EXPECT_EQ(plan.list.revision != view.hosts->revision, is_due) << age;
    if (is_due) {
      EXPECT_FALSE(plan.look_again);
    } else {
      EXPECT_EQ(plan.list, *view.hosts) << age;
      EXPECT_EQ(plan.look_again, kube::Duration(seconds(2 - age))) << age;
    }
  }
}

TEST(FirstHosts, AreTheReadyWorkersThatAreToStay) {
  const View view = ViewBuilder().Ready({0, 2, 5}).Bound({1}).Ending({3}).Lost({4}).Build();
  Sizes sizes = MinMax(1, 6);
  sizes.slots = 4;

  const HostList list = FirstHosts(view, sizes, From(view, 5));

  EXPECT_THAT(Ordinals(list), ElementsAre(0, 2));
  EXPECT_EQ(list.slots, 4);
  EXPECT_EQ(list.revision, 1);
  EXPECT_EQ(list.published, view.now);
}

TEST(FirstHosts, AreNewerThanAnyListALauncherHas) {
  // The launcher believes the higher revision of the two lists that it sees.
  EXPECT_EQ(FirstHosts(ViewBuilder().Ready({0}).Hosts({0}, 6).Build(), MinMax(1, 1), {}).revision, 7);
  EXPECT_EQ(FirstHosts(ViewBuilder().Ready({0}).LauncherRuns(9).Build(), MinMax(1, 1), {}).revision, 10);
}

}  // namespace
}  // namespace grus
