// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/profile_stories.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>

#include "controllers/cluster/owners.h"
#include "controllers/policy/workload_fingerprint.h"
#include "tests/campaign/elastic_workload.h"

namespace grus::testing {
namespace {

constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io";
constexpr char kName[] = "train";
constexpr char kLater[] = "later";  // A namespace that comes late: steps are looked at when something changes.
constexpr double kSpeed = 500;      // The profile says 800.

// What the launcher prints every two seconds, for ever.
void Train(World& world, int step) {
  for (const auto& pod : world.server.List("pods", kNamespace)) {
    const bool is_launcher = Text(*pod, {"metadata", "labels", kRoleLabel}) == "launcher";
    if (!is_launcher || Text(*pod, {"status", "phase"}) != "Running") continue;
    char line[80];
    const double speed = kSpeed * (step % 2 == 0 ? 0.998 : 1.002);
    std::snprintf(line, sizeof line, "step %d loss 2.3 total speed %.1f samples/s\n", step, speed);
    const kube::ObjectKey key{kNamespace, Text(*pod, {"metadata", "name"})};
    world.server.AppendPodLog(key, "launcher", world.simulation.WallNow(), line);
  }
  world.simulation.After(std::chrono::seconds(2), [&world, step] { Train(world, step + 1); });
}

// The only one, that of the job.
const Json* TheProfile(const World& world) {
  const auto& all = world.All(kProfiles);
  return all.empty() ? nullptr : world.Get(kProfiles, all.begin()->first);
}

// "True SlowerThanMeasured"; empty: nothing is said.
std::string Drifted(const World& world) {
  const Json* profile = TheProfile(world);
  const Json* conditions = profile != nullptr ? profile->At({"status", "conditions"}) : nullptr;
  if (conditions == nullptr || conditions->AsArray() == nullptr) return {};
  for (const Json& condition : *conditions->AsArray()) {
    if (Text(condition, {"type"}) == "Drifted") return Text(condition, {"status"}) + " " + Text(condition, {"reason"});
  }
  return {};
}

// A drift is one write of the status, and what replaces a point one of the spec and one of the status.
kube::testing::Invariant ProfileIsWrittenSeldom() {
  constexpr std::size_t kMost = 4;
  return
      [writes = std::deque<kube::TimePoint>()](const World& world, const kube::testing::ServerChange& change) mutable {
        if (change.resource != kProfiles || !change.before) return std::string();
        const kube::TimePoint now = world.simulation.Now();
        writes.push_back(now);
        while (now - writes.front() > std::chrono::minutes(30)) writes.pop_front();
        if (writes.size() <= kMost) return std::string();
        return "the profile is written " + std::to_string(writes.size()) + " times in half an hour";
      };
}

// A job that is slower than its profile says, and goes on so: the profile says it, and an hour later has the new speed.
class Drift final : public kube::testing::Workload {
 public:
  std::string_view name() const override { return "a-running-job-drifts"; }
  void Prepare(World& world) const override {
    CreateCrds(world);
    AddNode(world, "node-0", 8, Json::MakeObject({{kGpuProductLabel, "A100"}}));
    Json profile = FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"WorkloadProfile","spec":{
        "throughputUnit":"SamplesPerSecond","points":[{"name":"A100-4g-0n-0b","config":{"gpuType":"A100","gpus":4},
        "measured":{"throughput":"800","throughputLow":"790","throughputHigh":"810"},"measuredBy":"default/tune",
        "time":"2020-01-01T00:00:00Z"}]}})");
    Submit(world, kName, R"({"workersSpec":{"minReplicas":4,"maxReplicas":4}})");
    const auto job = kube::Decode<api::ElasticHorovodJob>(ToText(*world.server.Get(kJobs, {kNamespace, kName})));
    const std::string fingerprint = *ProfileNameOf(**job, ProfileTrust::kNamespace);
    profile["metadata"]["name"] = fingerprint;
    profile["spec"]["fingerprint"] = fingerprint;
    Must(world.server.Create(kProfiles, std::move(profile)));
    Edit(world, kName, R"({"profile":")" + fingerprint + R"("})");
    world.simulation.After(std::chrono::seconds(2), [&world] { Train(world, 1); });
    world.simulation.After(std::chrono::minutes(150), [&world] {
      Json later = FromText(R"({"apiVersion":"v1","kind":"Namespace"})");
      later["metadata"]["name"] = kLater;
      Must(world.server.Create("namespaces", std::move(later)));
    });
  }
  std::vector<Step> Steps() const override {
    return {
        Until("it drifts", [](const World& world) { return Drifted(world) == "True SlowerThanMeasured"; }),
        // Who begins anew samples within an hour, and a write that failed is one more.
        Until("it has run for two hours and a half",
              [](const World& world) {
                return world.Get("namespaces", {"", kLater}) != nullptr;
              }),
        Until("that is what it runs at", [](const World& world) { return Drifted(world) == "False MeasuredAgain"; })};
  }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override {
    // Its training counts steps for ever, and each fifth more would be a write: nothing would come to rest.
    RunApp(context, false, Nominations::kAuto, std::move(stop), "profiler");
  }
  std::vector<std::string> owned_resources() const override { return elastic_.owned_resources(); }
  bool AreCounted(std::string_view resource) const override { return elastic_.AreCounted(resource); }
  bool Damage(std::string_view resource, Json& object) const override { return elastic_.Damage(resource, object); }
  std::string NameOf(std::string_view resource, const Json& object) const override {
    return elastic_.NameOf(resource, object);
  }
  void Mask(std::string_view resource, Json& object) const override {
    elastic_.Mask(resource, object);
    if (resource != kProfiles) return;
    SortConditions(object);
    // A speed is known to a few per cent, and which it is hangs on when the log was read.
    object["status"].Erase("gpuTypes");
    for (const char* part : {"spec", "status"}) {
      for (const char* list : {"points", "conditions"}) {
        Json* items = object[part].Find(list);
        if (items == nullptr || items->AsArray() == nullptr) continue;
        for (Json& item : *items->AsArray()) {
          for (const char* field : {"measured", "time", "message"}) item.Erase(field);
        }
      }
    }
  }
  std::vector<kube::testing::Invariant> Invariants() const override {
    std::vector<kube::testing::Invariant> all = elastic_.Invariants();
    all.push_back(ProfileIsWrittenSeldom());
    return all;
  }
  std::vector<std::string> CheckRest(const World& world) const override {
    std::vector<std::string> complaints = elastic_.CheckRest(world);
    const Json* profile = TheProfile(world);
    const Json& point = profile->At({"spec", "points"})->AsArray()->at(0);
    const double speed = std::stod(Text(point, {"measured", "throughput"}));
    const bool is_it = speed > 0.95 * kSpeed && speed < 1.05 * kSpeed;
    if (!is_it) complaints.push_back("the profile says " + std::to_string(speed));
    return complaints;
  }

 private:
  const ElasticWorkload elastic_{{}};  // What it says of jobs holds here, too.
};

}  // namespace

kube::testing::Workloads ProfileStories() {
  kube::testing::Workloads stories;
  stories.push_back(std::make_unique<Drift>());
  return stories;
}

}  // namespace grus::testing
