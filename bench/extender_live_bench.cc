// SPDX-License-Identifier: Apache-2.0
// How much later pods with parts of GPUs are bound where a stock kube-scheduler asks grus-manager about them, than
// where it counts the same resource itself, as a sum for each node.
//
// Usage: extender_live_bench KUBECONFIG GRUS_MANAGER KUBE_SCHEDULER FOLDER [--rounds N] [--pods N] [--threads N]
// Started by scripts/bench-extender, which makes the nodes, and in FOLDER the schedulers' configurations alone.yaml and
// asks.yaml, whose profiles have these names, the certificates, and `port`, where they look for the extender.
// The two sides take turns, with a scheduler of their own that is started anew each time, and the same pods.
// Exit status 1: some part did not finish, or pods have GPUs where they should not, or none where they should.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/gang_objects.h"
#include "bench/manager_run.h"
#include "bench/measure.h"
#include "bench/shared_nodes.h"
#include "clientlib/client/connection.h"
#include "crds/types/sharing_names.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;
using std::chrono::seconds;

constexpr int kGpusOfNode = 4, kGib = 16;
constexpr double kMostRatio = 1.15;
constexpr seconds kLimit(300), kStartLimit(60);
const std::vector<int> kSizes = {2, 4, 8, 16};  // GiB of a pod, by turns.

struct Arguments {
  std::string kubeconfig, manager, scheduler, folder;
  int rounds = 5, pods = 1000, threads = 8;
};

struct Side {
  std::string name;  // Of the scheduler, and of its configuration.
  bool has_extender = false;
  std::vector<double> created{}, bound{}, scheduler_cpu{}, manager_cpu{};
};

Json MakePod(const std::string& name, const std::string& scheduler, int gib) {
  Json spec = kit::PodSpec(gib, R"({"automountServiceAccountToken":false,"terminationGracePeriodSeconds":0})",
                           api::kGpuMemResource);
  spec["schedulerName"] = scheduler;
  return kit::MakePod(name, std::move(spec));
}

std::string PortIn(const std::string& folder) {
  std::string port;
  std::ifstream(folder + "/port") >> port;
  return port;
}

std::vector<std::string> ManagerArguments(const Arguments& args) {
  return {"--kubeconfig",
          args.kubeconfig,
          "--controllers",
          "extender",
          "--extender-address",
          "127.0.0.1:" + PortIn(args.folder),
          "--extender-cert-file",
          args.folder + "/certs/server.crt",
          "--extender-key-file",
          args.folder + "/certs/server.key",
          "--extender-client-ca-file",
          args.folder + "/certs/ca.crt"};
}

class Bench {
 public:
  Bench(const Arguments& args, const GangWorld& world) : args_(args), world_(world) {}

  bool Run() {
    for (int round = 0; round <= args_.rounds; ++round) {  // The first pods of a cluster come slowly: not counted.
      const bool is_swapped = round % 2 == 1;
      if (!Turn(sides_[is_swapped ? 1 : 0], round) || !Turn(sides_[is_swapped ? 0 : 1], round)) return false;
      std::printf("round %d: alone %.2f s, asks grus %.2f s (%.3f)%s\n", round, sides_[0].bound.back(),
                  sides_[1].bound.back(), sides_[1].bound.back() / sides_[0].bound.back(),
                  round == 0 ? ", not counted" : "");
      std::fflush(stdout);
      if (round > 0) continue;
      for (Side& side : sides_) side = {.name = side.name, .has_extender = side.has_extender};
      calls_.clear();
    }
    Print();
    return true;
  }

 private:
  // False: it did not come to its end.
  bool Turn(Side& side, int round) {
    const std::string label = "bench-" + side.name + "-" + std::to_string(round);
    BenchNamespace ns(world_, label);
    if (!ns.Exists()) return false;
    std::optional<ManagerRun> manager;
    if (side.has_extender) {
      manager.emplace(args_.manager, ManagerArguments(args_), "build/bench-extender-manager.log", world_.clock);
      if (!manager->WaitUntilReady(world_.clock.Now() + kStartLimit)) return false;
    }
    kit::ChildProcess scheduler(
        {args_.scheduler, "--config=" + args_.folder + "/" + side.name + ".yaml", "--secure-port=0"}, {},
        "build/bench-extender-" + side.name + ".log");
    // A first pod shows that the scheduler is ready, and opens its connections.
    const Json first = MakePod("first", side.name, kSizes[0]);
    if (!CreatePod(ns.name(), first) || !AwaitBound(ns.name(), 1, world_.clock.Now() + kStartLimit)) return false;
    if (manager) ReadCalls(*manager, -1);
    const double scheduler_cpu = scheduler.CpuSeconds(), manager_cpu = manager ? manager->process().CpuSeconds() : 0;

    const kube::TimePoint start = world_.clock.Now();
    const bool are_created = InParallel(args_.pods, args_.threads, [&](int i) {
      const int gib = kSizes[static_cast<std::size_t>(i) % kSizes.size()];
      return CreateObject(world_.client, KindOf<kube::Pod>(), ns.name(),
                          MakePod("pod-" + std::to_string(i), side.name, gib));
    });
    side.created.push_back(SecondsSince(start, world_.clock));
    if (!are_created || !AwaitBound(ns.name(), args_.pods + 1, start + kLimit)) return false;
    side.bound.push_back(SecondsSince(start, world_.clock));
    side.scheduler_cpu.push_back(scheduler.CpuSeconds() - scheduler_cpu);
    if (manager) side.manager_cpu.push_back(manager->process().CpuSeconds() - manager_cpu);
    if (manager) ReadCalls(*manager, 1);
    return AreGpusTold(ns.name(), side.has_extender) && ns.Remove();
  }

  bool CreatePod(const std::string& ns, const Json& pod) {
    const kube::Status made = CreateObject(world_.client, KindOf<kube::Pod>(), ns, pod);
    if (!made) std::fprintf(stderr, "%s\n", made.error().message().c_str());
    return bool(made);
  }
  bool AwaitBound(const std::string& ns, int pods, kube::TimePoint until) {
    const auto are_bound = [&](const PodCounts& counts) { return counts.bound >= pods; };
    if (world_.observer.WaitForPods(ns, are_bound, until)) return true;
    std::fprintf(stderr, "%s: %d of %d pods are bound\n", ns.c_str(), world_.observer.Pods(ns).bound, pods);
    return false;
  }
  // Each pod has a GPU of its node, as nobody but the extender writes, or none has.
  bool AreGpusTold(const std::string& ns, bool has_extender) {
    const auto pods = world_.client.List(KindOf<kube::Pod>(), ns);
    if (!pods) return false;
    for (const auto& one : pods->items) {
      const auto& pod = static_cast<const kube::Pod&>(*one);
      const std::string gpu(pod.metadata.Annotation(api::kPlannedGpuAnnotation));
      const std::string prefix = "GPU-" + std::string(pod.spec.node_name) + "-";
      if (has_extender ? gpu.rfind(prefix, 0) == 0 : gpu.empty()) continue;
      std::fprintf(stderr, "%s/%s has the GPU '%s'\n", ns.c_str(), std::string(pod.metadata.name).c_str(), gpu.c_str());
      return false;
    }
    return true;
  }
  // Adds what its histograms have counted, or takes it away.
  void ReadCalls(const ManagerRun& manager, int by) {
    for (const std::string& line : manager.Metrics("grus_extender_duration_seconds_")) {
      for (const char* verb : {"filter", "prioritize", "bind"}) {
        if (line.find("verb=\"" + std::string(verb) + "\"") == std::string::npos) continue;
        if (line.rfind("grus_extender_duration_seconds_sum", 0) == 0) calls_[verb].seconds += by * MetricValue(line);
        if (line.rfind("grus_extender_duration_seconds_count", 0) == 0) calls_[verb].count += by * MetricValue(line);
      }
    }
  }

  void Print() const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < sides_[0].bound.size(); ++i) ratios.push_back(sides_[1].bound[i] / sides_[0].bound[i]);
    std::printf("\n%d pods with %s, medians of %d rounds\n", args_.pods, api::kGpuMemResource, args_.rounds);
    for (const Side& side : sides_) {
      PrintRow(side.name + ": all pods bound", Median(side.bound), "s");
      PrintRow(side.name + ": all pods created", Median(side.created), "s");
      PrintRow(side.name + ": kube-scheduler: CPU", Median(side.scheduler_cpu), "s");
    }
    PrintRow("asks: grus-manager: CPU", Median(sides_[1].manager_cpu), "s");
    for (const auto& [verb, calls] : calls_) {
      PrintRow("asks: grus-manager: calls of " + verb + " a pod", calls.count / args_.rounds / args_.pods, "");
      PrintRow("asks: grus-manager: mean of a call of " + verb, 1000 * calls.seconds / calls.count, "ms");
    }
    std::ranges::sort(ratios);
    PrintRow("ratio, least", ratios.front(), "x");
    PrintRow("ratio, most", ratios.back(), "x");
    PrintRow("ratio", Median(ratios), "x", kMostRatio);
  }

  struct Calls {
    double count = 0, seconds = 0;
  };
  const Arguments& args_;
  const GangWorld& world_;
  Side sides_[2] = {{.name = "alone"}, {.name = "asks", .has_extender = true}};
  std::map<std::string, Calls> calls_;  // By verb.
};

int Run(const Arguments& args) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.kubeconfig = args.kubeconfig, .user_agent = "extender_live_bench"}, clock);
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message().c_str());
    return 1;
  }
  kube::Client& client = *(*connection)->client;
  GangObserver observer(client, clock, log);
  kube::Status ready = observer.Start();
  if (ready) ready = ShareGpuMemory(client, kGpusOfNode, kGib);
  if (!ready) {
    std::fprintf(stderr, "%s\n", ready.error().message().c_str());
    return 1;
  }
  const GangWorld world{client, observer, clock, args.kubeconfig, args.manager, args.threads};
  return Bench(args, world).Run() ? 0 : 1;
}

bool Parse(int argc, char** argv, Arguments& args) {
  if (argc < 5) return false;
  args.kubeconfig = argv[1];
  args.manager = argv[2];
  args.scheduler = argv[3];
  args.folder = argv[4];
  for (int i = 5; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    int* const number = name == "--rounds"    ? &args.rounds
                        : name == "--pods"    ? &args.pods
                        : name == "--threads" ? &args.threads
                                              : nullptr;
    if (number == nullptr) return false;
    *number = std::atoi(argv[i + 1]);
  }
  return argc % 2 == 1 && args.rounds > 0 && args.pods > 0 && args.threads > 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Arguments args;
  if (bench::Parse(argc, argv, args)) return bench::Run(args);
  std::fprintf(stderr,
               "usage: extender_live_bench KUBECONFIG GRUS_MANAGER KUBE_SCHEDULER FOLDER [--rounds N] [--pods N] "
               "[--threads N]\n");
  return 2;
}
