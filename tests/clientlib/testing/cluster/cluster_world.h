// SPDX-License-Identifier: Apache-2.0
// A simulated cluster for the tests of its models: four nodes of eight GPUs, and short ways to make and count things.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/pod_security.h"
#include "clientlib/testing/cluster/fake_cluster.h"
#include "clientlib/testing/cluster/objects.h"
#include "tests/kit/objects.h"

namespace kube::testing {

struct ClusterWorld {
  using ObjectPtr = FakeApiServer::ObjectPtr;

  explicit ClusterWorld(std::uint64_t seed = 1, int nodes = 4)
      : simulation(seed), server(simulation, {.seed = seed}), cluster(simulation, server) {
    for (int i = 0; i < nodes; ++i) EXPECT_TRUE(cluster.AddNode("node-" + std::to_string(i), 8));
    Run(std::chrono::milliseconds(100));  // The scheduler knows of them then.
  }

  // A container that wants one GPU.
  static Json GpuPodSpec() { return kit::PodSpec(1, R"({"restartPolicy": "Never"})"); }
  static Json Pod(const std::string& name) { return kit::MakePod(name, GpuPodSpec(), {}, "default"); }
  static Json StatefulSet(const std::string& name, int replicas, std::string_view policy = "Parallel") {
    Json set = kit::MakeStatefulSet(name, replicas, GpuPodSpec(), {}, "default");
    set["spec"]["podManagementPolicy"] = policy;
    set["spec"]["updateStrategy"]["type"] = "OnDelete";
    set["spec"]["template"]["spec"]["restartPolicy"] = "Always";
    return set;
  }
  static Json Job(const std::string& name, int backoff_limit) {
    Json job = kit::MakeJob(name, 1, GpuPodSpec(), {}, "default");
    job["spec"]["backoffLimit"] = backoff_limit;
    return job;
  }

  void Create(std::string_view resource, Json object) {
    const auto created = server.Create(resource, std::move(object));
    ASSERT_TRUE(created) << created.error().message();
  }
  void Change(std::string_view resource, const std::string& name, const std::function<void(Json&)>& change) {
    const ObjectPtr found = server.Get(resource, {"default", name});
    ASSERT_TRUE(found) << name;
    Json object = *found;
    change(object);
    const auto updated = server.Update(resource, std::move(object));
    ASSERT_TRUE(updated) << updated.error().message();
  }
  void Delete(std::string_view resource, const std::string& name, const std::string& propagation = {}) {
    Json how;
    if (!propagation.empty()) how["propagationPolicy"] = propagation;
    const Status deleted = server.Delete(resource, {"default", name}, how);
    ASSERT_TRUE(deleted) << deleted.error().message();
  }
  Json Get(std::string_view resource, const std::string& name, const std::string& ns = "default") {
    const ObjectPtr found = server.Get(resource, {ns, name});
    return found ? *found : Json();
  }

  // Admits no pods that the level ("restricted") does not allow, which are all of those above; empty: any.
  void Enforce(std::string_view level) {
    Json ns = Get("namespaces", "default", "");
    Json& labels = ns["metadata"]["labels"];
    if (level.empty()) labels.Erase(kEnforceLabel);
    else labels[kEnforceLabel] = level;
    const auto updated = server.Update("namespaces", std::move(ns));
    ASSERT_TRUE(updated) << updated.error().message();
  }
  // Of that reason, about the object of that name: as text, "COUNT x MESSAGE".
  std::vector<std::string> Events(std::string_view reason, std::string_view name) {
    std::vector<std::string> events;
    for (const ObjectPtr& event : server.List("events", "default")) {
      if (TextAt(*event, {"reason"}) != reason || TextAt(*event, {"involvedObject", "name"}) != name) continue;
      events.push_back(std::to_string(IntAt(*event, {"count"})) + " x " + std::string(TextAt(*event, {"message"})));
    }
    return events;
  }

  int CountPods(const std::function<bool(const Json&)>& matches) {
    int count = 0;
    for (const ObjectPtr& pod : server.List("pods", "default")) count += matches(*pod) ? 1 : 0;
    return count;
  }
  int CountPods(std::string_view phase) {
    return CountPods([&](const Json& pod) { return PhaseOf(pod) == phase; });
  }
  std::vector<std::string> PodNames() {
    std::vector<std::string> names;
    for (const ObjectPtr& pod : server.List("pods", "default")) names.emplace_back(NameOf(*pod));
    return names;
  }
  void Run(Duration time) { simulation.RunFor(time); }
  // Runs until it holds; fails the test after an hour.
  void RunUntil(const std::function<bool()>& done) {
    EXPECT_TRUE(simulation.RunUntil(done, simulation.Now() + std::chrono::hours(1))) << "it never came true";
  }
  double SecondsSince(TimePoint start) const { return std::chrono::duration<double>(simulation.Now() - start).count(); }

  Simulation simulation;
  FakeApiServer server;
  FakeCluster cluster;
};

}  // namespace kube::testing
