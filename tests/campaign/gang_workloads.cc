// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_workloads.h"

#include <chrono>
#include <memory>

#include "controllers/cluster/lease_watch.h"
#include "controllers/gang/gang_view.h"
#include "tests/campaign/elastic_workload.h"
#include "tests/campaign/gang_workload.h"

namespace grus::testing {
namespace {

using Traits = GangWorkload::Traits;
using kube::testing::ServerChange;
using Act = std::function<void(World&)>;

constexpr char kGang[] = "gang";
constexpr char kSets[] = "statefulsets.apps", kLeases[] = "leases.coordination.k8s.io";

void AddNodes(World& world, int nodes, int gpus) {
  for (int i = 0; i < nodes; ++i) AddNode(world, "node-" + std::to_string(i), gpus);
}

// A gang of one StatefulSet.
void SubmitGang(World& world, int min_member, int replicas, int gpus, int seconds = kLongTimeout,
                const std::string& name = kGang) {
  SubmitGroup(world, name, min_member, seconds);
  SubmitSet(world, name, replicas, gpus);
}

Act AddsNode(std::string name, int gpus) {
  return [=](World& world) { AddNode(world, name, gpus); };
}

Step UntilRuns(int members, Act act = nullptr, const std::string& gang = kGang) {
  return Until(gang + " runs with " + std::to_string(members),
               [=](const World& world) { return Runs(world, gang, members); }, std::move(act));
}
Step UntilWaits(int members, Act act, const std::string& gang = kGang) {
  return Until(gang + " waits, none of it started",
               [=](const World& world) { return WaitsWhole(world, gang, members); }, std::move(act));
}
Step UntilPodRuns(const std::string& pod, Act act = nullptr) {
  return Until(pod + " runs", [=](const World& world) { return IsRunning(world, pod); }, std::move(act));
}

Traits Fits() {
  return {.name = "gang-fits",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilRuns(4)},
          .rules = {.most_members = 4}};
}

Traits BarePods() {
  return {.name = "gang-of-bare-pods",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                for (const char* name : {"a", "b", "c"}) SubmitMember(world, name, kGang, 4);
                SubmitGroup(world, kGang, 3);
              },
          .steps = {UntilRuns(3, [](World& world) { EndWork(world, kGang); }),
                    Until("it is finished",
                          [](const World& world) {
                            const Json* group = world.Get(kGroups, {kNamespace, kGang});
                            return group && Text(*group, {"status", "phase"}) == "Finished";
                          })},
          .rules = {.most_members = 3}};
}

Traits DoesNotFit() {
  return {.name = "gang-does-not-fit",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilWaits(4, AddsNode("node-9", 8)), UntilRuns(4)},
          .rules = {.most_members = 4}};
}

// A scheduler that grus knows nothing of: from now on it binds what is its own, until the gang runs.
void StartOtherScheduler(World& world) {
  if (Runs(world, kGang, 4)) return;
  for (const auto& pod : world.server.List("pods", kNamespace)) {
    const bool is_ours = Text(*pod, {"spec", "schedulerName"}) == "other" && Text(*pod, {"spec", "nodeName"}).empty();
    if (is_ours && !IsGated(*pod) && !kube::testing::IsBeingDeleted(*pod)) {
      (void)world.server.Bind({kNamespace, Text(*pod, {"metadata", "name"})}, "node-0");
    }
  }
  world.simulation.After(std::chrono::milliseconds(500), [&world] { StartOtherScheduler(world); });
}

// One member's scheduler is not there, which no ledger knows.
Traits TimesOut() {
  return {.name = "gang-times-out",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                SubmitGroup(world, kGang, 4, kShortTimeout);
                SubmitSet(world, kGang, 3, 4);
                SubmitSet(world, "odd", 1, 0, kGang, R"({"schedulerName":"other"})");
              },
          .steps = {Until("it was rolled back twice",
                          [](const World& world) {
                            const Json* group = world.Get(kGroups, {kNamespace, kGang});
                            return group && kube::testing::IntAt(*group, {"status", "attempts"}) >= 2;
                          },
                          StartOtherScheduler),
                    UntilRuns(4)},
          .rules = {.may_roll_back = true}};
}

// A pod of higher priority takes a member's place. The gang cannot go on without, gives all back, and comes back later.
Traits Preempted() {
  return {.name = "gang-preempted",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                Must(world.server.Create("priorityclasses.scheduling.k8s.io",
                                         Parse(R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",
                                                   "metadata":{"name":"urgent"},"value":1000})"),
                                         "kubectl"));
                SubmitGang(world, 4, 4, 4, kShortTimeout);
              },
          .steps = {UntilRuns(4, [](World& world) { SubmitOutsider(world, "urgent", 4, R"({"priorityClassName":"urgent"})"); }),
                    UntilPodRuns("urgent"), UntilWaits(4, [](World& world) { Delete(world, "pods", "urgent"); }),
                    UntilRuns(4)},
          .rules = {.may_roll_back = true}};
}

Traits MemberDies() {
  return {.name = "gang-member-dies",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilRuns(4, [](World& world) { Delete(world, "pods", "gang-1"); }),
                    Until("another one is there",
                          [](const World& world) {
                            const Json* pod = world.Get("pods", {kNamespace, "gang-1"});
                            return pod && !kube::testing::IsBeingDeleted(*pod) && Runs(world, kGang, 4);
                          })},
          .rules = {.most_members = 5}};
}

void RemoveNodeOfFirst(World& world) {
  const auto pod = world.server.Get("pods", {kNamespace, "gang-0"});
  if (pod) world.cluster.RemoveNode(Text(*pod, {"spec", "nodeName"}));
}

// There is a spare node for the first that is lost, and none for the second.
Traits NodeLost() {
  return {.name = "gang-loses-nodes",
          .prepare =
              [](World& world) {
                AddNodes(world, 3, 4);
                SubmitGang(world, 4, 4, 2, kShortTimeout);
              },
          .steps = {UntilRuns(4, RemoveNodeOfFirst), UntilRuns(4, RemoveNodeOfFirst), UntilWaits(4, AddsNode("node-9", 4)),
                    UntilRuns(4)},
          .rules = {.may_roll_back = true}};
}

Traits TwoContend() {
  return {.name = "gangs-contend",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                for (const char* name : {"first", "second"}) SubmitGang(world, 4, 4, 4, kLongTimeout, name);
              },
          .steps = {Until("one runs, the other one waits",
                          [](const World& world) {
                            return (Runs(world, "first", 4) && WaitsWhole(world, "second", 4)) ||
                                   (Runs(world, "second", 4) && WaitsWhole(world, "first", 4));
                          },
                          [](World& world) {
                            const std::string winner = Runs(world, "first", 4) ? "first" : "second";
                            Delete(world, kSets, winner);
                            Delete(world, kGroups, winner);
                          }),
                    Until("then the other one runs",
                          [](const World& world) {
                            return world.All(kGroups).size() == 1 && (Runs(world, "first", 4) || Runs(world, "second", 4));
                          })},
          .rules = {.most_members = 8},
          .alike = {"first", "second"}};
}

// An outsider that came long before, so that nodes are held by nominations; then the gang.
Act WithOutsider(int nodes) {
  return [=](World& world) {
    AddNodes(world, nodes, 8);
    SubmitOutsider(world, "early", 1);
  };
}
Step UntilOutsiderRuns(int seconds = kLongTimeout) {
  return UntilPodRuns("early", [=](World& world) { SubmitGang(world, 3, 3, 4, seconds); });
}

Traits SchedulerRestarts() {
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

Traits NodeCordoned() {
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
Traits OnlyNodeCordoned() {
  return {.name = "gang-only-node-cordoned",
          .prepare =
              [](World& world) {
                WithOutsider(2)(world);
                Once(world, IsNomination, [](World& it, const ServerChange&) { it.cluster.SetCordoned("node-0", true); });
              },
          .steps = {UntilOutsiderRuns(kShortTimeout),
                    Until("it runs or waits, whole",
                          [](const World& world) { return Runs(world, kGang, 3) || WaitsWhole(world, kGang, 3); },
                          [](World& world) { world.cluster.SetCordoned("node-0", false); }),
                    UntilRuns(3)},
          .rules = {.may_roll_back = true}};
}

// The last place goes to the outsider or to the gang, and then there is room for both.
Traits OutsiderBetween() {
  return {.name = "gang-outsider-between",
          .prepare =
              [](World& world) {
                WithOutsider(2)(world);
                Once(world, [](const ServerChange& change) { return IsNomination(change) || IsLift(change); },
                     [](World& it, const ServerChange&) { SubmitOutsider(it, "late", 4); });
              },
          .steps = {UntilOutsiderRuns(),
                    Until("one has the place, the other one waits",
                          [](const World& world) {
                            const bool has_late = world.Get("pods", {kNamespace, "late"}) != nullptr;
                            const bool waits = IsRunning(world, "late") && WaitsWhole(world, kGang, 3);
                            return has_late && (Runs(world, kGang, 3) || waits);
                          },
                          AddsNode("node-9", 8)),
                    Until("both run", [](const World& world) { return Runs(world, kGang, 3) && IsRunning(world, "late"); })},
          .rules = {.most_members = 3}};
}

// A scheduler that starts anew has forgotten what it held for gated pods: now an outsider may get in between.
Traits HoldsForgotten() {
  Traits traits = OutsiderBetween();
  traits.name = "gang-holds-forgotten";
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
Traits Pinned() {
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
  Json lease = Parse(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{},"spec":{}})");
  const auto before = world.server.Get(kLeases, key);
  if (before) lease = *before;
  lease["metadata"]["name"] = key.name;
  lease["metadata"]["namespace"] = key.ns;
  lease["spec"]["holderIdentity"] = holder;
  Must(before ? world.server.Update(kLeases, std::move(lease), "kube-scheduler")
              : world.server.Create(kLeases, std::move(lease), "kube-scheduler"));
}

bool IsHeldBy(const World& world, const std::string& scheduler, int members) {
  int told = 0;
  for (const auto& [key, pod] : world.All("pods")) {
    told += GroupOf(*pod) == kGang && IsGated(*pod) && !Text(*pod, {"status", "nominatedNodeName"}).empty() &&
            Text(*pod, {"metadata", "annotations", kGangNominatedToAnnotation}) == scheduler;
  }
  return told == members;
}

// While a gang waits for what becomes of a foreign pod, its nodes are held: by the next scheduler too, once it is told.
Traits NextSchedulerIsTold() {
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
          .steps = {Until("the next scheduler is told", [](const World& world) { return IsHeldBy(world, "second", 3); },
                          [](World& world) { SubmitOutsider(world, "late", 5); }),
                    Until("an outsider waits",
                          [](const World& world) {
                            const Json* pod = world.Get("pods", {kNamespace, "late"});
                            const Json* scheduled = pod ? kube::testing::ConditionOf(*pod, "PodScheduled") : nullptr;
                            return scheduled && Text(*scheduled, {"reason"}) == "Unschedulable";
                          },
                          [](World& world) { Delete(world, "pods", "undecided"); }),
                    // Where the clock jumped, its time may be over before it runs.
                    Until("the gang runs, or was rolled back",
                          [](const World& world) {
                            const Json* group = world.Get(kGroups, {kNamespace, kGang});
                            const bool is_rolled_back = group && kube::testing::IntAt(*group, {"status", "attempts"}) > 0;
                            return is_rolled_back || Runs(world, kGang, 3);
                          },
                          AddsNode("node-9", 8)),
                    UntilRuns(3), UntilPodRuns("late")},
          .rules = {.most_members = 3}};
}

// A job of another kind has the room.
Traits WaitsForJob() {
  return {.name = "gang-waits-for-job",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                Submit(world, "train", R"({"workersSpec":{"minReplicas":6,"maxReplicas":6}})");
              },
          .steps = {Until("the job trains", [](const World& world) { return Trains(world, "train", 6); },
                          [](World& world) { SubmitGang(world, 2, 2, 2); }),
                    UntilWaits(2, [](World& world) { EndTraining(world, "train", "succeed"); }), UntilRuns(2)},
          .rules = {.most_members = 8}};
}

Traits Extras() {
  return {.name = "gang-extras",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGang(world, 2, 4, 4);
              },
          .steps = {UntilRuns(2, AddsNode("node-8", 4)), UntilRuns(3, AddsNode("node-9", 4)), UntilRuns(4)},
          .rules = {.most_members = 4}};
}

Act SetsMinimum(int min_member) {
  return [=](World& world) { EditSpec(world, kGroups, kGang, R"({"minMember":)" + std::to_string(min_member) + "}"); };
}

// Lowered while it waits; raised while it runs, when a node comes that has room for the rest; lowered while it runs.
Traits MinimumChanged() {
  return {.name = "gang-minimum-changed",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGang(world, 4, 4, 4, kShortTimeout);
              },
          .steps = {UntilWaits(4, SetsMinimum(2)),
                    UntilRuns(2,
                              [](World& world) {
                                SetsMinimum(4)(world);
                                AddsNode("node-9", 8)(world);
                              }),
                    UntilRuns(4, SetsMinimum(3)), UntilRuns(4)},
          .rules = {.may_roll_back = true}};
}

Traits DeletedAndMadeAgain() {
  return {.name = "gang-deleted-and-made-again",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilWaits(4, [](World& world) { Delete(world, kGroups, kGang); }),
                    Until("it is gone", [](const World& world) { return world.All(kGroups).empty(); },
                          [](World& world) {
                            AddNode(world, "node-9", 4);
                            SubmitGroup(world, kGang, 3);
                          }),
                    UntilRuns(3)},
          .rules = {.most_members = 4}};
}

Traits TwoManagers() {
  return {.name = "gang-two-managers",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGang(world, 2, 4, 4);
              },
          .steps = {UntilRuns(2, AddsNode("node-9", 8)),
                    UntilRuns(4, [](World& world) { Delete(world, "pods", "gang-1"); }), UntilRuns(4)},
          .rules = {.most_members = 5},
          .processes = 2,
          .uses_leases = true};
}

const auto kStories = {Fits,           BarePods,            DoesNotFit,        TimesOut,        Preempted,
                       MemberDies,     NodeLost,            TwoContend,        WaitsForJob,     Extras,
                       NodeCordoned,   OnlyNodeCordoned,    SchedulerRestarts, OutsiderBetween, HoldsForgotten,
                       MinimumChanged, DeletedAndMadeAgain, TwoManagers,       NextSchedulerIsTold,
                       Pinned};

}  // namespace

kube::testing::Workloads GangWorkloads(kube::Duration slack, Nominations nominations) {
  kube::testing::Workloads workloads;
  for (const auto& make : kStories) {
    Traits traits = make();
    traits.rules.slack = slack;
    if (nominations != Nominations::kAuto) traits.nominations = nominations;
    workloads.push_back(std::make_unique<GangWorkload>(std::move(traits)));
  }
  return workloads;
}

}  // namespace grus::testing
