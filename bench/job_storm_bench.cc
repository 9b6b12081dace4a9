// SPDX-License-Identifier: Apache-2.0
// 400 jobs of 2 workers and 1 launcher, submitted at once: grus against the same objects created directly.
//
// Usage: job_storm_bench KUBECONFIG GRUS_MANAGER [--jobs N] [--rounds N] [--idle SECONDS]
// Prints a table; the ratio is taken within this run, on the cluster of KUBECONFIG, which needs the CRDs, a node
// for every pod, and nothing else that makes it busy. Exit status 1: something did not come to its end.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/measure.h"
#include "bench/storm.h"
#include "clientlib/client/connection.h"
#include "clientlib/model/core_v1.h"
#include "tests/kit/child_process.h"

namespace bench {
namespace {

using std::chrono::seconds;
constexpr seconds kLimit(300);

struct Arguments {
  std::string kubeconfig, manager;
  StormOptions storm;
  int rounds = 3;
  int idle_seconds = 60;
};

// What all of the cluster asked of its API server so far, but for the opening of watches.
double ClusterRequests(kube::Transport& transport) {
  double requests = 0;
  for (const std::string& line : ReadMetrics(transport, "apiserver_request_total{")) {
    if (line.find("verb=\"WATCH\"") == std::string::npos) requests += MetricValue(line);
  }
  return requests;
}

bool Clean(kube::Client& client, Observer& observer, const std::string& ns, const kube::Clock& clock) {
  DeleteNamespace(client, ns);
  const kube::TimePoint until = clock.Now() + kLimit;
  bool is_gone = observer.WaitForNoPods(ns, until);
  // Nor may the deletion of what else is in it slow down what is measured next.
  while (is_gone && client.Get(kube::KindOf<kube::Namespace>(), {"", ns}).ok()) {
    is_gone = clock.Now() < until;
    usleep(200'000);
  }
  if (!is_gone) std::fprintf(stderr, "namespace %s did not go away\n", ns.c_str());
  return is_gone;
}

struct Figures {
  std::vector<double> direct, through_grus, ratio, direct_requests, all_requests;
  std::vector<double> cpu, memory, requests, idle_writes, lag_median, lag_p99;
};

bool RunDirect(kube::Transport& transport, kube::Client& client, Observer& observer, const Arguments& args,
               const std::string& ns, const kube::Clock& clock, double& took, Figures& figures) {
  if (!CreateNamespace(client, ns)) return false;
  const double requests_before = ClusterRequests(transport);
  const int pods = args.storm.jobs * (args.storm.workers + 1);
  const kube::TimePoint start = clock.Now();
  if (!CreatePlainObjects(client, ns, args.storm)) return false;
  if (!observer.WaitForRunning(ns, pods, start + kLimit)) {
    std::fprintf(stderr, "direct: %d of %d pods run after the limit\n", observer.Running(ns), pods);
    return false;
  }
  took = SecondsSince(start, clock);
  figures.direct_requests.push_back((ClusterRequests(transport) - requests_before) / args.storm.jobs);
  return Clean(client, observer, ns, clock);
}

bool RunGrus(kube::Transport& transport, kube::Client& client, Observer& observer, const Arguments& args,
             const std::string& ns, int port, const kube::Clock& clock, double& took, Figures& figures) {
  if (!CreateNamespace(client, ns)) return false;
  const std::string metrics = "127.0.0.1:" + std::to_string(port), health = "127.0.0.1:" + std::to_string(port + 1);
  kit::ChildProcess manager({args.manager, "--kubeconfig", args.kubeconfig, "--metrics-address", metrics,
                             "--health-address", health, "--log-level", "warn"},
                            {}, "build/grus-manager-bench.log");
  const kube::TimePoint ready_until = clock.Now() + seconds(30);
  while (ScrapeManager(port).requests < 5 && clock.Now() < ready_until && manager.IsRunning()) usleep(100'000);
  const ManagerCounters before = ScrapeManager(port);
  const double requests_before = ClusterRequests(transport);

  const int pods = args.storm.jobs * (args.storm.workers + 1);
  const kube::TimePoint start = clock.Now();
  if (!CreateJobs(client, ns, args.storm)) return false;
  if (!observer.WaitForRunning(ns, pods, start + kLimit)) {
    std::fprintf(stderr, "grus: %d of %d pods run after the limit\n", observer.Running(ns), pods);
    return false;
  }
  took = SecondsSince(start, clock);
  figures.all_requests.push_back((ClusterRequests(transport) - requests_before) / args.storm.jobs);
  if (!observer.WaitForPhase(ns, "Running", args.storm.jobs, start + kLimit)) {
    std::fprintf(stderr, "grus: not all jobs came to phase Running\n");
    return false;
  }
  usleep(2'000'000);  // Events are written behind the status; they count.
  const ManagerCounters after = ScrapeManager(port);
  figures.cpu.push_back(manager.CpuSeconds());
  figures.memory.push_back(manager.PeakMemoryMib());
  figures.requests.push_back((after.requests - before.requests) / args.storm.jobs);
  const std::vector<double> lags = observer.StatusLags(ns);
  figures.lag_median.push_back(Percentile(lags, 0.5));
  figures.lag_p99.push_back(Percentile(lags, 0.99));
  if (args.idle_seconds > 0 && figures.idle_writes.empty()) {
    usleep(static_cast<useconds_t>(args.idle_seconds) * 1'000'000U);
    figures.idle_writes.push_back(ScrapeManager(port).writes - after.writes);
  }
  const bool is_clean = Clean(client, observer, ns, clock);
  manager.Terminate();
  return is_clean;
}

int Run(const Arguments& args) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.kubeconfig = args.kubeconfig, .user_agent = "job_storm_bench"}, clock);
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message().c_str());
    return 1;
  }
  kube::Transport& transport = *(*connection)->transport;
  kube::Client& client = *(*connection)->client;
  Observer observer(client, clock, log);
  if (const kube::Status synced = observer.Start(); !synced) {
    std::fprintf(stderr, "%s\n", synced.error().message().c_str());
    return 1;
  }

  // The first pods of a cluster come slowly: not counted.
  Arguments warm_up = args;
  warm_up.storm.jobs = std::min(args.storm.jobs, 50);
  double ignored = 0;
  Figures figures;
  if (!RunDirect(transport, client, observer, warm_up, "warm-up-" + std::to_string(getpid()), clock, ignored,
                 figures)) {
    return 1;
  }
  figures = {};
  for (int round = 0; round < args.rounds; ++round) {
    double direct = 0, grus = 0;
    const std::string suffix = std::to_string(getpid()) + "-" + std::to_string(round);
    if (!RunDirect(transport, client, observer, args, "storm-direct-" + suffix, clock, direct, figures)) return 1;
    if (!RunGrus(transport, client, observer, args, "storm-grus-" + suffix, 18080 + 2 * round, clock, grus, figures)) {
      return 1;
    }
    figures.direct.push_back(direct);
    figures.through_grus.push_back(grus);
    figures.ratio.push_back(grus / direct);
    std::printf("round %d: direct %.2f s, through grus %.2f s, ratio %.3f\n", round + 1, direct, grus, grus / direct);
    std::fflush(stdout);
  }
  std::printf("\n%d jobs of %d workers and 1 launcher; medians of %d rounds\n", args.storm.jobs, args.storm.workers,
              args.rounds);
  PrintRow("all pods run, objects created directly", Median(figures.direct), "s");
  PrintRow("all pods run, through grus", Median(figures.through_grus), "s");
  PrintRow("requests to the API server a job, created directly", Median(figures.direct_requests), "");
  PrintRow("requests to the API server a job, through grus", Median(figures.all_requests), "");
  PrintRow("ratio", Median(figures.ratio), "x", 1.35);
  PrintRow("grus-manager: CPU", Median(figures.cpu), "s", 1.5);
  PrintRow("grus-manager: peak memory", Median(figures.memory), "MiB", 40);
  PrintRow("grus-manager: API requests a job", Median(figures.requests), "", 12);
  PrintRow("a worker's readiness in its job's status, median", Median(figures.lag_median), "s", 0.1);
  PrintRow("a worker's readiness in its job's status, p99", Median(figures.lag_p99), "s", 0.5);
  if (!figures.idle_writes.empty()) PrintRow("write requests at rest", figures.idle_writes.front(), "", 0);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Arguments args;
  if (argc < 3) {
    std::fprintf(stderr, "usage: job_storm_bench KUBECONFIG GRUS_MANAGER [--jobs N] [--rounds N] [--idle SECONDS]\n");
    return 2;
  }
  args.kubeconfig = argv[1];
  args.manager = argv[2];
  for (int i = 3; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--jobs")) args.storm.jobs = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--rounds")) args.rounds = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--idle")) args.idle_seconds = std::atoi(argv[i + 1]);
  }
  return bench::Run(args);
}
