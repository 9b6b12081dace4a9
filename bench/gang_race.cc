// SPDX-License-Identifier: Apache-2.0
// Random rounds of gangs and outsiders, first with nominations and then without: with them no gang may run in part, and
// without them some must, or the rounds prove nothing.
#include <cstdio>
#include <tuple>

#include "bench/gang_round.h"
#include "bench/gang_scenarios.h"
#include "bench/manager_run.h"
#include "bench/measure.h"
#include "bench/race_draws.h"
#include "bench/race_objects.h"
#include "clientlib/model/core_v1.h"

namespace bench {
namespace {

using std::chrono::seconds;

kube::Result<FreeUnits> ReadNodes(kube::Client& client, const char* resource) {
  auto nodes = client.List(kube::KindOf<kube::Node>(), "");
  if (!nodes) return std::move(nodes).error();
  FreeUnits free;
  for (const auto& object : nodes->items) {
    const auto& node = static_cast<const kube::Node&>(*object);
    const kube::Quantity* units = kube::FindResource(node.status.allocatable, resource);
    if (units != nullptr) free[node.metadata.name] = static_cast<int>(units->Value());
  }
  return free;
}

struct Tally {
  int of[kEndings] = {};
  int rolled_back = 0, failed_jobs = 0, failed_pods = 0;  // Of gangs that are Jobs.
  double seconds = 0;
  int operator[](Ending ending) const { return of[static_cast<int>(ending)]; }
  void Add(const RoundReport& report) {
    ++of[static_cast<int>(report.ending)];
    rolled_back += report.is_rolled_back ? 1 : 0;
    failed_jobs += report.has_job_failed ? 1 : 0;
    failed_pods += report.failed_pods;
  }
};

void PrintTally(const std::string& name, const Tally& tally) {
  std::printf("%-15s", name.c_str());
  for (int i = 0; i < kEndings; ++i) std::printf(" %s %d,", ToString(static_cast<Ending>(i)), tally.of[i]);
  std::printf("\n");
  std::fflush(stdout);
}

// An outsider is about from the start, so that the manager knows of competition before the first round.
bool CreateResident(const GangWorld& world, RaceKind kind, const std::string& ns, FreeUnits& free) {
  world.observer.Record(ns);
  kube::Status made;
  if (kind == RaceKind::kUngated) {
    made = CreateObject(world.client, kube::KindOf<api::PodGroup>(), ns, MakePodGroup({"others", 1}, 60));
  }
  if (made) {
    made = CreateObject(world.client, kube::KindOf<kube::Pod>(), ns,
                        kind == RaceKind::kUngated ? MakeUngatedMember("resident", "others", 1, ResourceOf(kind))
                                                   : MakeGangPod("resident", "others", 1, false, ResourceOf(kind)));
  }
  if (!made) std::fprintf(stderr, "%s\n", made.error().message().c_str());
  const kube::TimePoint until = world.clock.Now() + seconds(30);
  while (const auto event = made ? world.observer.Next(until) : std::nullopt) {
    if (!event->pod || event->pod->status.phase != "Running") continue;
    --free[std::string(event->pod->spec.node_name)];
    return true;
  }
  return false;
}

bool RunMode(const GangWorld& world, const RaceOptions& options, RaceKind kind, const std::string& nominations,
             Tally& tally) {
  const std::string name = std::string(ToString(kind)) + "-" + nominations;
  kube::Status prepared = PrepareNodes(world, ResourceOf(kind));
  if (prepared && kind == RaceKind::kPreemptor) prepared = CreatePriorityClasses(world);
  if (!prepared) {
    std::fprintf(stderr, "%s\n", prepared.error().message().c_str());
    return false;
  }
  BenchNamespace ns(world, "race-" + name), resident(world, "resident-" + name);
  auto free = ReadNodes(world.client, ResourceOf(kind));
  if (!ns.Exists() || !resident.Exists() || !free || !CreateResident(world, kind, resident.name(), *free)) return false;
  ManagerRun manager(world.manager, world.ManagerArguments("gang", nominations),
                     "build/gang-bench-race-" + name + ".log", world.clock);
  if (!manager.WaitUntilReady(world.clock.Now() + seconds(30))) return false;
  const kube::TimePoint start = world.clock.Now();
  for (int round = 0; round < options.rounds; ++round) {
    RoundPlan plan = DrawRound(options.seed, kind, round, *free);
    if (nominations == "never") DropNominations(plan);
    const RoundReport report = PlayRound(world, ns.name(), plan, *free);
    tally.Add(report);
    const bool is_good =
        (report.ending == Ending::kWhole || report.ending == Ending::kWaiting) && report.failed_pods == 0;
    if (!is_good || options.is_verbose) {
      std::printf("%s, seed %llu, round %d: %s: %s\n  %s\n", name.c_str(),
                  static_cast<unsigned long long>(options.seed), round, ToString(report.ending), report.detail.c_str(),
                  Describe(plan).c_str());
      for (const std::string& line : report.history) std::printf("    %s\n", line.c_str());
    }
    if ((round + 1) % 50 == 0 || round + 1 == options.rounds) PrintTally(name, tally);
    std::fflush(stdout);
    if (report.ending == Ending::kBroken || !manager.IsRunning()) {
      std::fprintf(stderr, "round %d: the bench cannot go on: %s\n", round, report.detail.c_str());
      return false;
    }
  }
  tally.seconds = SecondsSince(start, world.clock);
  return true;
}

void PrintJobs(const std::string& nominations, const Tally& tally) {
  PrintRow("Jobs rolled back, nominations " + nominations, tally.rolled_back, "");
  PrintRow("Jobs that failed, nominations " + nominations, tally.failed_jobs, "", 0);
  PrintRow("pods that Jobs count as failed, nominations " + nominations, tally.failed_pods, "", 0);
}

bool RunKind(const GangWorld& world, const RaceOptions& options, RaceKind kind) {
  Tally held, open;
  const bool plays_held = options.only != "never", plays_open = options.only != "auto";
  bool is_ok = true;
  if (plays_held) is_ok = RunMode(world, options, kind, "auto", held);
  if (plays_open) is_ok = RunMode(world, options, kind, "never", open) && is_ok;
  std::printf("\n%d rounds of a gang and 1 to 6 outsiders that come while it starts, kind %s, seed %llu\n",
              options.rounds, ToString(kind), static_cast<unsigned long long>(options.seed));
  for (const auto& [name, is_played, tally] :
       {std::tuple("auto", plays_held, &held), std::tuple("never", plays_open, &open)}) {
    if (!is_played) continue;
    PrintRow(std::string("seconds a round, nominations ") + name, tally->seconds / options.rounds, "s");
    if (kind == RaceKind::kJobs) PrintJobs(name, *tally);
  }
  if (plays_held) {
    PrintRow("partial gangs, nominations auto", held[Ending::kPartial], "", 0);
    PrintRow("stranded, stuck or with a wrong status, nominations auto",
             held[Ending::kStranded] + held[Ending::kStuck] + held[Ending::kWrongStatus], "", 0);
  }
  if (plays_open) {
    std::printf("%-58s %9d %-8s at least %6d    %s\n", "partial gangs, nominations never", open[Ending::kPartial], "",
                1, open[Ending::kPartial] > 0 ? "met" : "NOT MET");
  }
  return is_ok;
}

}  // namespace

bool RunRaces(const GangWorld& world, const RaceOptions& options) {
  bool is_ok = true;
  for (const RaceKind kind : options.kinds) is_ok = RunKind(world, options, kind) && is_ok;
  return is_ok;
}

}  // namespace bench
