// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/usage_stories.h"

#include <algorithm>
#include <memory>

#include "controllers/policy/workload_fingerprint.h"
#include "tests/campaign/elastic_invariants.h"
#include "tests/campaign/elastic_stories.h"
#include "tests/campaign/fake_prometheus.h"
#include "tests/campaign/usage_invariants.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;

// A write of a run that fails is tried again after 2, 4, 8 and 16 minutes.
constexpr kube::Duration kWritesAreTried = 31min;

struct UsageStory {
  std::string name;
  std::function<void(World& world)> prepare;
  std::vector<Step> steps;
  UsageJudgement judgement = UsageJudgement::kExact;
};

class UsageWorkload final : public kube::testing::Workload {
 public:
  explicit UsageWorkload(UsageStory story) : story_(std::move(story)) {}

  std::string_view name() const override { return story_.name; }
  void Prepare(World& world) const override {
    world.asked = std::make_unique<FakePrometheus>(world);
    CreateCrds(world);
    for (const char* node : {"node-0", "node-1"})
      AddNode(world, node, 20, Json::MakeObject({{kGpuProductLabel, "A100"}}));
    KeepPrinting(world);
    story_.prepare(world);
  }
  std::vector<Step> Steps() const override { return story_.steps; }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override {
    RunApp(context, false, Nominations::kAuto, std::move(stop));
  }
  bool Suffers(const kube::testing::FaultKind& kind) const override {
    switch (story_.judgement) {
      case UsageJudgement::kExact: return kind.point == kube::testing::FaultPoint::kQuery;
      case UsageJudgement::kDeaths: return kind.name.starts_with("crash-");
      case UsageJudgement::kLoose: break;
    }
    return !kind.name.starts_with("clock-");  // By the wall clock, runs are an hour longer then, or shorter.
  }
  std::vector<std::string> owned_resources() const override { return elastic_.owned_resources(); }
  bool AreCounted(std::string_view resource) const override { return elastic_.AreCounted(resource); }
  bool Damage(std::string_view resource, Json& object) const override {
    return resource != kPods && resource != kLaunchers && elastic_.Damage(resource, object);
  }
  std::string NameOf(std::string_view resource, const Json& object) const override {
    return elastic_.NameOf(resource, object);
  }
  void Mask(std::string_view resource, Json& object) const override {
    if (resource == kProfiles) object = Json();  // CheckUsage() judges them.
    else elastic_.Mask(resource, object);
    // A profile is there once numbers were told, which faults may keep back.
    if (resource == kJobs) object["status"].Erase("profile");
  }
  std::vector<kube::testing::Invariant> Invariants() const override {
    std::vector<kube::testing::Invariant> all = elastic_.Invariants();
    for (auto& invariant : UsageInvariants(story_.judgement)) all.push_back(std::move(invariant));
    return all;
  }
  std::vector<std::string> CheckRest(const World& world) const override {
    std::vector<std::string> complaints = elastic_.CheckRest(world);
    CheckUsage(world, story_.judgement, complaints);
    return complaints;
  }

 private:
  const UsageStory story_;
  const ElasticWorkload elastic_{{}};  // What it says of jobs holds here, too.
};

// Containers with that load, and a GPU each.
Json PodSpec(int load) {
  Json spec = FromText(R"({"restartPolicy":"Never","containers":[{"name":"main","resources":{"limits":{
      "nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}}}]})");
  (*spec["containers"].AsArray())[0]["image"] = "registry.test/load-" + std::to_string(load) + ":1";
  return spec;
}

void AddPod(World& world, const std::string& name, int load) {
  Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default"}})");
  pod["metadata"]["name"] = name;
  pod["spec"] = PodSpec(load);
  Must(world.server.Create(kPods, std::move(pod)));
}

// A Job of two pods, which take 20 s to stop.
void AddJob(World& world, const std::string& name, int load) {
  Json job = FromText(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default"},"spec":{
      "parallelism":2,"completions":2,"template":{"metadata":{"annotations":{"grus.test/stop-seconds":"20"}}}}})");
  job["metadata"]["name"] = name;
  job["spec"]["template"]["spec"] = PodSpec(load);
  Must(world.server.Create(kLaunchers, std::move(job)));
}

bool IsOf(const Json& pod, const std::string& job) {
  const Json* owner = kube::testing::ControllerOf(pod);
  return Text(pod, {"metadata", "name"}) == job || (owner != nullptr && Text(*owner, {"name"}) == job);
}
std::int64_t CountRunning(const World& world, const std::string& job) {
  return std::ranges::count_if(world.All(kPods), [&](const auto& entry) {
    return IsOf(*entry.second, job) && Text(*entry.second, {"status", "phase"}) == "Running";
  });
}
void Vanish(World& world, const std::string& job) {
  const Json now = FromText(R"({"gracePeriodSeconds":0,"propagationPolicy":"Background"})");
  (void)world.server.Delete(kLaunchers, {kNamespace, job}, now);
  for (const auto& pod : world.server.List(kPods, kNamespace)) {
    if (IsOf(*pod, job)) (void)world.server.Delete(kPods, kube::testing::KeyOf(*pod), now);
  }
}
void OwnerGoes(World& world, const std::string& job) {
  (void)world.server.Delete(kLaunchers, {kNamespace, job}, FromText(R"({"propagationPolicy":"Background"})"));
}
void Succeed(World& world, const std::string& name) {
  const auto pod = world.server.Get(kPods, {kNamespace, name});
  if (!pod) return;
  Json ended = *pod;
  ended["metadata"]["annotations"]["grus.test/outcome"] = "succeed";
  Must(world.server.Update(kPods, std::move(ended)));
}

Step After(Step step, kube::Duration lasts) {
  step.lasts = lasts;
  return step;
}
bool AllGone(const World& world) {
  return std::ranges::none_of(world.All(kPods), [](const auto& entry) {
    return Text(*entry.second, {"status", "phase"}) == "Running" ||
           Text(*entry.second, {"status", "phase"}) == "Pending";
  });
}

// An elastic job, a Job and a pod run; the first is resized; another Job vanishes with all its pods at once; an owner
// goes before its pods; a pod ends and stays.
UsageStory Lives(std::string name, UsageJudgement judgement) {
  return {.name = std::move(name),
          .prepare =
              [](World& world) {
                Submit(world, kName, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4,
                    "image":"registry.test/load-70:1"}})");
                AddPod(world, "single", 30);
                AddJob(world, "batch", 40);  // Also keeps the workers gated at first: it could take their places.
              },
          .steps = {After(Until(
                              "it trains", [](const World& world) { return Trains(world, kName, 4); }, [](World&) {}),
                          125s),
                    After(Until(
                              "they have run for two sweeps", [](const World&) { return true; },
                              [](World& world) { AddJob(world, "flash", 55); }),
                          150s),
                    After(Until(
                              "another job has run for two sweeps", [](const World&) { return true; },
                              [](World& world) { Vanish(world, "flash"); }),
                          90s),
                    After(Until(
                              "it was seen what they are", [](const World&) { return true; },
                              Edits(R"({"workersSpec":{"maxReplicas":2}})")),
                          130s),
                    After(Until(
                              "it trains with less", [](const World& world) { return Trains(world, kName, 2); },
                              [](World& world) { OwnerGoes(world, "batch"); }),
                          90s),
                    After(Until(
                              "all but one have ended",
                              [](const World& world) { return CountRunning(world, "batch") == 0; },
                              [](World& world) {
                                EndTraining(world, kName, "succeed");
                                Succeed(world, "single");
                              }),
                          30s),
                    After(Until(
                              "all have ended",
                              [](const World& world) { return PhaseOf(world, kName) == "Succeeded" && AllGone(world); },
                              [](World&) {}),
                          judgement == UsageJudgement::kLoose ? kWritesAreTried : 0s),
                    Until("so do their runs", [](const World&) { return true; })},
          .judgement = judgement};
}

// A job and a pod are deleted, and others of their names do less.
UsageStory Again() {
  const auto begin = [](World& world, int load) {
    Submit(world, kName,
           R"({"workersSpec":{"minReplicas":2,"maxReplicas":2,"image":"registry.test/load-)" + std::to_string(load) +
               R"(:1"}})");
    AddPod(world, "single", load + 10);
  };
  return {.name = "usage-of-names-taken-again",
          .prepare = [begin](World& world) { begin(world, 80); },
          .steps = {After(UntilTrains(2, [](World&) {}), 130s),
                    Until(
                        "they have run for two sweeps", [](const World&) { return true; },
                        [](World& world) {
                          Vanish(world, "single");
                          Delete(world, kJobs, kName);
                        }),
                    Until(
                        "they are gone", [](const World& world) { return AllGone(world) && LeftNothing(world, kName); },
                        [begin](World& world) { begin(world, 20); }),
                    // Numbers of a name may be of the first for ten minutes.
                    After(UntilTrains(2, [](World&) {}), 13min),
                    After(Until(
                              "the others were seen, too", [](const World&) { return true; },
                              [](World& world) {
                                EndTraining(world, kName, "succeed");
                                Succeed(world, "single");
                              }),
                          30s),
                    Until("all have ended",
                          [](const World& world) { return PhaseOf(world, kName) == "Succeeded" && AllGone(world); })}};
}

// More runs of one workload than its profile keeps: twice 18 pods that vanish.
UsageStory Many() {
  const auto name = [](int number) { return "pod-" + std::to_string(number); };
  const auto begin = [name](int first) {
    return [name, first](World& world) {
      for (int number = first; number < first + 18; ++number) AddPod(world, name(number), 60);
    };
  };
  const auto vanish = [name](World& world) {
    for (int number = 0; number < 36; ++number) Vanish(world, name(number));
  };
  return {.name = "usage-of-many-runs",
          .prepare = begin(0),
          .steps = {After(Until(
                              "they are there", [](const World&) { return true; }, [](World&) {}),
                          130s),
                    After(Until(
                              "they have run for two sweeps", [](const World&) { return true; }, vanish),
                          90s),
                    After(Until(
                              "others come", [](const World&) { return true; }, begin(18)),
                          130s),
                    After(Until(
                              "they have run, too", [](const World&) { return true; }, vanish),
                          90s),
                    Until("all are gone", AllGone)}};
}

}  // namespace

kube::testing::Workloads UsageStories() {
  kube::testing::Workloads stories;
  for (UsageStory story :
       {Lives("usage", UsageJudgement::kExact), Again(), Many(), Lives("usage-and-deaths", UsageJudgement::kDeaths)}) {
    stories.push_back(std::make_unique<UsageWorkload>(std::move(story)));
  }
  return stories;
}

kube::testing::Workloads UsageUnderFaults() {
  kube::testing::Workloads stories;
  stories.push_back(std::make_unique<UsageWorkload>(Lives("usage-under-faults", UsageJudgement::kLoose)));
  return stories;
}

}  // namespace grus::testing
