// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_pools.h"

#include <chrono>

#include "tests/campaign/queue_objects.h"

namespace grus::testing {
namespace {

// A gang of one member that only nodes of the pool accept.
void SubmitIn(World& world, const std::string& pool, const std::string& name, int gpus) {
  SubmitGroup(world, name, 1);
  SubmitSet(world, name, 1, gpus, name, R"({"nodeSelector":{"pool":")" + pool + R"("}})");
}

bool IsToldOfKeptRoom(const World& world, const std::string& gang) {
  const Json* group = world.Get(kGroups, {kNamespace, gang});
  const Json* ready = group ? kube::testing::ConditionOf(*group, "Ready") : nullptr;
  return ready && Text(*ready, {"message"}).find("is kept from other gangs") != std::string::npos;
}

Act DeletesSet(const std::string& name) {
  return [name](World& world) { Delete(world, "statefulsets.apps", name); };
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
                    UntilRuns(1, DeletesSet("y-large"), "y-large"), UntilRuns(1, DeletesSet("x-runs"), "y-small"),
                    UntilRuns(1, nullptr, "x-large")}};
}

bool AreApart(const World& world, const std::string& gang) {
  const Json* first = world.Get("pods", {kNamespace, gang + "-0"});
  const Json* second = world.Get("pods", {kNamespace, gang + "-1"});
  return first && second && Text(*first, {"spec", "nodeName"}) != Text(*second, {"spec", "nodeName"});
}

// While a gang waits, its pool is told to spread what it packed.
GangStory PlacementIsEdited() {
  const auto prepare = [](World& world) {
    AddPool(world, "all");
    for (const char* node : {"node-0", "node-1"}) AddNodeIn(world, "all", node, 4);
    SubmitGang(world, 2, 2, 4, kLongTimeout, "filler");
  };
  const auto edits = [](World& world) {
    EditSpec(world, kPools, "all", R"({"placement":"Spread"})");
    world.simulation.After(std::chrono::minutes(1), [&world] { DeletesSet("filler")(world); });
  };
  return {.name = "queue-placement-edited",
          .prepare = prepare,
          .steps = {UntilRuns(
                        2, [](World& world) { SubmitGang(world, 2, 2, 1); }, "filler"),
                    UntilWaits(2, edits), Until("it runs on two nodes", [](const World& world) {
                      return Runs(world, kGang, 2) && AreApart(world, kGang);
                    })}};
}

}  // namespace

std::vector<GangStory> GangPools() { return {ReservationInEachPool(), PlacementIsEdited()}; }

}  // namespace grus::testing
