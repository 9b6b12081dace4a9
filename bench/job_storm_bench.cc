// SPDX-License-Identifier: Apache-2.0
// 400 jobs of 2 workers and 1 launcher, submitted at once: through grus, as hand-written objects of Kubernetes, and as
// MPIJobs through mpi-operator, if its program is given.
//
// Usage: job_storm_bench KUBECONFIG GRUS_MANAGER [--jobs N] [--rounds N] [--idle SECONDS] [--mpi-operator PROGRAM]
//                        [--requests 1] [--only SIDE]
// Prints a table; ratios are taken within this run, on the cluster of KUBECONFIG, which needs the CRDs, a node for
// every pod, and nothing else that makes it busy. --requests lists them by verb and kind;
// --only runs one side: "by hand", "grus" or "mpi-operator". Exit status 1: some part did not finish.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "bench/measure.h"
#include "bench/storm_sides.h"
#include "clientlib/client/connection.h"
#include "clientlib/model/core_v1.h"
#include "tests/kit/child_process.h"

namespace bench {
namespace {

using std::chrono::seconds;
constexpr seconds kLimit(600);

struct Arguments {
  std::string kubeconfig, manager, mpi_operator, only;
  StormOptions storm;
  int rounds = 3;
  int idle_seconds = 60;
  bool lists_requests = false;
};

struct World {
  kube::Transport& transport;
  kube::Client& client;
  Observer& observer;
  const kube::Clock& clock;
};

// The value of a label in a line of metrics: `verb="POST"`.
std::string LabelOf(const std::string& line, const std::string& label) {
  const std::size_t at = line.find(label + "=\"");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + label.size() + 2;
  return line.substr(begin, line.find('"', begin) - begin);
}

// All requests to the cluster's API server so far, except the opening of watches: "POST pods/binding".
using Requests = std::map<std::string, double>;
Requests ClusterRequests(kube::Transport& transport) {
  Requests requests;
  for (const std::string& line : ReadMetrics(transport, "apiserver_request_total{")) {
    const std::string verb = LabelOf(line, "verb"), part = LabelOf(line, "subresource");
    if (verb == "WATCH") continue;
    requests[verb + " " + LabelOf(line, "resource") + (part.empty() ? "" : "/" + part)] += MetricValue(line);
  }
  return requests;
}
Requests operator-(Requests after, const Requests& before) {
  for (const auto& [what, count] : before) after[what] -= count;
  return after;
}
double Sum(const Requests& requests) {
  double sum = 0;
  for (const auto& [what, count] : requests) sum += count;
  return sum;
}

// The results of one side, round by round.
struct Figures {
  std::vector<double> took, requests;                    // Seconds until all pods run; all requests a job.
  std::vector<double> cpu, memory, own_requests;         // Of its program.
  std::vector<double> lag_median, lag_p99, idle_writes;  // Of grus.
  Requests last;                                         // By verb and kind, of the last round.
};

bool Clean(const World& world, const std::string& ns) {
  DeleteNamespace(world.client, ns);
  const kube::TimePoint until = world.clock.Now() + kLimit;
  bool is_gone = world.observer.WaitForNoPods(ns, until);
  // Nor may the deletion of what else is in it slow down what is measured next.
  while (is_gone && world.client.Get(kube::KindOf<kube::Namespace>(), {"", ns}).ok()) {
    is_gone = world.clock.Now() < until;
    usleep(200'000);
  }
  if (!is_gone) std::fprintf(stderr, "namespace %s did not go away\n", ns.c_str());
  return is_gone;
}

bool IsAtWork(const StormSide& side) {
  double sum = 0;
  for (const std::string& line : ReadProgramMetrics(side.metrics_port, side.ready_metric)) sum += MetricValue(line);
  return sum >= side.ready_value;
}

// The rest of a round of grus: when the status of its jobs follows their pods, and what is written at rest.
bool LookAtGrus(const World& world, const Arguments& args, const std::string& ns, kube::TimePoint until, int port,
                Figures& figures) {
  const std::vector<double> lags = world.observer.StatusLags(ns);
  figures.lag_median.push_back(Percentile(lags, 0.5));
  figures.lag_p99.push_back(Percentile(lags, 0.99));
  if (args.idle_seconds <= 0 || !figures.idle_writes.empty()) return world.clock.Now() < until;
  usleep(15'000'000U);  // What could wait has been written.
  const double before = ScrapeManager(port).writes;
  usleep(static_cast<useconds_t>(args.idle_seconds) * 1'000'000U);
  figures.idle_writes.push_back(ScrapeManager(port).writes - before);
  return true;
}

bool RunSide(const World& world, const Arguments& args, const StormSide& side, const std::string& ns,
             Figures& figures) {
  if (!CreateNamespace(world.client, ns)) return false;
  std::optional<kit::ChildProcess> program;
  if (!side.program.empty()) {
    program.emplace(side.program, kit::ChildProcess::Variables{}, "build/" + side.name + "-bench.log");
    const kube::TimePoint ready_until = world.clock.Now() + seconds(60);
    while (!IsAtWork(side) && world.clock.Now() < ready_until && program->IsRunning()) usleep(100'000);
  }
  const double own_before = side.is_grus ? ScrapeManager(side.metrics_port).requests : 0;
  const Requests before = ClusterRequests(world.transport);

  const int pods = args.storm.jobs * (args.storm.workers + 1);
  const kube::TimePoint start = world.clock.Now();
  if (!side.create(world.client, ns, args.storm)) return false;
  if (!world.observer.WaitForRunning(ns, pods, start + kLimit)) {
    std::fprintf(stderr, "%s: %d of %d pods run after the limit\n", side.name.c_str(), world.observer.Running(ns),
                 pods);
    return false;
  }
  figures.took.push_back(SecondsSince(start, world.clock));
  if (side.is_grus && !world.observer.WaitForPhase(ns, "Running", args.storm.jobs, start + kLimit)) {
    std::fprintf(stderr, "grus: not all jobs came to phase Running\n");
    return false;
  }
  usleep(2'000'000);  // Events and statuses are written behind; they count.
  figures.last = ClusterRequests(world.transport) - before;
  figures.requests.push_back(Sum(figures.last) / args.storm.jobs);
  if (program) {
    figures.cpu.push_back(program->CpuSeconds());
    figures.memory.push_back(program->PeakMemoryMib());
  }
  if (side.is_grus) {
    figures.own_requests.push_back((ScrapeManager(side.metrics_port).requests - own_before) / args.storm.jobs);
    if (!LookAtGrus(world, args, ns, start + kLimit, side.metrics_port, figures)) return false;
  }
  return true;
}

void PrintSide(const StormSide& side, const Figures& figures, const Arguments& args) {
  PrintRow(side.name + ": all pods run", Median(figures.took), "s");
  PrintRow(side.name + ": requests to the API server a job", Median(figures.requests), "");
  if (!figures.cpu.empty()) PrintRow(side.name + ": CPU of its program", Median(figures.cpu), "s");
  if (!figures.memory.empty()) PrintRow(side.name + ": peak memory of its program", Median(figures.memory), "MiB");
  if (!args.lists_requests) return;
  for (const auto& [what, count] : figures.last) {
    if (count / args.storm.jobs >= 0.01) PrintRow("  " + what, count / args.storm.jobs, "a job");
  }
}

void PrintLimits(const std::map<std::string, Figures>& all) {
  if (!all.contains("grus")) return;
  const Figures& grus = all.at("grus");
  const auto ratio_to = [&](const Figures& other) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < grus.took.size(); ++i) ratios.push_back(grus.took[i] / other.took[i]);
    return Median(ratios);
  };
  if (all.contains("by hand")) PrintRow("grus to by hand", ratio_to(all.at("by hand")), "x", 1.6);
  if (all.contains("mpi-operator")) PrintRow("grus to mpi-operator", ratio_to(all.at("mpi-operator")), "x", 1);
  PrintRow("requests to the API server a job, through grus", Median(grus.requests), "", 33);
  PrintRow("grus-manager: CPU", Median(grus.cpu), "s", 1.5);
  PrintRow("grus-manager: peak memory", Median(grus.memory), "MiB", 40);
  PrintRow("grus-manager: API requests a job", Median(grus.own_requests), "", 9);
  PrintRow("a worker's readiness in its job's status, median", Median(grus.lag_median), "s", 0.1);
  PrintRow("a worker's readiness in its job's status, p99", Median(grus.lag_p99), "s", 0.5);
  if (!grus.idle_writes.empty()) PrintRow("write requests at rest", grus.idle_writes.front(), "", 0);
}

int Run(const Arguments& args) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.kubeconfig = args.kubeconfig, .user_agent = "job_storm_bench"}, clock);
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message().c_str());
    return 1;
  }
  Observer observer(*(*connection)->client, clock, log);
  if (const kube::Status synced = observer.Start(); !synced) {
    std::fprintf(stderr, "%s\n", synced.error().message().c_str());
    return 1;
  }
  const World world{*(*connection)->transport, *(*connection)->client, observer, clock};
  const std::string run = std::to_string(getpid());

  // The first pods of a cluster come slowly: not counted.
  Arguments warm_up = args;
  warm_up.storm.jobs = std::min(args.storm.jobs, 50);
  Figures ignored;
  const std::string warm_up_ns = "warm-up-" + run;
  if (!RunSide(world, warm_up, ByHand(), warm_up_ns, ignored) || !Clean(world, warm_up_ns)) return 1;

  std::vector<StormSide> sides{ByHand(), ThroughGrus(args.manager, args.kubeconfig, 18080)};
  if (!args.mpi_operator.empty()) sides.push_back(ThroughMpiOperator(args.mpi_operator, args.kubeconfig, 18090));
  if (!args.only.empty()) std::erase_if(sides, [&](const StormSide& side) { return side.name != args.only; });
  if (sides.empty()) {
    std::fprintf(stderr, "--only: there is no side \"%s\"\n", args.only.c_str());
    return 2;
  }
  std::map<std::string, Figures> all;
  for (int round = 0; round < args.rounds; ++round) {
    std::printf("round %d:", round + 1);
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const StormSide& side =
          sides[(i + static_cast<std::size_t>(round)) % sides.size()];  // Each is first in its turn.
      const std::string ns = "storm-" + std::to_string(i) + "-" + run + "-" + std::to_string(round);
      if (!RunSide(world, args, side, ns, all[side.name])) return 1;
      const bool is_last = round + 1 == args.rounds && i + 1 == sides.size();
      if (!is_last && !Clean(world, ns)) return 1;
      std::printf(" %s %.2f s", side.name.c_str(), all[side.name].took.back());
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  std::printf("\n%d jobs of %d workers and 1 launcher; medians of %d rounds\n", args.storm.jobs, args.storm.workers,
              args.rounds);
  for (const StormSide& side : sides) PrintSide(side, all[side.name], args);
  PrintLimits(all);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Arguments args;
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: job_storm_bench KUBECONFIG GRUS_MANAGER [--jobs N] [--rounds N] [--idle SECONDS]\n"
                 "                       [--mpi-operator PROGRAM] [--requests 1] [--only SIDE]\n");
    return 2;
  }
  args.kubeconfig = argv[1];
  args.manager = argv[2];
  for (int i = 3; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--jobs")) args.storm.jobs = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--rounds")) args.rounds = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--idle")) args.idle_seconds = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--only")) args.only = argv[i + 1];
    if (!std::strcmp(argv[i], "--mpi-operator")) args.mpi_operator = argv[i + 1];
    if (!std::strcmp(argv[i], "--requests")) args.lists_requests = std::atoi(argv[i + 1]) != 0;
  }
  return bench::Run(args);
}
