// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_mutants.h"

#include <chrono>
#include <memory>
#include <utility>

#include "controllers/elastic/elastic_children.h"
#include "tests/campaign/elastic_invariants.h"
#include "tests/campaign/elastic_stories.h"
#include "tests/campaign/elastic_workloads.h"
#include "tests/campaign/rule_check.h"

namespace grus::testing {
namespace {

using WorkloadPtr = kube::testing::Workloads::value_type;

Json Labels(const std::string& role) {
  return Json::MakeObject({{kManagedByLabel, kManagedBy}, {kJobNameLabel, kName}, {kRoleLabel, role}});
}

void MakePod(World& world, const std::string& name, const std::string& role, const Json& annotations) {
  Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"main","image":"train:1"}]}})");
  pod["metadata"] = Json::MakeObject(
      {{"name", name}, {"namespace", kNamespace}, {"labels", Labels(role)}, {"annotations", annotations}});
  if (role == "worker") {
    const auto job = world.server.Get(kJobs, {kNamespace, kName});
    pod["metadata"]["ownerReferences"] = Json::MakeArray({Json::MakeObject({{"apiVersion", *job->Find("apiVersion")},
                                                                            {"kind", *job->Find("kind")},
                                                                            {"name", kName},
                                                                            {"uid", Text(*job, {"metadata", "uid"})},
                                                                            {"controller", true}})});
  }
  Must(world.server.Create(kPods, std::move(pod)));
}

// Lists both workers, and says that the job trains, whatever they and the launcher do.
void SayTraining(World& world) {
  std::string hosts = "revision 1\n";
  for (const char* worker : {"train-workers-0", "train-workers-1"}) {
    hosts += Text(*world.server.Get(kPods, {kNamespace, worker}), {"status", "podIP"}) + ":1 " + worker + "\n";
  }
  Json map = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
  map["metadata"] =
      Json::MakeObject({{"name", "train-hosts"}, {"namespace", kNamespace}, {"labels", Labels("launcher")}});
  map["data"]["hosts"] = std::move(hosts);
  Must(world.server.Create("configmaps", std::move(map)));
  Json job = *world.server.Get(kJobs, {kNamespace, kName});
  job["status"]["conditions"] = FromText(R"([{"type":"Ready","status":"True","reason":"Training","message":"",
      "lastTransitionTime":"2026-01-02T03:04:05Z"}])");
  Must(world.server.Update(kJobs, std::move(job), "status"));
}

void SayGranted(World& world, int workers) {
  Json job = *world.server.Get(kJobs, {kNamespace, kName});
  job["status"]["replicas"]["granted"] = workers;
  Must(world.server.Update(kJobs, std::move(job), "status"));
}

// Somebody in place of grus who makes two workers and a launcher with these annotations and looks no more, not even
// when a worker is drained.
WorkloadPtr LooksOnce(const std::string& name, std::string_view worker, std::string_view launcher) {
  ElasticStory story;
  story.name = name;
  story.is_without_grus = true;
  story.slack = kUsualSlack;
  story.prepare = [worker = FromText(worker), launcher = FromText(launcher)](World& world) {
    Cluster(1, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})")(world);
    MakePod(world, "train-workers-0", "worker", Json::MakeObject());
    MakePod(world, "train-workers-1", "worker", worker);
    MakePod(world, "train-launcher-abcde", "launcher", launcher);
    world.simulation.After(std::chrono::seconds(30), [&world] { SayTraining(world); });
  };
  Step step = Until(
      "it says that it trains", [](const World& world) { return !world.All("configmaps").empty(); },
      [](World& world) {
        world.simulation.After(std::chrono::minutes(13), [&world] { Delete(world, kPods, "train-workers-1"); });
      });
  step.lasts = std::chrono::minutes(15);
  story.steps = {std::move(step)};
  return std::make_unique<ElasticWorkload>(std::move(story));
}

// Likewise, who then shrinks the job to one worker: without taking the other one off the host list first, or without
// deleting it.
WorkloadPtr Shrinks(const std::string& name, bool deletes) {
  ElasticStory story;
  story.name = name;
  story.is_without_grus = true;
  story.slack = kUsualSlack;
  story.prepare = [](World& world) {
    Cluster(1, 8, R"({"workersSpec":{"minReplicas":1,"maxReplicas":2}})")(world);
    MakePod(world, "train-workers-0", "worker", Json::MakeObject());
    MakePod(world, "train-workers-1", "worker", Json::MakeObject());
    MakePod(world, "train-launcher-abcde", "launcher", Json::MakeObject());
    SayGranted(world, 2);
    world.simulation.After(std::chrono::seconds(30), [&world] { SayTraining(world); });
  };
  Step step = Until(
      "it says that it trains", [](const World& world) { return !world.All("configmaps").empty(); },
      [deletes](World& world) {
        SayGranted(world, 1);
        if (deletes) Delete(world, kPods, "train-workers-1");
      });
  step.lasts = std::chrono::minutes(5);
  story.steps = {std::move(step)};
  return std::make_unique<ElasticWorkload>(std::move(story));
}

// Likewise, who makes a worker for a job that has failed.
WorkloadPtr MakesWorkerAfterTheEnd() {
  ElasticStory story;
  story.name = "makes-after-the-end";
  story.is_without_grus = true;
  story.slack = kUsualSlack;
  story.prepare = [](World& world) {
    Cluster(1, 8, R"({"workersSpec":{"minReplicas":1,"maxReplicas":1}})")(world);
    Json job = *world.server.Get(kJobs, {kNamespace, kName});
    job["status"]["phase"] = "Failed";
    Must(world.server.Update(kJobs, std::move(job), "status"));
    world.simulation.After(std::chrono::seconds(30),
                           [&world] { MakePod(world, "train-workers-0", "worker", Json::MakeObject()); });
  };
  story.steps = {Until("it is there", [](const World& world) { return !world.All(kPods).empty(); })};
  return std::make_unique<ElasticWorkload>(std::move(story));
}

std::vector<Mutant> Mutants() {
  constexpr char kHangs[] = R"({"grus.test/silent":"true"})";
  constexpr char kSlow[] = R"({"grus.test/stop-seconds":"25"})",
                 kBroken[] = R"({"grus.test/waiting":"ErrImagePull: x"})";
  std::vector<Mutant> mutants;
  mutants.push_back({LooksOnce("launcher-waits", "{}", kBroken), "says Training, and no launcher runs, for"});
  mutants.push_back(
      {LooksOnce("launcher-silent", "{}", kHangs), "says Training, and its launcher prints nothing, for"});
  mutants.push_back(
      {LooksOnce("worker-waits", kBroken, "{}"), "says Training, and 1 workers can be reached, of at least 2, for"});
  mutants.push_back({LooksOnce("worker-waits", kBroken, "{}"), "is broken and holds GPUs, for"});
  mutants.push_back({LooksOnce("worker-drained", kSlow, "{}"), "is listed as a host, and is none, for"});
  mutants.push_back({Shrinks("shrinks-at-once", true), "is given up while it is listed as a host"});
  mutants.push_back({Shrinks("shrinks-in-words", false), "has 2 workers, and is granted 1"});
  mutants.push_back({LooksOnce("grants-nothing", "{}", "{}"), "has 2 workers, and is granted 0, for"});
  mutants.push_back({MakesWorkerAfterTheEnd(), "is Failed, and gets train-workers-0"});
  return mutants;
}

}  // namespace

std::vector<std::string> CheckElasticRules(int& asked) {
  return CheckRules(ElasticWorkloads(kUsualSlack), Mutants(), asked);
}

}  // namespace grus::testing
