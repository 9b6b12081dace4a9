// SPDX-License-Identifier: Apache-2.0
// Gangs on a real scheduler: how much later they run than plain pods, how soon they say why they wait, and whether any
// gang ever runs in part.
//
// Usage: gang_bench KUBECONFIG GRUS_MANAGER SCENARIO... [options]; see Usage() below.
// The cluster of KUBECONFIG needs the CRDs, the nodes that the scenario names (gang_scenarios.h), and no other load.
// Exit status 1: some part did not finish.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/gang_scenarios.h"
#include "clientlib/client/connection.h"

namespace bench {
namespace {

struct Arguments {
  std::string kubeconfig, manager;
  std::vector<std::string> scenarios;
  std::optional<int> rounds;
  int threads = 8;
  RaceOptions race;
  QueueOptions queue;
};

int Usage() {
  std::fprintf(stderr,
               "usage: gang_bench KUBECONFIG GRUS_MANAGER SCENARIO... [options]\n"
               "scenarios: fill, elastic, large, cannot-fit, memory, rounds, rollbacks, knavigator,\n"
               "           parts\n"
               "  --rounds N           of each scenario that has some (300 of rounds, 100 of rollbacks, else 3)\n"
               "  --threads N          that create objects (8)\n"
               "  --seed N             of rounds (1)\n"
               "  --nominations WHEN   rounds: auto or never alone; knavigator: auto (the default), always or never\n"
               "  --kind KIND          rounds: nvidia (the default), amd, cpu, ungated, preemptor, jobs, or all;\n"
               "                       may be repeated\n"
               "  --run-seconds N      of each gang of knavigator (30)\n"
               "  --verbose            rounds: print what happened in each\n");
  return 2;
}

bool AddKind(const std::string& name, std::vector<RaceKind>& kinds) {
  if (name == "all") {
    kinds = AllRaceKinds();
    return true;
  }
  const std::optional<RaceKind> kind = ParseRaceKind(name);
  if (kind) kinds.push_back(*kind);
  return kind.has_value();
}

bool Parse(int argc, char** argv, Arguments& args) {
  if (argc < 4) return false;
  args.kubeconfig = argv[1];
  args.manager = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      args.scenarios.push_back(name);
    } else if (name == "--verbose") {
      args.race.is_verbose = true;
    } else if (++i == argc) {
      return false;
    } else if (name == "--rounds") {
      args.rounds = std::atoi(argv[i]);
    } else if (name == "--threads") {
      args.threads = std::atoi(argv[i]);
    } else if (name == "--seed") {
      args.race.seed = std::strtoull(argv[i], nullptr, 10);
    } else if (name == "--kind") {
      if (!AddKind(argv[i], args.race.kinds)) return false;
    } else if (name == "--nominations") {
      args.race.only = args.queue.nominations = argv[i];
    } else if (name == "--run-seconds") {
      args.queue.run_seconds = std::atoi(argv[i]);
    } else {
      return false;
    }
  }
  if (args.race.kinds.empty()) args.race.kinds = {RaceKind::kNvidia};
  return args.rounds.value_or(1) > 0 && args.threads > 0 && !args.scenarios.empty();
}

// nullopt: there is no such scenario.
std::optional<bool> RunScenario(const std::string& name, const GangWorld& world, const Arguments& args) {
  const int rounds = args.rounds.value_or(3);
  if (name == "fill") return RunFill(world, rounds);
  if (name == "elastic") return RunElastic(world, rounds);
  if (name == "large") return RunLarge(world, rounds);
  if (name == "cannot-fit") return RunCannotFit(world, rounds);
  if (name == "memory") return RunMemory(world);
  if (name == "parts") return RunParts(world, rounds);
  if (name == "knavigator") return RunKnavigator(world, args.queue);
  if (name == "rollbacks") return RunRollbacks(world, args.rounds.value_or(100));
  if (name == "rounds") {
    RaceOptions race = args.race;
    race.rounds = args.rounds.value_or(race.rounds);
    return RunRaces(world, race);
  }
  return std::nullopt;
}

int Run(const Arguments& args) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.kubeconfig = args.kubeconfig, .user_agent = "gang_bench"}, clock);
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message().c_str());
    return 1;
  }
  GangObserver observer(*(*connection)->client, clock, log);
  if (const kube::Status synced = observer.Start(); !synced) {
    std::fprintf(stderr, "%s\n", synced.error().message().c_str());
    return 1;
  }
  const GangWorld world{*(*connection)->client, observer, clock, args.kubeconfig, args.manager, args.threads};
  bool is_ok = true;
  for (const std::string& name : args.scenarios) {
    const std::optional<bool> result = RunScenario(name, world, args);
    if (!result) return Usage();
    is_ok = *result && is_ok;
    std::fflush(stdout);
  }
  return is_ok ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Arguments args;
  return bench::Parse(argc, argv, args) ? bench::Run(args) : bench::Usage();
}
