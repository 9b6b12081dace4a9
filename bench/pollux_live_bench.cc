// SPDX-License-Identifier: Apache-2.0
// How close grus-manager on a real control plane comes to grus-sim: the same workload through both.
//
// Usage: pollux_live_bench KUBECONFIG GRUS_MANAGER --workload FILE.csv --traces FOLDER [--speedup N] [--jobs N]
//                          [--resize-seconds S]
// The cluster of KUBECONFIG needs the CRDs, 16 nodes "node-N" of 4 GPUs, and no other load. The start and resize times
// that were measured on it are given to the simulation. Exit status 1: some part did not finish, or something that must
// hold at any time did not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/manager_run.h"
#include "bench/measure.h"
#include "bench/pollux_live.h"
#include "bench/sim/pollux_grus.h"
#include "clientlib/client/connection.h"

namespace bench {
namespace {

struct Arguments {
  std::string kubeconfig, manager, workload, traces;
  std::string resize_seconds = "1.5";  // Of grus-manager: what a resize costs here, time running so fast.
  std::size_t jobs = 0;                // The first so many; 0: all.
  LiveOptions live;
};

bool Parse(int argc, char** argv, Arguments& args) {
  if (argc < 3) return false;
  args.kubeconfig = argv[1];
  args.manager = argv[2];
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* const value = argv[i + 1];
    if (name == "--workload") args.workload = value;
    else if (name == "--traces") args.traces = value;
    else if (name == "--speedup") args.live.speedup = std::strtod(value, nullptr);
    else if (name == "--jobs") args.jobs = std::strtoul(value, nullptr, 10);
    else if (name == "--resize-seconds") args.resize_seconds = value;
    else return false;
  }
  return argc % 2 == 1 && !args.workload.empty() && !args.traces.empty() && args.live.speedup > 0;
}

int Fail(const kube::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

void Print(const std::string& side, const grus::ReplayResult& result) {
  PrintRow(side + ": average completion time", result.average_s, "s");
  PrintRow(side + ": p99 completion time", result.p99_s, "s");
  PrintRow(side + ": makespan", result.makespan_s, "s");
  PrintRow(side + ": restarts a job", result.restarts_per_job, "");
}

kube::Result<LiveResult> RunLive(const Arguments& args, const std::vector<grus::ReplayJob>& jobs) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.kubeconfig = args.kubeconfig, .user_agent = "pollux_live_bench"}, clock);
  if (!connection) return std::move(connection).error();
  ManagerRun manager(args.manager,
                     {"--kubeconfig", args.kubeconfig, "--log-level", "warn", "--resize-seconds", args.resize_seconds},
                     "build/pollux-live-bench.log", clock);
  if (!manager.WaitUntilReady(clock.Now() + std::chrono::seconds(60))) {
    return kube::Error(kube::ErrorCode::kTimeout, "grus-manager is not ready");
  }
  PolluxLive live(*(*connection)->client, clock, log, jobs, args.live);
  return live.Run("default");
}

int Run(const Arguments& args) {
  const auto applications = grus::LoadApplications(args.traces);
  if (!applications) return Fail(applications.error());
  auto jobs = grus::LoadWorkload(args.workload, *applications, grus::BatchSize::kAsSubmitted);
  if (!jobs) return Fail(jobs.error());
  if (args.jobs > 0 && args.jobs < jobs->size()) jobs->erase(jobs->begin() + static_cast<long>(args.jobs), jobs->end());

  const auto live = RunLive(args, *jobs);
  if (!live) return Fail(live.error());
  const grus::Standstills standstills{live->start_s, live->resize_s};
  grus::GrusPolicyOptions options;
  options.speedup = args.live.speedup;
  options.restart_s = std::strtod(args.resize_seconds.c_str(), nullptr) * options.speedup;
  grus::GrusPolicy policy(options);
  const auto simulated = grus::Replay(*std::move(jobs), policy, standstills);
  if (!simulated) return Fail(simulated.error());
  Print("grus-manager", live->replay);
  PrintRow("grus-manager: from arrival to a grant", live->wait_s, "s");
  PrintRow("grus-manager: from a grant to training", live->start_s, "s");
  PrintRow("grus-manager: from a change of size to training", live->resize_s, "s");
  Print("grus-sim", *simulated);
  PrintRow("average, grus-manager to grus-sim", live->replay.average_s / simulated->average_s, "x", 1.05);
  for (const std::string& breach : live->breaches) std::printf("BREACH: %s\n", breach.c_str());
  return live->breaches.empty() ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Arguments args;
  if (bench::Parse(argc, argv, args)) return bench::Run(args);
  std::fprintf(stderr,
               "usage: pollux_live_bench KUBECONFIG GRUS_MANAGER --workload FILE.csv --traces FOLDER\n"
               "                         [--speedup N (60)] [--jobs N (all)] [--resize-seconds S (1.5)]\n");
  return 2;
}
