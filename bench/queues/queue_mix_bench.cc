// SPDX-License-Identifier: Apache-2.0
// One mix of jobs of three teams through grus and through what a user would take instead, each by its own API.
//
// Usage: queue_mix_bench KUBECONFIG GRUS_MANAGER MANIFESTS KUBECTL [options]; see Usage() below.
// MANIFESTS is a folder with the files of this one, filled in by scripts/bench-queues; KUBECTL a shell command. The
// cluster of KUBECONFIG needs nodes of 8 GPUs, the CRDs of all sides, and no other load. Exit status 1: some part did
// not finish.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "bench/queues/scenarios.h"
#include "clientlib/client/connection.h"

namespace bench {
namespace {

struct Arguments {
  SidePaths paths;
  std::string kubectl, side;
  std::vector<std::string> scenarios;
  int gpus = 128;
  double day_seconds = 120;
  std::uint64_t seed = 1;
};

int Usage() {
  std::fprintf(stderr,
               "usage: queue_mix_bench KUBECONFIG GRUS_MANAGER MANIFESTS KUBECTL [options]\n"
               "  --gpus N         of the cluster, on nodes of 8 (128)\n"
               "  --peers FOLDER   with the programs kueue and mpi-operator\n"
               "  --only SCENARIO  fill, reclaim, big-gang or day; may be repeated\n"
               "  --side NAME      grus, kueue+mpi or kai alone\n"
               "  --seed N         of the mix (1)\n"
               "  --day SECONDS    over which the jobs of a day come (120)\n");
  return 2;
}

bool Parse(int argc, char** argv, Arguments& args) {
  if (argc < 5) return false;
  args.paths = {.kubeconfig = argv[1], .manager = argv[2], .manifests = argv[3], .peers = {}};
  args.kubectl = argv[4];
  for (int i = 5; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--gpus") args.gpus = std::atoi(value.c_str());
    else if (name == "--peers") args.paths.peers = value;
    else if (name == "--only") args.scenarios.push_back(value);
    else if (name == "--side") args.side = value;
    else if (name == "--seed") args.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--day") args.day_seconds = std::atof(value.c_str());
    else return false;
  }
  const std::vector<std::string> known = MixScenarios();
  for (const std::string& scenario : args.scenarios) {
    if (std::find(known.begin(), known.end(), scenario) == known.end()) return false;
  }
  if (args.scenarios.empty()) args.scenarios = known;
  return argc % 2 == 1 && args.gpus >= 32 && args.day_seconds > 0;
}

void PrintTable(const std::string& scenario, const std::vector<MixSide>& sides,
                const std::map<std::string, MixFigures>& all) {
  std::printf("\n== %s\n%-52s", scenario.c_str(), "");
  for (const MixSide& side : sides) std::printf(" %12s", side.name.c_str());
  std::printf("\n");
  std::vector<std::string> rows;
  for (const auto& [side, figures] : all) {
    for (const auto& [row, value] : figures) {
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    }
  }
  for (const std::string& row : rows) {
    std::printf("%-52s", row.c_str());
    std::vector<double> values;
    for (const MixSide& side : sides) {
      const MixFigures& figures = all.at(side.name);
      const auto found =
          std::find_if(figures.begin(), figures.end(), [&](const auto& one) { return one.first == row; });
      if (found == figures.end()) std::printf(" %12s", "-");
      else std::printf(" %12.2f", found->second);
      if (found != figures.end()) values.push_back(found->second);
    }
    if (sides.size() == 2 && values.size() == 2 && values[1] > 0) std::printf("   %.2f x", values[0] / values[1]);
    std::printf("\n");
  }
  std::fflush(stdout);
}

int Run(const Arguments& args) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.kubeconfig = args.paths.kubeconfig, .user_agent = "queue_mix_bench"}, clock);
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message().c_str());
    return 1;
  }
  JobWatch watch(*(*connection)->client, clock, log);
  if (const kube::Status synced = watch.Start(); !synced) {
    std::fprintf(stderr, "%s\n", synced.error().message().c_str());
    return 1;
  }
  const MixWorld world{*(*connection)->client, watch, clock, args.gpus, args.day_seconds, args.seed, args.kubectl};
  std::vector<MixSide> sides;
  for (MixSide& side : std::vector<MixSide>{MixThroughGrus(args.paths), MixThroughKueue(args.paths), MixThroughKai()}) {
    if (!args.side.empty() && side.name != args.side) continue;
    if (side.not_run.empty()) sides.push_back(side);
    else std::printf("%s: not run: %s\n", side.name.c_str(), side.not_run.c_str());
  }
  bool is_ok = true;
  for (const std::string& scenario : args.scenarios) {
    std::map<std::string, MixFigures> all;
    for (const MixSide& side : sides) is_ok = RunMixScenario(world, side, scenario, all[side.name]) && is_ok;
    PrintTable(scenario, sides, all);
  }
  return is_ok ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Arguments args;
  return bench::Parse(argc, argv, args) ? bench::Run(args) : bench::Usage();
}
