// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/trial_workloads.h"

#include <set>

#include "controllers/trial/trial_view.h"
#include "tests/campaign/elastic_workload.h"

namespace grus::testing {
namespace {

constexpr char kTrialJobs[] = "trialjobs.ai.centauruscloud.io";
constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io";
constexpr char kTune[] = "tune";

std::string TunePhase(const World& world) {
  const Json* job = world.Get(kTrialJobs, {kNamespace, kTune});
  return job ? Text(*job, {"status", "phase"}) : "";
}

// Trainings that say how fast they are, every two seconds and for ever.
void Train(World& world) {
  for (const auto& job : world.server.List(kJobs, kNamespace)) {
    if (Text(*job, {"metadata", "labels", kTrialJobLabel}).empty() || Text(*job, {"status", "phase"}) != "Running") continue;
    Json pushed = *job;
    Json& rate = pushed["metadata"]["annotations"][kPushedSamplesAnnotation];
    rate = rate == Json("100.2") ? "99.8" : "100.2";
    (void)world.server.Update(kJobs, std::move(pushed), "training");
  }
  world.simulation.After(std::chrono::seconds(2), [&world] { Train(world); });
}

// A trial is tried once: no second job of its name is made while the TrialJob runs on.
kube::testing::Invariant NoTrialTwice() {
  return [made = std::set<std::string>()](const World&, const kube::testing::ServerChange& change) mutable {
    if (change.resource != kJobs || change.before || !change.after) return std::string();
    if (Text(*change.after, {"metadata", "labels", kTrialJobLabel}).empty()) return std::string();
    const std::string name = Text(*change.after, {"metadata", "name"});
    return made.insert(name).second ? std::string() : name + " is made a second time";
  };
}

class TrialWorkload final : public kube::testing::Workload {
 public:
  std::string_view name() const override { return "trials-find-the-knee"; }
  void Prepare(World& world) const override {
    CreateCrds(world);
    for (int i = 0; i < 2; ++i) AddNode(world, "node-" + std::to_string(i), 8);
    Must(world.server.Create(kTrialJobs, Parse(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob",
        "metadata":{"name":"tune","namespace":"default"},"spec":{"space":{"gpuCounts":[2,4]},"measure":{"source":"Push"},
        "earlyStop":true,"workload":{"template":{"spec":{"launcherSpec":{"image":"a","pythonCommand":["p"]},
        "workersSpec":{"image":"a"}}}}}})"), "kubectl"));
    world.simulation.After(std::chrono::seconds(2), [&world] { Train(world); });
  }
  std::vector<Step> Steps() const override {
    return {Until("it succeeds and nothing is left", [](const World& world) {
      return TunePhase(world) == "Succeeded" && world.All(kJobs).empty() && world.All("pods").empty();
    })};
  }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override {
    RunSuite(context, false, Nominations::kAuto, std::move(stop));
  }
  std::vector<std::string> owned_resources() const override { return {}; }
  bool Damage(std::string_view, Json&) const override { return false; }
  void Mask(std::string_view resource, Json& object) const override {
    if (resource == "nodes" || resource == "namespaces") object = Json();
    // A measurement that may not be kept is told, and ends nothing.
    if (resource == kProfiles) object = Json();
    if (resource != kTrialJobs) return;
    SortConditions(object);
    Json& status = object["status"];
    // What was measured, and what it cost, is the time that the faults took.
    for (const char* field : {"spent", "curve", "model", "recommendation"}) status.Erase(field);
    if (Json* conditions = status.Find("conditions"); conditions && conditions->AsArray()) {
      for (Json& condition : *conditions->AsArray()) condition.Erase("message");
    }
    if (Json* trials = status.Find("trials"); trials && trials->AsArray()) {
      for (Json& trial : *trials->AsArray()) {
        for (const char* field : {"measured", "gpuSeconds", "message", "reason"}) trial.Erase(field);
      }
    }
  }
  std::vector<kube::testing::Invariant> Invariants() const override { return {NoGpuTwice, NoTrialTwice()}; }
  std::vector<std::string> CheckRest(const World& world) const override {
    std::vector<std::string> complaints;
    CheckOwners(world, complaints);
    CheckGenerations(world, kTrialJobs, {"Succeeded", "Failed"}, complaints);
    return complaints;
  }
};

}  // namespace

kube::testing::Workloads TrialWorkloads() {
  kube::testing::Workloads workloads;
  workloads.push_back(std::make_unique<TrialWorkload>());
  return workloads;
}

}  // namespace grus::testing
