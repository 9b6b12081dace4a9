// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_queues.h"

#include <chrono>
#include <set>
#include <string>

#include "tests/campaign/queue_objects.h"

namespace grus::testing {
namespace {

// A gang of one member that only nodes of the pool accept.
void SubmitIn(World& world, const std::string& pool, const std::string& name, int gpus) {
  SubmitGroup(world, name, 1);
  SubmitSet(world, name, 1, gpus, name, R"({"nodeSelector":{"pool":")" + pool + R"("}})");
}

bool IsTold(const World& world, const std::string& gang, const std::string& words) {
  const Json* group = world.Get(kGroups, {kNamespace, gang});
  const Json* ready = group ? kube::testing::ConditionOf(*group, "Ready") : nullptr;
  return ready && Text(*ready, {"message"}).find(words) != std::string::npos;
}
bool IsToldOfKeptRoom(const World& world, const std::string& gang) {
  return IsTold(world, gang, "is kept from other gangs");
}

Act DeletesSet(const std::string& name) {
  return [name](World& world) { Delete(world, "statefulsets.apps", name); };
}

// Where the clock was set back, the small gang is older and goes first; so it does where an hour that the clock jumped
// has used up the turn of the large one.
bool RunsUnlessSmallIsOlder(const World& world) {
  const auto made = [&](const char* gang) {
    const Json* group = world.Get(kGroups, {kNamespace, gang});
    return group ? Text(*group, {"metadata", "creationTimestamp"}) : std::string();
  };
  const bool may_go_first =
      made("y-small") < made("y-large") || IsTold(world, "y-large", "is kept from other gangs and jobs again at ");
  return Runs(world, "y-large", 1) || (may_go_first && Runs(world, "y-small", 1));
}

// In two pools of one node a gang waits for the whole node. That of the pool "y" starts first, although that of "x" has
// waited longer, and nothing smaller takes its room.
GangStory ReservationInEachPool() {
  const auto prepare = [](World& world) {
    for (const char* pool : {"x", "y"}) {
      AddPool(world, pool);
      AddNodeIn(world, pool, std::string("node-") + pool, 8);
      SubmitIn(world, pool, std::string(pool) + "-runs", 4);
    }
  };
  const auto submits_large = [](World& world) {
    for (const char* pool : {"x", "y"}) SubmitIn(world, pool, std::string(pool) + "-large", 8);
  };
  const auto submits_small = [](World& world) {
    SubmitIn(world, "y", "y-small", 2);
    world.simulation.After(std::chrono::minutes(2), [&world] { DeletesSet("y-runs")(world); });
  };
  return {.name = "queue-reservation-in-each-pool",
          .prepare = prepare,
          .steps = {Until(
                        "a gang runs in each pool",
                        [](const World& world) { return Runs(world, "x-runs", 1) && Runs(world, "y-runs", 1); },
                        submits_large),
                    Until(
                        "room is kept in each pool",
                        [](const World& world) {
                          return IsToldOfKeptRoom(world, "x-large") && IsToldOfKeptRoom(world, "y-large");
                        },
                        submits_small),
                    Until("y-large runs, or a small one that is older", RunsUnlessSmallIsOlder, DeletesSet("y-large")),
                    UntilRuns(1, DeletesSet("x-runs"), "y-small"), UntilRuns(1, nullptr, "x-large")}};
}

// The nodes of the gang's members.
std::set<std::string> NodesOf(const World& world, const std::string& gang) {
  std::set<std::string> nodes;
  for (const auto& [key, pod] : world.All("pods")) {
    if (GroupOf(*pod) == gang) nodes.insert(Text(*pod, {"spec", "nodeName"}));
  }
  return nodes;
}

// What comes after the edit of the pool is spread; what runs stays.
GangStory PlacementIsEdited() {
  const auto prepare = [](World& world) {
    AddPool(world, "all");
    for (const char* node : {"node-0", "node-1"}) AddNodeIn(world, "all", node, 8);
    SubmitGang(world, 1, 1, 2, kLongTimeout, "first");
  };
  const auto edits = [](World& world) {
    EditSpec(world, kPools, "all", R"({"placement":"Spread"})");
    // Later than any fault hides the edit.
    world.simulation.After(std::chrono::minutes(12), [&world] { SubmitGang(world, 6, 6, 1); });
  };
  return {.name = "queue-placement-edited",
          .prepare = prepare,
          .steps = {UntilRuns(
                        1, [](World& world) { SubmitGang(world, 2, 2, 1, kLongTimeout, "packed"); }, "first"),
                    Until(
                        "another gang runs on the same node",
                        [](const World& world) {
                          return Runs(world, "packed", 2) && NodesOf(world, "packed") == NodesOf(world, "first");
                        },
                        edits),
                    Until("the last gang runs on both nodes", [](const World& world) {
                      return Runs(world, kGang, 6) && NodesOf(world, kGang).size() == 2;
                    })}};
}

// A limit that is set under a gang that has run for longer ends it. It stays gated when the limit is raised, and others
// get its GPUs.
GangStory RuntimeLimitIsSet() {
  const auto prepare = [](World& world) {
    AddQueue(world, "default", "{}");
    AddNodes(world, 1, 8);
    SubmitGang(world, 2, 2, 4);
  };
  const auto limits = [](World& world) {
    world.simulation.After(std::chrono::minutes(2),
                           [&world] { EditSpec(world, kQueues, "default", R"({"maximumRuntimeSeconds":60})"); });
  };
  const auto raises = [](World& world) {
    EditSpec(world, kQueues, "default", R"({"maximumRuntimeSeconds":36000})");
    SubmitGang(world, 2, 2, 4, kLongTimeout, "next");
  };
  const auto has_ended = [](const World& world) {
    if (ReasonOf(world, kGang) != "DeadlineExceeded") return false;
    for (const char* name : {"gang-0", "gang-1"}) {
      const Json* pod = world.Get("pods", {kNamespace, name});
      if (!pod || !IsGated(*pod) || kube::testing::IsBeingDeleted(*pod)) return false;
    }
    return true;
  };
  return {.name = "queue-gang-runtime-limit-set",
          .prepare = prepare,
          .steps = {UntilRuns(2, limits), Until("it has ended and is gated", has_ended, raises),
                    UntilRuns(2, nullptr, "next"), Until("it is still gated", has_ended)},
          .rules = {.may_roll_back = true}};
}

}  // namespace

std::vector<GangStory> GangQueues() { return {ReservationInEachPool(), PlacementIsEdited(), RuntimeLimitIsSet()}; }

}  // namespace grus::testing
