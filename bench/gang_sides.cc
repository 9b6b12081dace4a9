// SPDX-License-Identifier: Apache-2.0
#include "bench/gang_sides.h"

#include <cstdio>
#include <map>

#include "bench/manager_run.h"
#include "bench/measure.h"

namespace bench {
namespace {

using std::chrono::seconds;
constexpr seconds kLimit(300);

bool AllRun(const std::map<std::string, GroupState>& groups) {
  for (const auto& [name, group] : groups) {
    if (group.phase != "Running") return false;
  }
  return true;
}

void TellOfGroups(const GangWorld& world, const std::string& ns) {
  std::map<std::string, int> count;
  std::string message;
  world.observer.WaitForGroups(
      ns,
      [&](const std::map<std::string, GroupState>& groups) {
        for (const auto& [name, group] : groups) {
          ++count[group.phase + "/" + group.reason];
          if (group.phase != "Running") message = name + ": " + group.message;
        }
        return true;
      },
      world.clock.Now());
  for (const auto& [state, n] : count) std::fprintf(stderr, "  %d PodGroups are %s\n", n, state.c_str());
  if (!message.empty()) std::fprintf(stderr, "  %s\n", message.c_str());
}

bool Measure(const GangWorld& world, Side& side, int pods, const std::string& ns, kube::TimePoint start,
             ManagerRun* manager, const ManagerCounters& before) {
  side.created.push_back(SecondsSince(start, world.clock));
  const auto wait_for = [&](std::vector<double>& times, const std::function<bool(const PodCounts&)>& reached) {
    const bool in_time = world.observer.WaitForPods(ns, reached, start + kLimit);
    times.push_back(SecondsSince(start, world.clock));
    return in_time;
  };
  const bool all_run = wait_for(side.lifted, [&](const PodCounts& c) { return c.all >= pods && c.gated == 0; }) &&
                       wait_for(side.bound, [&](const PodCounts& c) { return c.bound >= pods; }) &&
                       wait_for(side.seconds, [&](const PodCounts& c) { return c.running >= pods; });
  if (!all_run) {
    std::fprintf(stderr, "%s: %d of %d pods run after the limit\n", side.name.c_str(), world.observer.Pods(ns).running,
                 pods);
    TellOfGroups(world, ns);
    return false;
  }
  if (manager == nullptr) return true;
  const kube::TimePoint run_since = world.clock.Now();
  if (!world.observer.WaitForGroups(ns, AllRun, run_since + seconds(30))) {
    std::fprintf(stderr, "%s: all pods run, but not all PodGroups say so\n", side.name.c_str());
    TellOfGroups(world, ns);
  }
  side.status_lag.push_back(SecondsSince(run_since, world.clock));
  side.cpu.push_back(manager->process().CpuSeconds());
  side.memory.push_back(manager->process().PeakMemoryMib());
  manager->WaitUntilQuiet(seconds(1),
                          world.clock.Now() + seconds(30));  // Events are written behind the status; they count.
  side.writes.push_back((manager->Counters().writes - before.writes) / pods);
  return true;
}

bool RunSide(const GangWorld& world, Side& side, int pods, const std::string& label) {
  BenchNamespace ns(world, label);
  if (!ns.Exists()) return false;
  std::optional<ManagerRun> manager;
  ManagerCounters before;
  if (!side.manager.empty()) {
    manager.emplace(world.manager, side.manager, "build/gang-bench-" + label + ".log", world.clock);
    if (!manager->WaitUntilReady(world.clock.Now() + seconds(30))) return false;
    before = manager->Counters();
  }
  const kube::TimePoint start = world.clock.Now();
  const bool is_done =
      side.create(ns.name()) && Measure(world, side, pods, ns.name(), start, manager ? &*manager : nullptr, before);
  const bool is_right = is_done && (!side.check || side.check(ns.name()));
  manager.reset();
  return ns.Remove() && is_right;
}

}  // namespace

bool Compare(const GangWorld& world, std::vector<Side>& sides, int pods, int rounds, const std::string& label) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % sides.size();
      const std::string name = label + "-" + std::to_string(round) + "-" + std::to_string(at);
      if (!RunSide(world, sides[at], pods, name)) return false;
    }
    std::printf("round %d:", round + 1);
    for (const Side& side : sides) {
      std::printf(" %s %.2f s (%.3f),", side.name.c_str(), side.seconds.back(),
                  side.seconds.back() / sides[0].seconds.back());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return true;
}

double MedianRatio(const Side& side, const Side& base) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < side.seconds.size(); ++i) ratios.push_back(side.seconds[i] / base.seconds[i]);
  return Median(std::move(ratios));
}

void PrintSide(const Side& side, const Side& base, std::optional<double> limit, bool has_manager_limits) {
  std::printf("%-58s %9.3f s, created %.3f s, lifted %.3f s, bound %.3f s\n", (side.name + ": all pods run").c_str(),
              Median(side.seconds), Median(side.created), Median(side.lifted), Median(side.bound));
  if (limit) PrintRow(side.name + ": ratio", MedianRatio(side, base), "x", *limit);
  else if (&side != &base) PrintRow(side.name + ": ratio", MedianRatio(side, base), "x");
  if (side.manager.empty()) return;
  if (has_manager_limits) {
    PrintRow(side.name + ": grus-manager: CPU", Median(side.cpu), "s", 1.0);
    PrintRow(side.name + ": grus-manager: peak memory", Median(side.memory), "MiB", 50);
  } else {
    PrintRow(side.name + ": grus-manager: CPU", Median(side.cpu), "s");
    PrintRow(side.name + ": grus-manager: peak memory", Median(side.memory), "MiB");
  }
  PrintRow(side.name + ": grus-manager: writes a pod", Median(side.writes), "");
  PrintRow(side.name + ": last pod runs to last status says so", Median(side.status_lag), "s");
}

Side PlainSide(const GangWorld& world, std::vector<GangSize> gangs) {
  return {"plain pods", {}, [&world, gangs = std::move(gangs)](const std::string& ns) {
            return CreatePlainPods(world, ns, gangs);
          }};
}

Side GangSide(const GangWorld& world, const std::string& name, const std::string& nominations,
              std::vector<GangSize> gangs) {
  return {name, world.ManagerArguments("gang", nominations),
          [&world, gangs = std::move(gangs)](const std::string& ns) { return CreateGangs(world, ns, gangs); }};
}

bool WarmUp(const GangWorld& world) {
  Side side = PlainSide(world, EqualGangs(10, 8, 1));
  return RunSide(world, side, 80, "warm-up");
}

}  // namespace bench
