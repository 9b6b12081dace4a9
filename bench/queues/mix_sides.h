// SPDX-License-Identifier: Apache-2.0
// The ways in which the jobs of a mix come into a cluster, each by its own API and set up as its documentation says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/queues/mix.h"
#include "clientlib/client/client.h"

namespace bench {

struct MixProgram {
  std::string name;
  std::vector<std::string> words;
  int port = 0;              // On 127.0.0.1: it is at work once it answers /readyz there,
  std::string ready_metric;  // or, if this is set, once its /metrics have a line that begins so, and is not 0.
};

struct MixSide {
  std::string name;
  std::string not_run;               // Why it cannot be run; empty: it can.
  std::vector<MixProgram> programs;  // What runs beside the cluster.
  std::vector<std::string> files;    // Manifests that stand while it is measured, applied and deleted in this order.
  std::string ready_for;             // What `kubectl wait` waits for before it is measured.
  bool gangs_have_launchers = true;
  bool is_elastic = false;  // Its jobs run with any number of workers between minimum and maximum.
  std::function<kube::Status(kube::Client&, const std::string& ns, const MixJob&)> create;
};

// Paths of what sides are made of. `manifests` has grus.yaml, kueue.yaml, kueue-webhooks.yaml and kueue-config.yaml;
// `peers` the programs kueue and mpi-operator, or what of them there is.
struct SidePaths {
  std::string kubeconfig, manager, manifests, peers;
};

// GpuQueues; gangs are PodGroups, with a Job of gated pods, all other jobs ElasticHorovodJobs.
MixSide MixThroughGrus(const SidePaths& paths);
// MPIJobs of mpi-operator, queued by Kueue.
MixSide MixThroughKueue(const SidePaths& paths);
MixSide MixThroughKai();

}  // namespace bench
