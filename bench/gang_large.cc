// SPDX-License-Identifier: Apache-2.0
// Scenarios of a cluster of 500 nodes of 8 GPUs: how soon a gang that cannot start says so, and what grus-manager holds
// in memory.
#include <cstdio>
#include <optional>

#include "bench/gang_scenarios.h"
#include "bench/manager_run.h"

namespace bench {
namespace {

using std::chrono::seconds;
constexpr int kNodes = 500, kGpusOfNode = 8;

// From before the create of the last pod of `gang` to the watch event of its condition; nullopt: it did not come.
std::optional<double> TimeToRefusal(const GangWorld& world, const std::string& ns, const GangSize& gang,
                                    const std::string& reason) {
  GangSize all_but_last = gang;
  --all_but_last.members;
  const kube::Status made = CreateObject(world.client, kube::KindOf<api::PodGroup>(), ns, MakePodGroup(gang, 60));
  if (!made) std::fprintf(stderr, "%s\n", made.error().message().c_str());
  if (!made || !CreateMembers(world, ns, {all_but_last})) return std::nullopt;
  const std::string last = gang.name + "-" + std::to_string(gang.members - 1);
  const kube::TimePoint start = world.clock.Now();
  const kube::Status closed =
      CreateObject(world.client, kube::KindOf<kube::Pod>(), ns, MakeGangPod(last, gang.name, gang.units, true));
  const auto is_refused = [&](const std::map<std::string, GroupState>& groups) {
    const auto found = groups.find(gang.name);
    return found != groups.end() && found->second.reason == reason;
  };
  if (closed && world.observer.WaitForGroups(ns, is_refused, start + seconds(30)))
    return SecondsSince(start, world.clock);
  const GroupState state = world.observer.Group(ns, gang.name);
  std::fprintf(stderr, "%s of %d x %d GPUs did not come to %s: phase %s, reason %s: %s\n", gang.name.c_str(),
               gang.members, gang.units, reason.c_str(), state.phase.c_str(), state.reason.c_str(),
               state.message.c_str());
  return std::nullopt;
}

bool RefuseOnce(const GangWorld& world, int round, std::vector<double>& too_many, std::vector<double>& too_big,
                std::vector<double>& no_room) {
  const std::string label = "cannot-fit-" + std::to_string(round);
  BenchNamespace ns(world, label);
  if (!ns.Exists()) return false;
  std::optional<ManagerRun> manager(std::in_place, world.manager, world.ManagerArguments("gang", "auto"),
                                    "build/gang-bench-" + label + ".log", world.clock);
  if (!manager->WaitUntilReady(world.clock.Now() + seconds(30))) return false;
  const auto many = TimeToRefusal(world, ns.name(), {"too-many", kNodes + 1, kGpusOfNode}, "CannotFit");
  const auto big = TimeToRefusal(world, ns.name(), {"too-big", 16, kGpusOfNode + 1}, "CannotFit");
  const GangSize first{"first", kNodes * 3 / 5, kGpusOfNode};
  if (!CreateGangs(world, ns.name(), {first})) return false;
  const auto runs = [&](const PodCounts& counts) { return counts.running >= first.members; };
  if (!world.observer.WaitForPods(ns.name(), runs, world.clock.Now() + seconds(120))) {
    std::fprintf(stderr, "the gang that fits beside them does not run: %d of %d\n",
                 world.observer.Pods(ns.name()).running, first.members);
    return false;
  }
  const auto room = TimeToRefusal(world, ns.name(), {"second", first.members, kGpusOfNode}, "WaitingForRoom");
  manager.reset();
  if (!many || !big || !room) return false;
  too_many.push_back(*many);
  too_big.push_back(*big);
  no_room.push_back(*room);
  return ns.Remove();
}

}  // namespace

bool RunCannotFit(const GangWorld& world, int rounds) {
  std::vector<double> too_many, too_big, no_room;
  for (int round = 0; round < rounds; ++round) {
    if (!RefuseOnce(world, round, too_many, too_big, no_room)) return false;
    std::printf("round %d: %.3f s, %.3f s, %.3f s\n", round + 1, too_many.back(), too_big.back(), no_room.back());
    std::fflush(stdout);
  }
  std::printf(
      "\nfrom the last pod of a gang that cannot start to the status that says so, 500 nodes; medians of %d rounds\n",
      rounds);
  PrintRow("501 members of 8 GPUs: CannotFit", Median(too_many), "s", 1);
  PrintRow("16 members of 9 GPUs: CannotFit", Median(too_big), "s", 1);
  PrintRow("300 members of 8 GPUs beside 300 that run: WaitingForRoom", Median(no_room), "s", 1);
  return true;
}

bool RunMemory(const GangWorld& world) {
  const std::vector<GangSize> pods = EqualGangs(kNodes, kGpusOfNode, 1);
  BenchNamespace ns(world, "memory");
  if (!ns.Exists() || !CreatePlainPods(world, ns.name(), pods)) return false;
  const auto all_run = [&](const PodCounts& counts) { return counts.running >= TotalMembers(pods); };
  if (!world.observer.WaitForPods(ns.name(), all_run, world.clock.Now() + std::chrono::minutes(10))) {
    std::fprintf(stderr, "%d of %d pods run after the limit\n", world.observer.Pods(ns.name()).running,
                 TotalMembers(pods));
    return false;
  }
  ManagerRun manager(world.manager, world.ManagerArguments("elastic,gang", "auto"), "build/gang-bench-memory.log",
                     world.clock);
  if (!manager.WaitUntilReady(world.clock.Now() + seconds(60))) return false;
  manager.WaitUntilQuiet(seconds(5), world.clock.Now() + seconds(60));
  std::printf("\ngrus-manager with all controllers beside %d plain pods on %d nodes\n", TotalMembers(pods), kNodes);
  PrintRow("memory, settled", manager.process().MemoryMib(), "MiB", 60);
  PrintRow("memory, peak", manager.process().PeakMemoryMib(), "MiB");
  PrintRow("CPU until settled", manager.process().CpuSeconds(), "s");
  return true;
}

}  // namespace bench
