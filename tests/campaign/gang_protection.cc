// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_protection.h"

#include <chrono>
#include <utility>

#include "controllers/cluster/lease_watch.h"
#include "controllers/gang/gang_view.h"

namespace grus::testing {
namespace {

using kube::testing::ServerChange;

constexpr char kLeases[] = "leases.coordination.k8s.io";

// An outsider that came long before, so that places are protected by nominations; then the gang.
Act WithOutsider(int nodes) {
  return [=](World& world) {
    AddNodes(world, nodes, 8);
    SubmitOutsider(world, "early", 1);
  };
}
Step UntilOutsiderRuns(int seconds = kLongTimeout) {
  return UntilPodRuns("early", [=](World& world) { SubmitGang(world, 3, 3, 4, seconds); });
}

GangStory SchedulerRestarts() {
  return {.name = "gang-scheduler-restarts",
          .prepare =
              [](World& world) {
                WithOutsider(2)(world);
                Once(world, IsNomination, [](World& it, const ServerChange&) {
                  using std::chrono::seconds;
                  it.cluster.RestartScheduler(it.simulation.Between(seconds(0), seconds(3)));
                });
              },
          .steps = {UntilOutsiderRuns(), UntilRuns(3)},
          .rules = {.most_members = 3}};
}

GangStory NodeCordoned() {
  return {.name = "gang-node-cordoned",
          .prepare =
              [](World& world) {
                WithOutsider(3)(world);
                Once(world, IsNomination, [](World& it, const ServerChange& change) {
                  it.cluster.SetCordoned(Text(*change.after, {"status", "nominatedNodeName"}), true);
                });
              },
          .steps = {UntilOutsiderRuns(), UntilRuns(3)},
          .rules = {.most_members = 3}};
}

// The same without a spare node, until the node takes pods again.
GangStory OnlyNodeCordoned() {
  return {.name = "gang-only-node-cordoned",
          .prepare =
              [](World& world) {
                WithOutsider(2)(world);
                Once(world, IsNomination,
                     [](World& it, const ServerChange&) { it.cluster.SetCordoned("node-0", true); });
              },
          .steps = {UntilOutsiderRuns(kShortTimeout),
                    Until(
                        "it runs or waits, whole",
                        [](const World& world) { return Runs(world, kGang, 3) || WaitsWhole(world, kGang, 3); },
                        [](World& world) { world.cluster.SetCordoned("node-0", false); }),
                    UntilRuns(3)},
          .rules = {.may_roll_back = true}};
}

// The last place goes to the outsider or to the gang, and then there is room for both.
GangStory OutsiderBetween() {
  return {.name = "gang-outsider-between",
          .prepare =
              [](World& world) {
                WithOutsider(2)(world);
                Once(
                    world, [](const ServerChange& change) { return IsNomination(change) || IsLift(change); },
                    [](World& it, const ServerChange&) { SubmitOutsider(it, "late", 4); });
              },
          .steps = {UntilOutsiderRuns(),
                    Until(
                        "one has the place, the other one waits",
                        [](const World& world) {
                          const bool has_late = world.Get("pods", {kNamespace, "late"}) != nullptr;
                          const bool waits = IsRunning(world, "late") && WaitsWhole(world, kGang, 3);
                          return has_late && (Runs(world, kGang, 3) || waits);
                        },
                        AddsNode("node-9", 8)),
                    Until("both run",
                          [](const World& world) { return Runs(world, kGang, 3) && IsRunning(world, "late"); })},
          .rules = {.most_members = 3}};
}

std::string Cpus(int cpus) {
  return R"({"containers":[{"name":"c","image":"registry.test/x","resources":{"requests":{"cpu":")" +
         std::to_string(cpus) + R"("}}}]})";
}

// Nobody asks for a GPU; of the processors there are enough for three of those that ask for 40.
GangStory OutsiderBetweenForProcessors() {
  GangStory traits = OutsiderBetween();
  traits.name = "gang-outsider-for-processors";
  traits.prepare = [](World& world) {
    AddNodes(world, 2, 0);
    SubmitOutsider(world, "early", 0, Cpus(20));
    Once(
        world, [](const ServerChange& change) { return IsNomination(change) || IsLift(change); },
        [](World& it, const ServerChange&) { SubmitOutsider(it, "late", 0, Cpus(40)); });
  };
  traits.steps[0] = UntilPodRuns("early", [](World& world) {
    SubmitGroup(world, kGang, 3);
    SubmitSet(world, kGang, 3, 0, "", Cpus(40));
  });
  traits.steps[1].act = AddsNode("node-9", 0);
  return traits;
}

// A member of another gang that somebody made without the gate.
GangStory UngatedMemberBetween() {
  GangStory traits = OutsiderBetween();
  traits.name = "gang-ungated-member-between";
  traits.prepare = [](World& world) {
    AddNodes(world, 2, 8);
    SubmitGroup(world, "others", 1);
    Once(
        world, [](const ServerChange& change) { return change.resource == kGroups && change.before; },
        [](World& it, const ServerChange&) { SubmitUngated(it, "early", "others", 1); });
    Once(
        world, [](const ServerChange& change) { return IsNomination(change) || IsLift(change); },
        [](World& it, const ServerChange&) { SubmitUngated(it, "late", "others", 4); });
  };
  traits.rules = {.may_roll_back = true};  // A process that began later does not know that there was one before.
  return traits;
}

// A scheduler that starts anew has forgotten the nominations of gated pods: now an outsider may get in between.
GangStory HoldsForgotten() {
  GangStory traits = OutsiderBetween();
  traits.name = "gang-nominations-forgotten";
  traits.rules = {.may_roll_back = true};
  traits.steps.front() = UntilOutsiderRuns(kShortTimeout);
  traits.prepare = [prepare = std::move(traits.prepare)](World& world) {
    prepare(world);
    Once(world, IsNomination, [](World& it, const ServerChange&) {
      it.cluster.RestartScheduler(it.simulation.Between(std::chrono::milliseconds(0), std::chrono::milliseconds(200)));
    });
  };
  return traits;
}

// Where nominations do not help: each member may go to the node that was planned, and to no other. It is lost to one of
// them, which the gang finds out at its deadline.
GangStory Pinned() {
  return {.name = "gang-pinned",
          .prepare =
              [](World& world) {
                AddNodes(world, 3, 8);
                SubmitGang(world, 3, 3, 4, kShortTimeout);
                Once(world, IsLift, [](World& it, const ServerChange& change) {
                  it.cluster.SetCordoned(Text(*change.after, {"spec", "nodeSelector", "kubernetes.io/hostname"}), true);
                });
              },
          .steps = {UntilRuns(3)},
          .rules = {.may_roll_back = true},
          .nominations = Nominations::kPin};
}

void SetScheduler(World& world, const std::string& holder) {
  const kube::ObjectKey key{kSchedulerLeaseNamespace, kSchedulerLease};
  Json lease = FromText(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{},"spec":{}})");
  const auto before = world.server.Get(kLeases, key);
  if (before) lease = *before;
  lease["metadata"]["name"] = key.name;
  lease["metadata"]["namespace"] = key.ns;
  lease["spec"]["holderIdentity"] = holder;
  Must(before ? world.server.Update(kLeases, std::move(lease)) : world.server.Create(kLeases, std::move(lease)));
}

bool IsHeldBy(const World& world, const std::string& scheduler, int members) {
  int told = 0;
  for (const auto& [key, pod] : world.All("pods")) {
    told += GroupOf(*pod) == kGang && IsGated(*pod) && !Text(*pod, {"status", "nominatedNodeName"}).empty() &&
            Text(*pod, {"metadata", "annotations", kGangNominatedToAnnotation}) == scheduler;
  }
  return told == members;
}

// While a gang waits for what becomes of a foreign pod, its places are protected: from the next scheduler too, once it
// is told. It waits for 20 s: where the API server is away for as long, it starts as soon as it can, and need not tell.
GangStory NextSchedulerIsTold() {
  return {.name = "gang-next-scheduler-is-told",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                SetScheduler(world, "first");
                SubmitOutsider(world, "undecided", 1, R"({"schedulerName":"other"})");
                SubmitGang(world, 3, 3, 4);
                Once(world, IsNomination, [](World& it, const ServerChange&) {
                  const auto downtime = it.simulation.Between(std::chrono::seconds(0), std::chrono::seconds(3));
                  it.cluster.RestartScheduler(downtime);
                  it.simulation.After(downtime + std::chrono::seconds(1), [&it] { SetScheduler(it, "second"); });
                });
              },
          .steps = {Until(
                        "the next scheduler is told, or the gang has waited",
                        [](const World& world) {
                          const auto waited = world.simulation.Now() - kube::testing::Simulation::kStart;
                          return IsHeldBy(world, "second", 3) ||
                                 (waited > std::chrono::seconds(20) && Runs(world, kGang, 3));
                        },
                        [](World& world) { SubmitOutsider(world, "late", 5); }),
                    Until(
                        "an outsider waits",
                        [](const World& world) {
                          const Json* pod = world.Get("pods", {kNamespace, "late"});
                          const Json* scheduled = pod ? kube::testing::ConditionOf(*pod, "PodScheduled") : nullptr;
                          return scheduled && Text(*scheduled, {"reason"}) == "Unschedulable";
                        },
                        [](World& world) { Delete(world, "pods", "undecided"); }),
                    // Where the clock jumped, its time may be over before it runs.
                    Until(
                        "the gang runs, or was rolled back",
                        [](const World& world) {
                          const Json* group = world.Get(kGroups, {kNamespace, kGang});
                          const auto attempts = group ? kube::testing::IntAt(*group, {"status", "attempts"}) : 0;
                          return attempts > 0 || Runs(world, kGang, 3);
                        },
                        AddsNode("node-9", 8)),
                    UntilRuns(3), UntilPodRuns("late")},
          .rules = {.most_members = 3}};
}

}  // namespace

std::vector<GangStory> GangProtection() {
  return {NodeCordoned(),
          OnlyNodeCordoned(),
          SchedulerRestarts(),
          OutsiderBetween(),
          OutsiderBetweenForProcessors(),
          UngatedMemberBetween(),
          HoldsForgotten(),
          NextSchedulerIsTold(),
          Pinned()};
}

}  // namespace grus::testing
