// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/trial/trial_space.h"

namespace grus {
namespace {

using api::TrialConfig;

int PerNode(const std::map<std::string, TypeNodes>& nodes, const std::string& gpu_type) {
  const auto found = nodes.find(gpu_type);
  return found != nodes.end() ? found->second.gpus_per_node : 0;
}

int FewestNodes(int gpus, int per_node) { return per_node > 0 ? (gpus - 1) / per_node + 1 : 1; }

// For `each` GPUs on so many nodes.
bool HaveRoom(const std::map<std::string, TypeNodes>& nodes, const std::string& gpu_type, int apart, int each) {
  const auto found = nodes.find(gpu_type);
  return found != nodes.end() &&
         std::ranges::count_if(found->second.gpus, [each](int gpus) { return gpus >= each; }) >= apart;
}

bool CanSpread(const TrialConfig& config, int over, int gpus_per_worker) {
  return over > 0 && config.gpus / gpus_per_worker % over == 0;
}

TrialConfig Spread(TrialConfig config, int over) {
  config.min_nodes = over;
  return config;
}

// On how many nodes `config` is to be tried, as the user says; 0: packed.
std::set<int> NodesAskedFor(const api::TrialSpace& space, const TrialConfig& config, int fewest, int gpus_per_worker) {
  std::set<int> asked;
  for (const api::Placement placement : space.placements) {
    const int over = placement == api::Placement::kSpread ? 2 * fewest : 0;
    if (over == 0 || CanSpread(config, over, gpus_per_worker)) asked.insert(over);
  }
  for (const int over : space.node_counts) {
    if (over == fewest) asked.insert(0);
    else if (over > fewest && CanSpread(config, over, gpus_per_worker)) asked.insert(over);
  }
  return asked;
}

// The one to try on two nodes too, unless the user says something of placements: the largest of the type that one node
// holds, with its smallest batch. None: there is no need, or no second node.
const TrialConfig* ForTwoNodes(const api::TrialJobSpec& spec, const Workload& workload, const std::string& gpu_type,
                               const std::map<std::string, TypeNodes>& nodes, const std::vector<TrialConfig>& configs) {
  const auto here = nodes.find(gpu_type);
  if (here == nodes.end() || here->second.gpus.size() < 2 || workload.is_on_one_node) return nullptr;
  const int per_node = here->second.gpus_per_node;
  if (spec.extrapolate.max_gpus.value_or(0) <= per_node) return nullptr;
  const TrialConfig* largest = nullptr;
  for (const TrialConfig& config : configs) {
    if (config.gpu_type != gpu_type) continue;
    if (config.gpus > per_node) return nullptr;
    const bool is_larger = largest == nullptr || config.gpus > largest->gpus;
    if (is_larger && CanSpread(config, 2, workload.gpus_per_worker)) largest = &config;
  }
  return largest;
}

std::vector<TrialConfig> WithOneOnTwoNodes(const api::TrialJobSpec& spec, const Workload& workload,
                                           const std::map<std::string, TypeNodes>& nodes,
                                           const std::vector<TrialConfig>& configs,
                                           const std::vector<api::Trial>& trials) {
  std::set<TrialConfig> twice;
  for (const auto& [gpu_type, all] : nodes) {
    if (const TrialConfig* one = ForTwoNodes(spec, workload, gpu_type, nodes, configs)) twice.insert(*one);
  }
  for (const api::Trial& trial : trials) {
    if (trial.config.min_nodes != 2 || trial.phase == api::TrialPhase::kPending ||
        trial.phase == api::TrialPhase::kSkipped) {
      continue;
    }
    twice.insert(Spread(WithoutNodes(trial.config), 0));
  }
  std::vector<TrialConfig> placed = configs;
  for (const TrialConfig& config : configs) {  // After all that the user asks for.
    if (twice.contains(config)) placed.push_back(Spread(config, 2));
  }
  return placed;
}

}  // namespace

int FewestNodes(const std::map<std::string, TypeNodes>& nodes, const std::string& gpu_type, int gpus) {
  return FewestNodes(gpus, PerNode(nodes, gpu_type));
}

bool IsUnasked(const api::TrialSpace& space, const TrialConfig& config) {
  return config.min_nodes > 0 && space.placements.empty() && space.node_counts.empty();
}

int PodsOf(const TrialConfig& config, const Workload& workload, const std::map<std::string, TypeNodes>& nodes) {
  if (!workload.is_pod || workload.is_on_one_node) return 0;
  if (AsksForGpuParts(workload.part)) return config.gpus;
  if (config.min_nodes > 0) return config.min_nodes;
  int fewest = 0;  // That could be equal, whether nodes have room for them or not.
  for (int pods = FewestNodes(nodes, config.gpu_type, config.gpus); pods <= config.gpus; ++pods) {
    if (config.gpus % pods != 0) continue;
    if (HaveRoom(nodes, config.gpu_type, pods, config.gpus / pods)) return pods;
    if (fewest == 0) fewest = pods;
  }
  return fewest;
}

bool Fits(const TrialConfig& config, const Workload& workload, const std::map<std::string, TypeNodes>& nodes) {
  const auto found = nodes.find(config.gpu_type);
  if (found == nodes.end()) return true;  // Not known.
  const bool is_one_for_each_node = !AsksForGpuParts(workload.part);
  const int apart = std::max(config.min_nodes, is_one_for_each_node ? PodsOf(config, workload, nodes) : 0);
  if (apart == 0) return config.gpus <= found->second.most_gpus;
  return HaveRoom(nodes, config.gpu_type, apart, config.gpus / apart);
}

kube::Result<std::vector<TrialConfig>> PlacedConfigs(const api::TrialJobSpec& spec, const Workload& workload,
                                                     const std::map<std::string, TypeNodes>& nodes,
                                                     std::vector<TrialConfig> configs,
                                                     const std::vector<api::Trial>& trials) {
  const api::TrialSpace& space = spec.space;
  if (space.placements.empty() && space.node_counts.empty()) {
    return WithOneOnTwoNodes(spec, workload, nodes, configs, trials);
  }
  std::vector<TrialConfig> placed;
  for (const TrialConfig& config : configs) {
    const int per_node = PerNode(nodes, config.gpu_type) / workload.gpus_per_worker * workload.gpus_per_worker;
    const int fewest = FewestNodes(config.gpus, per_node);
    for (const int over : NodesAskedFor(space, config, fewest, workload.gpus_per_worker)) {
      placed.push_back(Spread(config, over));
    }
  }
  if (!placed.empty()) return placed;
  return kube::Error(kube::ErrorCode::kInvalidArgument,
                     "the workers of none of space.gpuCounts can be divided evenly among the nodes that "
                     "space.placements and space.nodeCounts ask for");
}

}  // namespace grus
