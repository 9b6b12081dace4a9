// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/endurance.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "clientlib/testing/faults/faulty_network.h"
#include "controllers/trial/trial_view.h"
#include "tests/campaign/elastic_workload.h"
#include "tests/campaign/gang_workload.h"
#include "tests/campaign/trial_invariants.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;

constexpr double kGrowth = 0.02;                                   // From the third quarter to the last.
constexpr kube::Duration kPauseBetweenLives = 20s, kRest = 15min;  // The rest is the end of each hour.
constexpr char kSets[] = "statefulsets.apps";
// All that belongs to somebody, by resource. Events and leases are what a server keeps of the past.
constexpr const char* kOfUsers[] = {kJobs,        kTrialJobs, kGroups,      kSets,    "pods",
                                    "jobs.batch", "services", "configmaps", "secrets"};

class Endurance {
 public:
  explicit Endurance(std::uint64_t seed) : world_(seed), network_(world_.simulation, world_.server, {}, {}) {}

  int Run(int hours) {
    CreateCrds(world_);
    for (int node = 0; node < 4; ++node) AddNode(world_, "node-" + std::to_string(node), 8);
    kube::Thread process = world_.simulation.SpawnProcess(0, [this](const std::stop_token& stop) {
      const auto line = network_.Attach(0, "manager");
      RunApp({world_.simulation, *line, "manager"}, true, Nominations::kAuto, stop);
    });
    Print();
    std::printf("  hour   lives  ended well   writes  heap in use\n");
    for (int hour = 1; hour <= hours; ++hour) {
      is_open_ = true;
      Live();
      world_.simulation.RunFor(1h - kRest);
      is_open_ = false;
      world_.simulation.RunFor(kRest);
      Note(hour);
    }
    process.RequestStop();
    process.Join();
    return Judge();
  }

 private:
  void After(kube::Duration delay, std::function<void()> act) { world_.simulation.After(delay, std::move(act)); }
  int Below(int n) { return static_cast<int>(world_.simulation.random()() % static_cast<std::uint64_t>(n)); }

  // Somebody's life begins, and the next one's a little later.
  void Live() {
    if (!is_open_) return;
    const int number = lives_++;
    const std::string name = "life-" + std::to_string(number);
    if (number % 3 == 0) LiveAsJob(name);
    else if (number % 3 == 1) LiveAsGang(name);
    else LiveAsTrial(name);
    After(world_.simulation.Between(kPauseBetweenLives / 2, kPauseBetweenLives * 3 / 2), [this] { Live(); });
  }

  void LiveAsJob(const std::string& name) {
    Submit(
        world_, name,
        R"({"workersSpec":{"minReplicas":1,"maxReplicas":4,"targetReplicas":)" + std::to_string(1 + Below(3)) + "}}");
    const kube::Duration lasts = world_.simulation.Between(10s, 4min);
    if (Below(3) == 0)
      After(lasts / 2, [this, name] { Edit(world_, name, R"({"workersSpec":{"targetReplicas":4}})"); });
    const bool succeeds = Below(2) == 0;
    After(lasts, [this, name, succeeds] {
      if (succeeds) EndTraining(world_, name, "succeed");
    });
    End(kJobs, name, succeeds ? lasts + 2min : lasts, "Succeeded");
  }

  void LiveAsGang(const std::string& name) {
    const int members = 2 + Below(3);
    SubmitGroup(world_, name, members, 60);
    SubmitSet(world_, name, members, 1);
    const kube::Duration lasts = world_.simulation.Between(5s, 4min);
    End(kSets, name, lasts, "");
    End(kGroups, name, lasts + 20s, "Running");
  }

  void LiveAsTrial(const std::string& name) {
    Json job = FromText(
        R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob","metadata":{"namespace":"default"},"spec":{
            "workload":{"podTemplate":{"spec":{"containers":[{"name":"train","image":"a","command":["train"]}]}}},
            "space":{"gpuCounts":[1,2]},"measure":{"windowSeconds":20}}})");
    job["metadata"]["name"] = name;
    Must(world_.server.Create(kTrialJobs, std::move(job)));
    End(kTrialJobs, name, world_.simulation.Between(5s, 8min), "Succeeded");
  }

  // Deletes it then, and counts whether it had come that far.
  void End(const std::string& resource, const std::string& name, kube::Duration after, const std::string& good) {
    After(after, [this, resource, name, good] {
      const auto object = world_.server.Get(resource, {kNamespace, name});
      if (object && !good.empty() && Text(*object, {"status", "phase"}) == good) ++ended_well_;
      Delete(world_, resource, name);
    });
  }

  // What trials print.
  void Print() {
    for (const auto& pod : world_.server.List("pods", kNamespace)) {
      if (Text(*pod, {"status", "phase"}) != "Running" || Text(*pod, {"metadata", "labels", kTrialJobLabel}).empty())
        continue;
      const auto step = world_.simulation.Now().time_since_epoch() / 1s;
      world_.server.AppendPodLog(kube::testing::KeyOf(*pod), "train", world_.simulation.WallNow(),
                                 "step " + std::to_string(step) + " loss 2.3 total speed 100.0 samples/s\n");
    }
    After(2s, [this] { Print(); });
  }

  void Note(int hour) {
    for (const char* resource : kOfUsers) {
      for (const auto& object : world_.server.List(resource))
        left_.insert(resource + (" " + kube::testing::KeyOf(*object).name));
    }
    for (const auto& event : world_.server.List("events.events.k8s.io")) {
      (void)world_.server.Delete("events.events.k8s.io", kube::testing::KeyOf(*event));
    }
    world_.simulation.RunFor(1min);
    world_.server.Compact();
    world_.changes = {};
    const std::size_t heap = mallinfo2().uordblks;
    heap_.push_back(heap);
    std::printf("  %4d %7d %11d %8d  %8.0f KiB\n", hour, lives_, ended_well_, network_.writes(),
                static_cast<double>(heap) / 1024);
    std::fflush(stdout);
  }

  int Judge() {
    int failed = 0;
    const auto check = [&failed](bool holds, const std::string& what) {
      std::printf("%-6s%s\n", holds ? "ok" : "FAIL", what.c_str());
      if (!holds) ++failed;
    };
    check(left_.empty(), "nothing was left" + (left_.empty() ? "" : ": " + *left_.begin()));
    check(ended_well_ * 3 > lives_,
          "many ended well: " + std::to_string(ended_well_) + " of " + std::to_string(lives_));
    const auto quarter = static_cast<std::ptrdiff_t>(heap_.size() / 4);
    const auto mean = [quarter](auto end) {
      return std::accumulate(end - quarter, end, 0.0) / static_cast<double>(quarter);
    };
    const double last = mean(heap_.end()), before = mean(heap_.end() - quarter);
    char text[100];
    std::snprintf(text, sizeof text, "the heap of the last quarter is that of the third one: %+.2f %%",
                  100 * (last / before - 1));
    check(last <= before * (1 + kGrowth), text);
    std::printf("%d passed, %d failed\n", 3 - failed, failed);
    return failed == 0 ? 0 : 1;
  }

  World world_;
  kube::testing::FaultyNetwork network_;
  bool is_open_ = false;
  int lives_ = 0, ended_well_ = 0;
  std::vector<std::size_t> heap_;  // At the end of each hour.
  std::set<std::string> left_;
};

}  // namespace

int RunEndurance(int hours, std::uint64_t seed) { return Endurance(seed).Run(hours); }

}  // namespace grus::testing
