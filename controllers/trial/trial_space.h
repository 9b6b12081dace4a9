// SPDX-License-Identifier: Apache-2.0
// The configurations that a TrialJob may try, in order, and what rules them out.
//
// Pure functions: ten thousand configurations take a few milliseconds.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/core_v1.h"
#include "controllers/trial/trial_workload.h"
#include "crds/types/trial_job.h"

namespace grus {

// Ascending by GPUs, then in the order of the GPU types in the space, then ascending by batch size. So a ladder goes up
// one size at a time, gives each GPU type its turn, and finds out at the smallest batch size what does not fit into
// memory. If the smallest did not fit on a GPU type, by the ended `trials`, half of it is one more to try there.
// Errors: kInvalidArgument, for a person: no configuration is possible.
kube::Result<std::vector<api::TrialConfig>> ConfigsOf(const api::TrialSpace& space, const Workload& workload,
                                                      const std::vector<api::Trial>& trials = {});

// The labels of the nodes with that GPU type; none for the empty one.
std::map<std::string, std::string> NodesOf(const api::TrialSpace& space, const std::string& gpu_type);

// Nodes that a GPU type may run on.
struct TypeNodes {
  int most_gpus = 0;           // For one trial in an otherwise empty cluster.
  int gpus_per_node = 0;       // Of the largest.
  std::string product = {};    // The label nvidia.com/gpu.product, if they have the same; else empty.
  std::vector<int> gpus = {};  // Of each node that is not cordoned, in whole workers.
};
// By GPU type of the space, among all nodes of the cluster.
std::map<std::string, TypeNodes> NodesByType(const api::TrialSpace& space, const Workload& workload,
                                             const std::vector<std::shared_ptr<const kube::Node>>& nodes);

// `configs` with those that space.placements and space.nodeCounts ask for, spread over more nodes than they need. If
// neither is set: last, one on two nodes for each GPU type, if the curve asks for more GPUs than a node has and none of
// `configs` would need a second one; also if it was tried when the nodes were others.
// Errors: kInvalidArgument, for a person: nothing is left to try.
kube::Result<std::vector<api::TrialConfig>> PlacedConfigs(const api::TrialJobSpec& spec, const Workload& workload,
                                                          const std::map<std::string, TypeNodes>& nodes,
                                                          std::vector<api::TrialConfig> configs,
                                                          const std::vector<api::Trial>& trials = {});

// As few nodes of the type as could hold so many GPUs; 1 if none is known.
int FewestNodes(const std::map<std::string, TypeNodes>& nodes, const std::string& gpu_type, int gpus);

// Whether it is one of those on two nodes that nobody asked for.
bool IsUnasked(const api::TrialSpace& space, const api::TrialConfig& config);

// Of how many pods a trial consists that is to have one on each node: the fewest equal ones that nodes of the type have
// room for, or as many as the configuration says. 0: a single one, which trains for itself. Where a pod has part of a
// GPU, one for each part; they may share nodes.
int PodsOf(const api::TrialConfig& config, const Workload& workload, const std::map<std::string, TypeNodes>& nodes);

// Whether an empty cluster has room for it.
bool Fits(const api::TrialConfig& config, const Workload& workload, const std::map<std::string, TypeNodes>& nodes);

// NAME-SUFFIX, the same for a configuration in every process. Uses another suffix if `taken` has the name already.
std::string TrialName(const std::string& job, const api::TrialConfig& config, const std::set<std::string>& taken);

// Why a configuration need not be tried, judged by the ended trials. kNone: it has to be tried.
class SkipRules {
 public:
  SkipRules(const api::TrialJobSpec& spec, const Workload& workload, const std::vector<api::Trial>& trials);
  api::TrialReason WhyNot(const api::TrialConfig& config) const;

 private:
  struct Memory {
    int gpus = 0;
    double batch_of_gpu = 0;
  };
  double BatchOfGpu(const api::TrialConfig& config) const;
  bool IsOutOfMemory(const api::TrialConfig& config, const Memory& memory) const;

  const bool is_batch_per_gpu_;
  const bool has_whole_models_;  // Each GPU holds the whole model: more of them do not make room.
  std::map<std::string, std::vector<Memory>> out_of_memory_;  // By GPU type.
  std::map<std::pair<std::string, int>, int> no_gain_above_;  // By GPU type and batch size: no gain above this many
                                                              // GPUs.
};

}  // namespace grus
