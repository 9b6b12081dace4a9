// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/trial_lives.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>

#include "controllers/cluster/owners.h"
#include "controllers/trial/trial_view.h"
#include "tests/campaign/elastic_workload.h"
#include "tests/campaign/trial_invariants.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;

constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io", kGroups[] = "podgroups.scheduling.x-k8s.io";
constexpr char kTune[] = "tune", kAgain[] = "again";

constexpr char kPods[] = R"({"template":null,"podTemplate":{"spec":{"containers":[
    {"name":"train","image":"a","command":["python","train.py"]}]}}})";

// How long faults may keep the manager from what it should know or do: nothing is seen for 40 s, or the process stands
// still for as long, and the server is away for 20 s; then pods that are late are asked for within a few seconds.
constexpr kube::Duration kLateness = std::chrono::seconds(60);

constexpr TrialSetting kOutOfMemory{1, 64}, kEndsByItself{2, 64}, kStopped{4, 32}, kSilent{4, 64};

// A pod whose log is that of a trial, which is this pod or its job.
struct Training {
  std::string trial, container;
  TrialSetting setting;
};

std::optional<Training> TrainingIn(const World& world, const Json& pod) {
  if (Text(pod, {"status", "phase"}) != "Running") return std::nullopt;
  if (!Text(pod, {"metadata", "labels", kTrialJobLabel}).empty()) {
    return Training{Text(pod, {"metadata", "name"}), "train", SettingOf(pod)};
  }
  const std::string name = Text(pod, {"metadata", "labels", kJobNameLabel});
  const auto job = world.server.Get(kJobs, {kNamespace, name});
  if (Text(pod, {"metadata", "labels", kRoleLabel}) != "launcher" || !job) return std::nullopt;
  return Training{name, "launcher", SettingOf(*job)};
}

void End(World& world, const Json& pod, const Training& training, const std::string& outcome) {
  if (training.container == "launcher") return EndTraining(world, training.trial, outcome);
  Json ended = pod;
  ended["metadata"]["annotations"]["grus.test/outcome"] = outcome;
  Must(world.server.Update("pods", std::move(ended)));
}

// What a training prints every two seconds, and what becomes of it. One of them ends after so many lines.
void Train(World& world, int lines) {
  for (const auto& pod : world.server.List("pods", kNamespace)) {
    const std::optional<Training> training = TrainingIn(world, *pod);
    if (!training) continue;
    const TrialSetting& setting = training->setting;
    const auto print = [&](const std::string& line) {
      const kube::ObjectKey key{kNamespace, Text(*pod, {"metadata", "name"})};
      world.server.AppendPodLog(key, training->container, world.simulation.WallNow(), line + "\n");
    };
    if (setting == kSilent) continue;
    if (setting == kOutOfMemory) {
      print("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB");
      End(world, *pod, *training, "fail");
      continue;
    }
    const auto step = world.simulation.Now().time_since_epoch() / std::chrono::seconds(1);
    // Too uneven to be known precisely before it ends.
    const double spread = setting == kEndsByItself ? 0.1 : 0.002;
    if (setting == kEndsByItself && --lines == 0) End(world, *pod, *training, "succeed");
    // One batch size is the better one, whatever the noise.
    const double factor = setting.batch_size == 32 ? 1 : 0.9;
    const double mean = 100 * factor * std::pow(static_cast<double>(setting.gpus), 0.8);
    const double speed = mean * (step % 4 < 2 ? 1 + spread : 1 - spread);
    char line[80];
    std::snprintf(line, sizeof line, "step %lld loss 2.3 total speed %.1f samples/s", static_cast<long long>(step),
                  speed);
    print(line);
  }
  world.simulation.After(std::chrono::seconds(2), [&world, lines] { Train(world, lines); });
}

void Submit(World& world, const std::string& name, std::string_view spec) {
  Json job =
      FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob","metadata":{"namespace":"default"},
      "spec":{"space":{"batchSizeOption":"--batch-size"},"workload":{"template":{"spec":{
      "launcherSpec":{"image":"a","pythonCommand":["python","train.py"]},"workersSpec":{"image":"a"}}}}}})");
  job["metadata"]["name"] = name;
  kube::MergePatch(job["spec"], FromText(spec));
  Must(world.server.Create(kTrialJobs, std::move(job)));
}

std::string PhaseOfTrials(const World& world, const std::string& name) {
  const Json* job = world.Get(kTrialJobs, {kNamespace, name});
  return job ? Text(*job, {"status", "phase"}) : "";
}
bool NoTrialHolds(const World& world) { return world.All("pods").empty(); }

bool Runs(const World& world, const TrialSetting& setting) {
  const auto pods = world.All("pods");
  return std::any_of(pods.begin(), pods.end(), [&](const auto& entry) {
    const std::optional<Training> training = TrainingIn(world, *entry.second);
    return training && training->setting == setting;
  });
}

// One life: what is there at first, and what its user does.
struct Life {
  std::string name;
  std::function<void(World&)> begin;
  std::vector<Step> steps;
  bool keeps_jobs = false;  // Of trials, by spec.cleanup; that they have no pods is the last step.
};

// With the end of the run without faults: all but times and numbers; what faults have no say in; or nothing, when it is
// the rules that count.
enum class Compared { kAll, kResults, kRules };

class TrialLife final : public kube::testing::Workload {
 public:
  TrialLife(Life life, Compared compared)
      : life_(std::move(life)), has_faults_(compared != Compared::kAll), compared_(compared) {}

  std::string_view name() const override { return life_.name; }
  void Prepare(World& world) const override {
    CreateCrds(world);
    AddNode(world, "node-0", 16);  // One: on how many nodes a trial comes is told, and should not hang on faults.
    life_.begin(world);
  }
  std::vector<Step> Steps() const override { return life_.steps; }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override {
    RunApp(context, false, Nominations::kAuto, std::move(stop));
  }
  // Under faults a trial that was to be stopped may have ended before, and then it is not made again.
  std::vector<std::string> owned_resources() const override {
    return has_faults_ ? std::vector<std::string>() : Children();
  }
  std::vector<std::string> Children() const {
    std::vector<std::string> all = elastic_.owned_resources();
    all.insert(all.end(), {kJobs, kGroups, kProfiles});
    return all;
  }
  bool Damage(std::string_view, Json&) const override { return false; }
  std::string NameOf(std::string_view resource, const Json& object) const override {
    return elastic_.NameOf(resource, object);
  }
  void Mask(std::string_view resource, Json& object) const override {
    elastic_.Mask(resource, object);
    // A measurement that may not be kept is told, and ends nothing.
    const bool is_ours = resource == kTrialJobs || resource == kProfiles;
    if ((compared_ == Compared::kRules && is_ours) || (has_faults_ && resource == kProfiles)) object = Json();
    if (object.is_null()) return;
    if (has_faults_ && resource == kTrialJobs) MaskLateness(object["status"]);
    if (resource == kProfiles) MaskProfile(object);
    if (resource == kTrialJobs) MaskStatus(object);
  }
  std::vector<kube::testing::Invariant> Invariants() const override {
    return {NoGpuTwice, NoSettingTwice(), BudgetIsKept(has_faults_ ? kLateness : kube::Duration::zero())};
  }
  std::vector<std::string> CheckRest(const World& world) const override {
    std::vector<std::string> complaints;
    CheckOwners(world, complaints);
    CheckGenerations(world, kTrialJobs, {"Succeeded", "Failed"}, complaints);
    if (life_.keeps_jobs) return complaints;
    std::vector<std::string> resources = Children();
    resources.push_back("pods");
    for (const std::string& resource : resources) {
      for (const auto& [key, object] : world.All(resource)) {
        const bool is_of_job = resource != kJobs && !Text(*object, {"metadata", "labels", kJobNameLabel}).empty();
        if (is_of_job || !Text(*object, {"metadata", "labels", kTrialJobLabel}).empty()) {
          complaints.push_back(resource + " " + key.ToString() + " is left");
        }
      }
    }
    return complaints;
  }

 private:
  // What was measured, and what it cost, is the time that the faults took.
  static void MaskProfile(Json& object) {
    object.Erase("status");
    Json* points = object["spec"].Find("points");
    if (points == nullptr || points->AsArray() == nullptr) return;
    for (Json& point : *points->AsArray()) {
      for (const char* field : {"measured", "gpuSeconds", "time"}) point.Erase(field);
    }
    // In the order in which they were measured, and two trials may run at a time.
    std::sort(points->AsArray()->begin(), points->AsArray()->end(),
              [](const Json& a, const Json& b) { return Text(a, {"name"}) < Text(b, {"name"}); });
  }
  // What a trial ends with, as far as faults have no say in it.
  static void MaskLateness(Json& status) {
    using Reasons = std::set<std::string>;
    // Its time may be over before it is known to be silent.
    static const Reasons kNotMeasured = {"NoOutput", "TimeSpent"};
    // Its log, which alone says why, may not be had in time.
    static const Reasons kFailed = {"OutOfMemory", "Crashed"};
    // Whether it was precise before it had its time; and whether it was kept for others.
    static const Reasons kMeasured = {"PrecisionReached", "WindowEnded", "FromCache"};
    for (const char* field : {"savedByCache", "startTime"}) status.Erase(field);
    Json* trials = status.Find("trials");
    if (trials == nullptr || trials->AsArray() == nullptr) return;
    for (Json& trial : *trials->AsArray()) {
      const TrialSetting setting{IntAt(trial, {"config", "gpus"}), IntAt(trial, {"config", "batchSize"})};
      const std::string reason = Text(trial, {"reason"});
      // On how many nodes it ran is not known when its pods have come and gone behind a watch that was silent.
      trial["config"].Erase("nodes");
      for (const char* field : {"startTime", "endTime"}) trial.Erase(field);
      if (setting == kSilent && kNotMeasured.contains(reason)) trial["reason"] = "NotMeasured";
      if (setting == kOutOfMemory && kFailed.contains(reason)) trial["reason"] = "Failed";
      if (kMeasured.contains(reason)) trial["reason"] = "Measured";
    }
    // In the order in which they began, and one that is stopped early may wait for its GPUs behind another.
    std::sort(trials->AsArray()->begin(), trials->AsArray()->end(),
              [](const Json& a, const Json& b) { return Text(a, {"name"}) < Text(b, {"name"}); });
  }
  static void MaskStatus(Json& object) {
    SortConditions(object);
    Json& status = object["status"];
    for (const char* field : {"spent", "model"}) status.Erase(field);
    status["savedByCache"].Erase("gpuSeconds");
    for (const char* list : {"curve", "recommendation", "conditions", "trials"}) {
      Json* items = status.Find(list);
      if (items == nullptr || items->AsArray() == nullptr) continue;
      for (Json& item : *items->AsArray()) {
        for (const char* field : {"message", "measured", "gpuSeconds"}) item.Erase(field);
        for (const char* field : {"throughput", "throughputLow", "throughputHigh"}) item.Erase(field);
        for (const char* field : {"speedUp", "efficiency"}) item.Erase(field);
      }
    }
  }

  const Life life_;
  const bool has_faults_;
  const Compared compared_;
  const ElasticWorkload elastic_{{}};  // What it says of the jobs of trials holds here, too.
};

// The life of trials that are made of `workload`.
//
// A trial that is out of memory, one that ends by itself, one that is suspended in its middle and resumed, one that
// says nothing until its slice is over, and no budget for the rest; then the same workload again, which costs nothing.
Life WholeLife(std::string name, const char* workload, const std::string& budget) {
  const auto submit = [workload](World& world, const char* trial_job, const std::string& spec) {
    Json whole = FromText(spec);
    whole["workload"] = FromText(workload);
    Submit(world, trial_job, kube::ToText(whole));
  };
  const auto begin = [submit, budget](World& world) {
    const std::string space = R"("space":{"gpuCounts":[1,2,4,8],"batchSizes":[32,64]})";
    submit(world, kTune, "{" + space + R"(,"budget":{"gpuSeconds":)" + budget + "}}");
    world.simulation.After(std::chrono::seconds(2), [&world] { Train(world, 8); });
  };
  return {
      std::move(name),
      begin,
      {Until(
           "a trial trains on 4 GPUs", [](const World& world) { return Runs(world, kStopped); },
           [](World& world) { EditSpec(world, kTrialJobs, kTune, R"({"suspend":true})"); }),
       Until(
           "it is suspended and nothing is left",
           [](const World& world) { return PhaseOfTrials(world, kTune) == "Suspended" && NoTrialHolds(world); },
           [](World& world) { EditSpec(world, kTrialJobs, kTune, R"({"suspend":false})"); }),
       Until(
           "it succeeds and nothing is left",
           [](const World& world) { return PhaseOfTrials(world, kTune) == "Succeeded" && NoTrialHolds(world); },
           [submit](World& world) { submit(world, kAgain, R"({"space":{"gpuCounts":[1,2,4],"batchSizes":[32]}})"); }),
       Until("so does the other",
             [](const World& world) { return PhaseOfTrials(world, kAgain) == "Succeeded" && NoTrialHolds(world); })}};
}

// Two at a time, of a job that gets the size of the knee; the jobs of the trials are kept.
Life Applied(std::string name) {
  const auto begin = [](World& world) {
    Must(
        world.server.Create(kJobs, FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"ElasticHorovodJob",
        "metadata":{"name":"train","namespace":"default"},"spec":{"launcherSpec":{"image":"a","pythonCommand":["python","train.py"]},
        "workersSpec":{"image":"a","maxReplicas":8},"runPolicy":{"suspend":true}}})")));
    Submit(world, kTune, R"({"workload":{"template":null,"jobRef":{"name":"train"}},"space":{"gpuCounts":[1,2,4],
        "batchSizes":[32]},"strategy":{"parallelism":2},"apply":"Apply","cleanup":"Never"})");
    world.simulation.After(std::chrono::seconds(2), [&world] { Train(world, 0); });
  };
  return {std::move(name),
          begin,
          {Until("it succeeds and nothing is held",
                 [](const World& world) { return PhaseOfTrials(world, kTune) == "Succeeded" && NoTrialHolds(world); })},
          true};
}

// Trials that end with their slices alone, until the budget is spent. Faults may spend of it, so that it is only asked
// that it is kept.
Life Budget() {
  const auto begin = [](World& world) {
    Submit(world, kTune, R"({"space":{"gpuCounts":[1,2,4],"batchSizes":[32]},"budget":{"gpuSeconds":620},
        "earlyStop":false,"measure":{"windowSeconds":3600}})");
    world.simulation.After(std::chrono::seconds(2), [&world] { Train(world, 0); });
  };
  return {"trial-budget-under-faults", begin, {Until("it ends and nothing is left", [](const World& world) {
            const std::string phase = PhaseOfTrials(world, kTune);
            return phase == "Succeeded" && NoTrialHolds(world);
          })}};
}

}  // namespace

kube::testing::Workloads TrialLives() {
  kube::testing::Workloads lives;
  const auto add = [&](Life life) { lives.push_back(std::make_unique<TrialLife>(std::move(life), Compared::kAll)); };
  add(WholeLife("trial-life", "{}", "620"));
  add(WholeLife("trial-life-of-pods", kPods, "620"));
  add(Applied("trial-applied"));
  return lives;
}

kube::testing::Workloads TrialLivesUnderFaults() {
  kube::testing::Workloads lives;
  const auto add = [&](Life life, Compared what) {
    lives.push_back(std::make_unique<TrialLife>(std::move(life), what));
  };
  // Enough for all that is held, and rightly paid for, while faults keep it from its end.
  add(WholeLife("trial-life-under-faults", "{}", "20000"), Compared::kResults);
  add(WholeLife("trial-life-of-pods-under-faults", kPods, "20000"), Compared::kResults);
  add(Applied("trial-applied-under-faults"), Compared::kResults);
  add(Budget(), Compared::kRules);
  return lives;
}

}  // namespace grus::testing
