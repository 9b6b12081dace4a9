// SPDX-License-Identifier: Apache-2.0
// A cluster around a FakeApiServer: models of its controllers, scheduler and kubelets in virtual time.
//
//   Simulation simulation(seed);
//   FakeApiServer server(simulation, {.seed = seed});
//   FakeCluster cluster(simulation, server);
//   cluster.AddNode("node-0", 8);
//   simulation.RunFor(10min);
//
// The models see each change of the server and answer it after small delays that follow from the simulation's seed,
// through the same admission and conflicts as clients. Each model's header says what it lacks. Not modelled at all:
// Deployments, DaemonSets, CronJobs, endpoints, disruption budgets, volumes.
//
// Neither server nor simulation may run after this is destroyed. Not thread-safe, like Simulation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

struct NodeOptions {
  Json labels = Json::MakeObject();  // Besides kubernetes.io/hostname.
  Json taints = Json::MakeArray();
  // Resources besides nvidia.com/gpu.
  Json allocatable = Json::MakeObject({{"cpu", "96"}, {"memory", "1Ti"}, {"pods", "110"}});
};

class FakeCluster {
 public:
  // REQUIRES: no request has been made to `server`.
  FakeCluster(Simulation& simulation, FakeApiServer& server, FakeClusterOptions options = {});
  ~FakeCluster();

  // May be changed at any time: a slow controller is one with a long lag from now on.
  FakeClusterOptions& options();

  Status AddNode(const std::string& name, int gpus, const NodeOptions& options = {});
  void RemoveNode(const std::string& name);
  // False: the node has lost its kubelet, and the cluster knows it; the node is unreachable from now on.
  void SetNodeReady(const std::string& name, bool is_ready);
  // A cordoned node takes no more pods; those on it stay. As `kubectl cordon` does.
  void SetCordoned(const std::string& name, bool is_cordoned);
  // The scheduler loses its memory: bindings under way, back-offs, and nominations of gated pods (scheduler.h).
  void RestartScheduler(Duration downtime = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube::testing
