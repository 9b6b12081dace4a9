// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/trial_workloads.h"

#include <set>

#include "controllers/trial/trial_view.h"
#include "tests/campaign/elastic_workload.h"
#include "tests/campaign/gang_invariants.h"

namespace grus::testing {
namespace {

constexpr char kTrialJobs[] = "trialjobs.ai.centauruscloud.io";
constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io";
constexpr char kTune[] = "tune";

std::string TunePhase(const World& world) {
  const Json* job = world.Get(kTrialJobs, {kNamespace, kTune});
  return job ? Text(*job, {"status", "phase"}) : "";
}

// The label of a trial says it, on the job or on the pod.
bool IsTrial(const Json& object) { return !Text(object, {"metadata", "labels", kTrialJobLabel}).empty(); }

// Trainings that say how fast they are, every two seconds and for ever.
void Train(World& world) {
  for (const std::string_view resource : {std::string_view(kJobs), std::string_view("pods")}) {
    for (const auto& trial : world.server.List(resource, kNamespace)) {
      if (!IsTrial(*trial) || Text(*trial, {"status", "phase"}) != "Running") continue;
      Json pushed = *trial;
      Json& rate = pushed["metadata"]["annotations"][kPushedSamplesAnnotation];
      rate = rate == Json("100.2") ? "99.8" : "100.2";
      (void)world.server.Update(resource, std::move(pushed));
    }
  }
  world.simulation.After(std::chrono::seconds(2), [&world] { Train(world); });
}

// A trial is tried once: no job of its name is made a second time while the TrialJob runs on, and no pod after one that
// ran. (A pod that did not run has tried nothing: its gang may have been rolled back.)
kube::testing::Invariant NoTrialTwice() {
  return [tried = std::set<std::string>()](const World&, const kube::testing::ServerChange& change) mutable {
    const bool is_job = change.resource == kJobs, is_pod = change.resource == "pods";
    if ((!is_job && !is_pod) || !change.after || !IsTrial(*change.after)) return std::string();
    const std::string name = Text(*change.after, {"metadata", "name"});
    if (!change.before && tried.contains(name)) return name + " is made a second time";
    if (is_job || Text(*change.after, {"status", "phase"}) == "Running") tried.insert(name);
    return std::string();
  };
}

constexpr char kJobTemplate[] = R"({"template":{"spec":{"launcherSpec":{"image":"a","pythonCommand":["p"]},
    "workersSpec":{"image":"a"}}}})";
constexpr char kTorchrun[] =
    R"({"podTemplate":{"spec":{"containers":[{"name":"train","image":"a","command":["torchrun","train.py"]}]}}})";
constexpr char kPodTemplate[] = R"({"podTemplate":{"spec":{"containers":[{"name":"train","image":"a"}]}}})";

class TrialWorkload final : public kube::testing::Workload {
 public:
  // `workload`: spec.workload of the TrialJob. `nodes`: their GPUs; each trial has only one choice of them, because on
  // how many nodes it comes is told, and should not hang on faults.
  TrialWorkload(std::string_view name, std::string_view workload, std::vector<int> nodes)
      : name_(name), workload_(workload), nodes_(std::move(nodes)) {}

  std::string_view name() const override { return name_; }
  void Prepare(World& world) const override {
    CreateCrds(world);
    for (std::size_t i = 0; i < nodes_.size(); ++i) AddNode(world, "node-" + std::to_string(i), nodes_[i]);
    Json tune = FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob",
        "metadata":{"name":"tune","namespace":"default"},"spec":{"space":{"gpuCounts":[2,4]},
        "measure":{"source":"Push"},"earlyStop":true}})");
    tune["spec"]["workload"] = FromText(workload_);
    Must(world.server.Create(kTrialJobs, std::move(tune)));
    world.simulation.After(std::chrono::seconds(2), [&world] { Train(world); });
  }
  std::vector<Step> Steps() const override {
    return {Until("it succeeds and nothing is left", [](const World& world) {
      return TunePhase(world) == "Succeeded" && world.All(kJobs).empty() && world.All("pods").empty() &&
             world.All(kGroups).empty();
    })};
  }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override {
    RunApp(context, false, Nominations::kAuto, std::move(stop));
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

 private:
  const std::string name_, workload_;
  const std::vector<int> nodes_;
};

}  // namespace

kube::testing::Workloads TrialWorkloads() {
  kube::testing::Workloads workloads;
  const std::vector<int> one = {16}, two = {2, 2};
  workloads.push_back(std::make_unique<TrialWorkload>("trials-find-the-knee", kJobTemplate, one));
  workloads.push_back(std::make_unique<TrialWorkload>("trials-that-are-pods", kPodTemplate, one));
  workloads.push_back(std::make_unique<TrialWorkload>("trials-on-two-nodes", kTorchrun, two));
  return workloads;
}

}  // namespace grus::testing
