// SPDX-License-Identifier: Apache-2.0
// The ways in which the jobs of a storm come into a cluster.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/storm.h"

namespace bench {

struct StormSide {
  std::string name;
  std::vector<std::string> program;  // What runs beside, with its arguments; none: objects of Kubernetes alone.
  int metrics_port = 0;              // Of the program.
  std::string ready_metric;          // The program is at work once its metrics that begin so come to `ready_value`.
  double ready_value = 1;
  bool is_grus = false;  // Its jobs have a status that is looked at, too.
  std::function<bool(kube::Client&, const std::string& ns, const StormOptions&)> create;
};

// What somebody would write without any operator, for each job: a headless Service, a StatefulSet of workers that run
// sshd, and a Job that runs horovodrun with their names; for all of them the Secret of one ssh key and the ConfigMap
// of an ssh configuration.
StormSide ByHand();
StormSide ThroughGrus(const std::string& manager, const std::string& kubeconfig, int port);
// The same jobs as MPIJobs (kubeflow.org/v2beta1), whose CRD must be there. Without the limits of 5 requests and 10
// keys a second that mpi-operator has by default.
StormSide ThroughMpiOperator(const std::string& program, const std::string& kubeconfig, int port);

const kube::Kind& MpiJobKind();  // To create.
// `text` with each word replaced by its value.
std::string Filled(std::string text, const std::vector<std::pair<std::string, std::string>>& words);
kube::Status Create(kube::Client& client, const std::string& ns, const kube::Kind& kind, const std::string& text);

}  // namespace bench
