// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_planner.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "controllers/policy/gang_planner.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr char kModelLabel[] = "model", kGpuPrefix[] = "GPU-";
constexpr std::int64_t kMiB = 1 << 20, kPodsOfNode = 1'000'000, kNow = 1'000'000;

// Its GPUs are shared: it offers thousandths, of each GPU by its name.
NodeState StateOf(const OpenbNode& node) {
  NodeState state;
  state.name = node.name;
  state.labels = {{kModelLabel, std::to_string(node.free.model)}};
  state.allocatable.milli_cpu = node.free.milli_cpu;
  state.allocatable.memory_bytes = node.memory_mib * kMiB;
  state.allocatable.pods = kPodsOfNode;
  for (std::size_t i = 0; i < node.free.device_milli.size(); ++i) {
    Resources gpu;
    gpu.AddExtended(api::kGpuMilliResource, kWholeDevice);
    state.allocatable += OnGpu(std::move(gpu), kGpuPrefix + std::to_string(i));
  }
  return state;
}

PodShape ShapeOf(const OpenbPod& pod) {
  PodShape shape;
  shape.request.milli_cpu = pod.request.milli_cpu;
  shape.request.memory_bytes = pod.memory_mib * kMiB;
  shape.request.pods = 1;
  if (pod.request.devices == 0) return shape;
  shape.request.AddExtended(api::kGpuMilliResource, pod.gpu_milli());
  if (pod.request.models == kAnyModel) return shape;
  kube::NodeSelectorRequirement requirement;
  requirement.key = kModelLabel;
  requirement.op = "In";
  for (int model = 0; model < kMaxGpuModels; ++model) {
    if (pod.request.models >> model & 1) requirement.values.push_back(std::to_string(model));
  }
  if (requirement.values.empty()) requirement.values.push_back("none");
  kube::NodeSelector selector;
  selector.terms.emplace_back().match_expressions.push_back(std::move(requirement));
  shape.node_affinity = std::move(selector);
  return shape;
}

// "GPU-0,GPU-3".
std::vector<int> DevicesOf(std::string_view gpus) {
  std::vector<int> devices;
  while (!gpus.empty()) {
    const std::string_view one = gpus.substr(0, gpus.find(','));
    gpus.remove_prefix(std::min(one.size() + 1, gpus.size()));
    int& device = devices.emplace_back();
    std::from_chars(one.data() + std::size(kGpuPrefix) - 1, one.data() + one.size(), device);
  }
  return devices;
}

class PlannedCluster {
 public:
  PlannedCluster(const OpenbTrace& trace, std::uint64_t seed) : trace_(trace) {
    for (const std::size_t node : OpenbNodeOrder(trace, seed)) {
      ledger_.PutNode(StateOf(trace.nodes[node]));
      node_of_.emplace(trace.nodes[node].name, node);
    }
    ShapePool pool;
    for (const OpenbPod& pod : trace.pods) {
      shapes_.push_back(pool.Share(ShapeOf(pod)));
      indexes_.emplace(shapes_.back(), nullptr);
    }
    // Else the ledger would build them again and again: it keeps only a few that nobody holds.
    for (auto& [shape, index] : indexes_) index = ledger_.IndexFor(*shape);
  }

  // Nullopt: no room.
  std::optional<OpenbPlacement> Place(std::size_t pod) {
    const std::string key = "openb/" + std::to_string(++arrived_);
    GangDemand gang;
    gang.key = key;
    gang.waiting_since = kNow;
    gang.needed = 1;
    gang.members = {shapes_[pod]};
    planner_.Put(std::move(gang));
    planner_.Plan(kNow);
    const bool is_placed = planner_.StandingOf(key)->is_placed;
    planner_.Remove(key);
    if (!is_placed) return std::nullopt;
    const grus::Place place = ledger_.PlacesOf(key).front();
    ledger_.Bind(key, place.node, place.Request(), key, place.shape);
    return OpenbPlacement{pod, node_of_.at(place.node), DevicesOf(place.gpu)};
  }

 private:
  const OpenbTrace& trace_;
  ClusterLedger ledger_;
  GangPlanner planner_{ledger_};
  std::map<std::string, std::size_t> node_of_;
  std::vector<ShapePtr> shapes_;  // By pod.
  std::map<ShapePtr, std::shared_ptr<const FitIndex>> indexes_;
  int arrived_ = 0;
};

}  // namespace

OpenbOutcome ReplayThroughPlanner(const OpenbTrace& trace, std::uint64_t seed) {
  PlannedCluster cluster(trace, seed);
  return PlaceArrivals(trace, seed, [&](std::size_t pod) { return cluster.Place(pod); });
}

}  // namespace grus
