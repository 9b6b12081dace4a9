// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_lives.h"

#include <chrono>

#include "tests/campaign/elastic_workload.h"

namespace grus::testing {
namespace {

constexpr char kSets[] = "statefulsets.apps";

GangStory Fits() {
  return {.name = "gang-fits",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilRuns(4)},
          .rules = {.most_members = 4}};
}

GangStory BarePods() {
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

GangStory DoesNotFit() {
  return {.name = "gang-does-not-fit",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilWaits(4, AddsNode("node-9", 8)), UntilRuns(4)},
          .rules = {.most_members = 4}};
}

// One member's scheduler is not there, which no ledger knows.
GangStory TimesOut() {
  return {.name = "gang-times-out",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                SubmitGroup(world, kGang, 4, kShortTimeout);
                SubmitSet(world, kGang, 3, 4);
                SubmitSet(world, "odd", 1, 0, kGang, R"({"schedulerName":"other"})");
              },
          .steps = {Until(
                        "it was rolled back twice",
                        [](const World& world) {
                          const Json* group = world.Get(kGroups, {kNamespace, kGang});
                          return group && kube::testing::IntAt(*group, {"status", "attempts"}) >= 2;
                        },
                        StartOtherScheduler),
                    UntilRuns(4)},
          .rules = {.may_roll_back = true}};
}

// A pod of higher priority takes a member's place. The gang cannot go on without, gives all back, and comes back later.
GangStory Preempted() {
  return {
      .name = "gang-preempted",
      .prepare =
          [](World& world) {
            AddNodes(world, 2, 8);
            Must(world.server.Create("priorityclasses.scheduling.k8s.io",
                                     FromText(R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",
                                                   "metadata":{"name":"urgent"},"value":1000})")));
            SubmitGang(world, 4, 4, 4, kShortTimeout);
          },
      .steps = {UntilRuns(
                    4, [](World& world) { SubmitOutsider(world, "urgent", 4, R"({"priorityClassName":"urgent"})"); }),
                UntilPodRuns("urgent"), UntilWaits(4, [](World& world) { Delete(world, "pods", "urgent"); }),
                UntilRuns(4)},
      .rules = {.may_roll_back = true}};
}

GangStory MemberDies() {
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
GangStory NodeLost() {
  return {.name = "gang-loses-nodes",
          .prepare =
              [](World& world) {
                AddNodes(world, 3, 4);
                SubmitGang(world, 4, 4, 2, kShortTimeout);
              },
          .steps = {UntilRuns(4, RemoveNodeOfFirst), UntilRuns(4, RemoveNodeOfFirst),
                    UntilWaits(4, AddsNode("node-9", 4)), UntilRuns(4)},
          .rules = {.may_roll_back = true}};
}

GangStory TwoContend() {
  return {.name = "gangs-contend",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                for (const char* name : {"first", "second"}) SubmitGang(world, 4, 4, 4, kLongTimeout, name);
              },
          .steps = {Until(
                        "one runs, the other one waits",
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
                            const bool one_runs = Runs(world, "first", 4) || Runs(world, "second", 4);
                            return world.All(kGroups).size() == 1 && one_runs;
                          })},
          .rules = {.most_members = 8},
          .alike = {"first", "second"}};
}

// A job of another kind has the room.
GangStory WaitsForJob() {
  return {.name = "gang-waits-for-job",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                KeepPrinting(world);
                Submit(world, "train", R"({"workersSpec":{"minReplicas":6,"maxReplicas":6}})");
              },
          .steps = {Until(
                        "the job trains", [](const World& world) { return Trains(world, "train", 6); },
                        [](World& world) { SubmitGang(world, 2, 2, 2); }),
                    UntilWaits(2, [](World& world) { EndTraining(world, "train", "succeed"); }), UntilRuns(2)},
          .rules = {.most_members = 8}};
}

bool IsToldOfKeptRoom(const World& world) {
  const Json* group = world.Get(kGroups, {kNamespace, kGang});
  const Json* ready = group ? kube::testing::ConditionOf(*group, "Ready") : nullptr;
  return ready && Text(*ready, {"message"}).find("is kept from other gangs") != std::string::npos;
}

// What becomes free is kept for a gang that waits, while a job would grow and small gangs would start there.
GangStory RoomIsKept() {
  Step kept = Until("room is kept for the gang", IsToldOfKeptRoom, [](World& world) {
    world.simulation.After(std::chrono::minutes(1), [&world] { Delete(world, kSets, "second"); });
    for (const char* name : {"small-0", "small-1", "small-2"}) {
      world.simulation.After(std::chrono::minutes(2),
                             [&world, name] { SubmitGang(world, 1, 1, 1, kLongTimeout, name); });
    }
  });
  kept.lasts = std::chrono::minutes(4);
  return {.name = "gang-room-is-kept",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                KeepPrinting(world);
                SubmitGang(world, 1, 1, 8, kLongTimeout, "second");
              },
          .steps = {UntilRuns(
                        1,
                        [](World& world) {
                          // Not before: the reservation is for the nodes that come first, of those alike.
                          for (const char* node : {"node-1", "node-2"}) AddsNode(node, 8)(world);
                          Submit(world, "train",
                                 R"({"workersSpec":{"minReplicas":4,"maxReplicas":24,"gpusPerWorker":1}})");
                        },
                        "second"),
                    Until(
                        "the job trains on what is free", [](const World& world) { return Trains(world, "train", 16); },
                        [](World& world) { SubmitGang(world, 2, 2, 8); }),
                    std::move(kept),
                    Until(
                        "nobody has taken it", [](const World& world) { return WaitsWhole(world, kGang, 2); },
                        [](World& world) {
                          EndTraining(world, "train", "succeed");
                          // Where the clock was set back, the small ones are older.
                          for (const char* node : {"node-8", "node-9"}) AddsNode(node, 8)(world);
                        }),
                    UntilRuns(2), Until("the small ones run", [](const World& world) {
                      return Runs(world, "small-0", 1) && Runs(world, "small-1", 1) && Runs(world, "small-2", 1);
                    })}};
}

GangStory Extras() {
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
GangStory MinimumChanged() {
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

GangStory DeletedAndMadeAgain() {
  return {.name = "gang-deleted-and-made-again",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilWaits(4, [](World& world) { Delete(world, kGroups, kGang); }),
                    Until(
                        "it is gone", [](const World& world) { return world.All(kGroups).empty(); },
                        [](World& world) {
                          AddNode(world, "node-9", 4);
                          SubmitGroup(world, kGang, 3);
                        }),
                    UntilRuns(3)},
          .rules = {.most_members = 4}};
}

GangStory TwoManagers() {
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

}  // namespace

std::vector<GangStory> GangLives() {
  return {Fits(),       BarePods(),       DoesNotFit(),          TimesOut(),    Preempted(),
          MemberDies(), NodeLost(),       TwoContend(),          WaitsForJob(), RoomIsKept(),
          Extras(),     MinimumChanged(), DeletedAndMadeAgain(), TwoManagers()};
}

}  // namespace grus::testing
