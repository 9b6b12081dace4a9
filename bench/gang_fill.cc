// SPDX-License-Identifier: Apache-2.0
// Scenarios that compare how soon all pods run: gangs against the same pods without gates.
#include <cstdio>
#include <functional>
#include <optional>

#include "bench/gang_scenarios.h"
#include "bench/gang_sides.h"
#include "bench/measure.h"
#include "bench/storm.h"

namespace bench {
namespace {

// No controller at all: what gates themselves cost. No gang of pods that are born with a gate can be faster.
Side FloorSide(const GangWorld& world, const std::string& name, bool is_nominated, std::vector<GangSize> gangs) {
  return {name, {}, [&world, is_nominated, gangs = std::move(gangs)](const std::string& ns) {
            return CreateAndLift(world, ns, gangs, is_nominated);
          }};
}

// Both ways of gangs, each beside its floor.
std::vector<Side> GangSides(const GangWorld& world, const std::vector<GangSize>& gangs) {
  return {PlainSide(world, gangs), GangSide(world, "gangs, always held", "always", gangs),
          GangSide(world, "gangs, no outsider about", "auto", gangs),
          FloorSide(world, "no controller: nominated and lifted", true, gangs),
          FloorSide(world, "no controller: lifted", false, gangs)};
}

void PrintGangSides(const std::vector<Side>& sides, double limit_held, double limit, bool has_manager_limits) {
  const Side& plain = sides[0];
  PrintSide(plain, plain, std::nullopt, false);
  PrintSide(sides[1], plain, limit_held, has_manager_limits);
  PrintSide(sides[2], plain, limit, has_manager_limits);
  PrintSide(sides[3], plain, std::nullopt, false);
  PrintSide(sides[4], plain, std::nullopt, false);
  PrintRow("gangs, always held: ratio to its floor", MedianRatio(sides[1], sides[3]), "x");
  PrintRow("gangs, no outsider about: ratio to its floor", MedianRatio(sides[2], sides[4]), "x");
}

}  // namespace

bool RunFill(const GangWorld& world, int rounds) {
  std::vector<Side> sides = GangSides(world, EqualGangs(100, 8, 1));
  if (!WarmUp(world) || !Compare(world, sides, 800, rounds, "fill")) return false;
  std::printf("\n100 gangs of 8 pods of 1 GPU on 100 nodes of 8; medians of %d rounds\n", rounds);
  PrintGangSides(sides, 1.4, 1.25, true);
  return true;
}

bool RunElastic(const GangWorld& world, int rounds) {
  const StormOptions storm{.jobs = 100, .workers = 8, .min_workers = 8, .threads = world.threads};
  const auto side = [&](const std::string& name, const std::string& controllers) {
    return Side{name, world.ManagerArguments(controllers, "auto"),
                [&world, storm](const std::string& ns) { return CreateJobs(world.client, ns, storm); }};
  };
  StormOptions gated = storm;
  gated.is_gated = true;
  Side floor{"no gangs, gates lifted as they come", world.ManagerArguments("elastic", "auto"),
             [&world, gated](const std::string& ns) {
               world.observer.Record(ns);
               const bool is_done =
                   CreateJobs(world.client, ns, gated) && LiftAsTheyCome(world, gated.jobs * gated.workers);
               world.observer.Record("");
               return is_done;
             }};
  std::vector<Side> sides = {side("jobs", "elastic"), side("jobs as gangs", "elastic,gang"), std::move(floor)};
  if (!WarmUp(world) || !Compare(world, sides, storm.jobs * (storm.workers + 1), rounds, "elastic")) return false;
  std::printf("\n100 ElasticHorovodJobs of 8 workers and a launcher on 100 nodes of 8; medians of %d rounds\n", rounds);
  PrintSide(sides[0], sides[0], std::nullopt, false);
  PrintSide(sides[1], sides[0], 1.1, false);
  PrintSide(sides[2], sides[0], std::nullopt, false);
  PrintRow("jobs as gangs: ratio to its floor", MedianRatio(sides[1], sides[2]), "x");
  return true;
}

bool RunLarge(const GangWorld& world, int rounds) {
  std::vector<Side> sides = GangSides(world, EqualGangs(1, 512, 1));
  if (!WarmUp(world) || !Compare(world, sides, 512, rounds, "large")) return false;
  std::printf("\none gang of 512 pods on 500 nodes; medians of %d rounds\n", rounds);
  PrintGangSides(sides, 1.2, 1.2, false);
  return true;
}

}  // namespace bench
