// SPDX-License-Identifier: Apache-2.0
// A queue of gangs longer than the cluster: the workload for gang schedulers of NVIDIA's knavigator
// (github.com/NVIDIA/knavigator, resources/benchmarks/gang-scheduling).
#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "bench/gang_scenarios.h"
#include "bench/manager_run.h"

namespace bench {
namespace {

using std::chrono::seconds;
constexpr int kNodes = 32, kBatches = 9;
constexpr double kPartialSeconds = 3;

// Nine batches in this order, each of which fills 32 nodes: ideally they run one after the other.
std::vector<GangSize> Workload() {
  const std::vector<std::vector<int>> batches = {{32},
                                                 {16, 16},
                                                 {10, 10, 10, 2},
                                                 {8, 8, 8, 8},
                                                 {6, 6, 6, 6, 6, 1, 1},
                                                 {5, 5, 5, 5, 5, 5, 2},
                                                 {4, 4, 4, 4, 4, 4, 4, 2, 1, 1},
                                                 {4, 4, 4, 4, 4, 4, 4, 4},
                                                 {3, 3, 3, 3, 3, 3, 3, 3, 3, 5}};
  std::vector<GangSize> gangs;
  for (const std::vector<int>& batch : batches) {
    for (const int members : batch) {
      const std::string number = std::to_string(100 + gangs.size());
      gangs.push_back({"gang-" + number.substr(1), members, 8});
    }
  }
  return gangs;
}

// Plays the runs: each gang's pods succeed so long after the last of them runs.
class GangQueue {
 public:
  GangQueue(const GangWorld& world, std::string ns, std::vector<GangSize> gangs, seconds run_time)
      : world_(world), ns_(std::move(ns)), gangs_(std::move(gangs)), run_time_(run_time) {}

  // True if all came to their end before `until`.
  bool Play(kube::TimePoint start, kube::TimePoint until) {
    start_ = start;
    while (ended_ < gangs_.size() && world_.clock.Now() < until) {
      if (const auto event = world_.observer.Next(std::min(until, NextEnd())); event && event->pod) Note(*event);
      if (!EndWhatIsDue()) return false;
    }
    for (std::size_t i = 0; i < gangs_.size(); ++i) {
      const GroupState state = world_.observer.Group(ns_, gangs_[i].name);
      if (ended_ == gangs_.size()) break;
      std::fprintf(stderr, "%s of %d: %zu ran, %zu ended; phase %s, reason %s: %s\n", gangs_[i].name.c_str(),
                   gangs_[i].members, of_[gangs_[i].name].run.size(), of_[gangs_[i].name].ended.size(),
                   state.phase.c_str(), state.reason.c_str(), state.message.c_str());
    }
    return ended_ == gangs_.size();
  }
  double longest_start() const { return longest_start_; }
  // Had some, but not all of their nodes for 3 s or more.
  int Partial() const {
    return static_cast<int>(std::count_if(of_.begin(), of_.end(),
                                          [](const auto& gang) { return gang.second.start_took >= kPartialSeconds; }));
  }
  void PrintStarts() {
    for (const GangSize& gang : gangs_) {
      const Progress& progress = of_[gang.name];
      std::printf("  %s of %2d nodes ran from %6.1f s to %6.1f s, first bind to last %6.3f s\n", gang.name.c_str(),
                  gang.members, progress.whole_after, progress.ended_after, progress.start_took);
    }
  }

 private:
  struct Progress {
    std::unordered_set<std::string> bound, run, ended;  // Pods by name.
    kube::TimePoint first_bound;
    double start_took = 0, whole_after = 0, ended_after = 0;
  };

  const GangSize* Find(const std::string& name) const {
    const auto found =
        std::find_if(gangs_.begin(), gangs_.end(), [&](const GangSize& gang) { return gang.name == name; });
    return found == gangs_.end() ? nullptr : &*found;
  }

  void Note(const GangObserver::Event& event) {
    const kube::Pod& pod = *event.pod;
    const GangSize* gang = Find(std::string(pod.metadata.Label(api::kPodGroupLabel)));
    if (gang == nullptr) return;
    Progress& progress = of_[gang->name];
    const std::size_t members = static_cast<std::size_t>(gang->members);
    if (IsBound(pod) && progress.bound.insert(pod.metadata.name).second) {
      if (progress.bound.size() == 1) progress.first_bound = event.at;
      if (progress.bound.size() == members) {
        progress.start_took = std::chrono::duration<double>(event.at - progress.first_bound).count();
        longest_start_ = std::max(longest_start_, progress.start_took);
      }
    }
    if (pod.status.phase == "Running" && progress.run.insert(pod.metadata.name).second &&
        progress.run.size() == members) {
      progress.whole_after = SecondsSince(start_, world_.clock);
      due_.push_back({event.at + run_time_, gang});
    }
    if (pod.status.phase == "Succeeded" && progress.ended.insert(pod.metadata.name).second &&
        progress.ended.size() == members) {
      progress.ended_after = SecondsSince(start_, world_.clock);
      ++ended_;
    }
  }

  kube::TimePoint NextEnd() const {  // Gangs that came later end later.
    return due_.empty() ? kube::TimePoint::max() : due_.front().at;
  }

  bool EndWhatIsDue() {
    std::vector<std::string> pods;
    for (; !due_.empty() && due_.front().at <= world_.clock.Now(); due_.pop_front()) {
      for (int i = 0; i < due_.front().gang->members; ++i)
        pods.push_back(due_.front().gang->name + "-" + std::to_string(i));
    }
    kube::Json patch = kube::Json::MakeObject();
    patch["metadata"]["annotations"]["grus.test/outcome"] = "succeed";
    return InParallel(static_cast<int>(pods.size()), world_.threads, [&](int i) -> kube::Status {
      auto patched = world_.client.Patch(kube::KindOf<kube::Pod>(), {ns_, pods[static_cast<std::size_t>(i)]},
                                         kube::PatchType::kMerge, patch);
      if (!patched) return std::move(patched).error();
      return {};
    });
  }

  struct Due {
    kube::TimePoint at;
    const GangSize* gang;
  };
  const GangWorld& world_;
  const std::string ns_;
  const std::vector<GangSize> gangs_;
  const seconds run_time_;
  kube::TimePoint start_;
  std::unordered_map<std::string, Progress> of_;  // By gang.
  std::deque<Due> due_;                           // In order.
  std::size_t ended_ = 0;
  double longest_start_ = 0;
};

}  // namespace

bool RunKnavigator(const GangWorld& world, const QueueOptions& options) {
  BenchNamespace ns(world, "knavigator");
  if (!ns.Exists()) return false;
  ManagerRun manager(world.manager, world.ManagerArguments("gang", options.nominations),
                     "build/gang-bench-knavigator.log", world.clock);
  if (!manager.WaitUntilReady(world.clock.Now() + seconds(30))) return false;
  const ManagerCounters before = manager.Counters();
  const std::vector<GangSize> gangs = Workload();
  const int pods = TotalMembers(gangs);

  world.observer.Record(ns.name());
  const kube::TimePoint start = world.clock.Now();
  if (!CreateGangs(world, ns.name(), gangs)) return false;
  const seconds run_time(options.run_seconds);
  GangQueue queue(world, ns.name(), gangs, run_time);
  const bool is_done = queue.Play(start, start + std::chrono::minutes(10));
  const double makespan = SecondsSince(start, world.clock);
  world.observer.Record("");
  queue.PrintStarts();
  if (!is_done) return false;

  std::printf("\n%zu gangs of %d whole-node pods on %d nodes, each runs %d s; ideally %d s\n", gangs.size(), pods,
              kNodes, options.run_seconds, kBatches * options.run_seconds);
  PrintRow("makespan", makespan, "s", kBatches * options.run_seconds / 0.9);
  PrintRow("gangs that had a part of their nodes for 3 s or more", queue.Partial(), "", 0);
  PrintRow("nodes in use", static_cast<double>(pods) * options.run_seconds / (kNodes * makespan), "");
  PrintRow("longest time from a gang's first bind to its last", queue.longest_start(), "s");
  PrintRow("grus-manager: CPU", manager.process().CpuSeconds(), "s");
  PrintRow("grus-manager: peak memory", manager.process().PeakMemoryMib(), "MiB");
  PrintRow("grus-manager: writes a pod", (manager.Counters().writes - before.writes) / pods, "");
  return true;
}

}  // namespace bench
