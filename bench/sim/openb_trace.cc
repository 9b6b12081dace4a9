// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_trace.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "bench/sim/csv_rows.h"

namespace grus {
namespace {

using kube::Error;
using kube::Result;

constexpr double kMostAmount = 1e9;  // Of CPU or memory: far above any machine, far below an overflow.
constexpr int kMostDevices = 64;
constexpr int kMostArrivals = 5'000'000;  // A few minutes of replay.

struct NodeRow {
  std::string name, model;
  int cpu_milli, memory_mib, gpus;
};
struct PodRow {
  std::string name, models;
  int cpu_milli, memory_mib, gpus, gpu_milli;
};

// Numbers GPU models in the order in which they come up.
class Models {
 public:
  // Kept for nodes only: a model that no node has is in no set. Below 0: there are too many models.
  int NumberOf(const std::string& model) {
    const auto found = std::find(names_.begin(), names_.end(), model);
    if (found != names_.end()) return static_cast<int>(found - names_.begin());
    if (names_.size() == kMaxGpuModels) return -1;
    names_.push_back(model);
    return static_cast<int>(names_.size()) - 1;
  }

  // Of "A|B"; empty: any.
  GpuModels SetOf(std::string_view spec) const {
    if (spec.empty()) return kAnyModel;
    GpuModels set = 0;
    while (!spec.empty()) {
      const std::string_view name = spec.substr(0, spec.find('|'));
      spec.remove_prefix(std::min(name.size() + 1, spec.size()));
      const auto found = std::find(names_.begin(), names_.end(), name);
      if (found != names_.end()) set |= GpuModels{1} << (found - names_.begin());
    }
    return set;
  }

 private:
  std::vector<std::string> names_;
};

Result<std::vector<OpenbNode>> ReadNodes(const CsvTable& table, Models& models) {
  const Result<std::vector<NodeRow>> rows =
      RowsOf<NodeRow>(table, {{"sn", &NodeRow::name},
                              {"cpu_milli", &NodeRow::cpu_milli, 0, kMostAmount},
                              {"memory_mib", &NodeRow::memory_mib, 0, kMostAmount},
                              {"gpu", &NodeRow::gpus, 0, kMostDevices},
                              {.name = "model", .field = &NodeRow::model, .need = CsvNeed::kColumn}});
  if (!rows) return rows.error();
  std::vector<OpenbNode> nodes;
  std::set<std::string_view> names;
  for (const NodeRow& row : *rows) {
    const int model = models.NumberOf(row.model);
    if (model < 0) return BadFieldOf(table, nodes.size(), "model", "is one model too many; use at most 64");
    if (!names.insert(row.name).second) {
      return BadFieldOf(table, nodes.size(), "sn", "is the name of an earlier node; give each its own");
    }
    std::vector<int> devices(static_cast<std::size_t>(row.gpus), kWholeDevice);
    nodes.push_back({row.name, {row.cpu_milli, std::move(devices), model}, row.memory_mib});
  }
  std::ranges::stable_sort(nodes, {}, &OpenbNode::name);
  return nodes;
}

// What limits of single columns do not say. nullopt: nothing is wrong.
std::optional<Error> WrongRequest(const CsvTable& table, std::size_t row, const PodRow& pod, int most_devices) {
  if (pod.gpus > most_devices) {
    return BadFieldOf(table, row, "num_gpu",
                      "is more than any node has; the largest has " + std::to_string(most_devices) +
                          " GPUs: remove the pod, or add a node");
  }
  const int least = pod.gpus == 0 ? 0 : pod.gpus == 1 ? 1 : kWholeDevice, most = pod.gpus == 0 ? 0 : kWholeDevice;
  if (pod.gpu_milli >= least && pod.gpu_milli <= most) return std::nullopt;
  return BadFieldOf(
      table, row, "gpu_milli",
      "is wrong; with num_gpu " + std::to_string(pod.gpus) + " write " +
          (least == most ? std::to_string(most)
                         : "a whole number from " + std::to_string(least) + " to " + std::to_string(most)));
}

Result<std::vector<OpenbPod>> ReadPods(const CsvTable& table, const Models& models, int most_devices) {
  const Result<std::vector<PodRow>> rows =
      RowsOf<PodRow>(table, {{"name", &PodRow::name},
                             {"cpu_milli", &PodRow::cpu_milli, 0, kMostAmount},
                             {"memory_mib", &PodRow::memory_mib, 0, kMostAmount},
                             {"num_gpu", &PodRow::gpus, 0, kMostAmount},
                             {"gpu_milli", &PodRow::gpu_milli, 0, kWholeDevice},
                             {.name = "gpu_spec", .field = &PodRow::models, .need = CsvNeed::kNothing}});
  if (!rows) return rows.error();
  std::vector<OpenbPod> pods;
  for (const PodRow& row : *rows) {
    if (auto wrong = WrongRequest(table, pods.size(), row, most_devices)) return *std::move(wrong);
    pods.push_back({row.name, {row.cpu_milli, row.gpus, row.gpu_milli, models.SetOf(row.models)}, row.memory_mib});
  }
  std::ranges::stable_sort(pods, {}, &OpenbPod::name);
  return pods;
}

}  // namespace

std::int64_t OpenbTrace::gpu_milli() const {
  std::int64_t milli = 0;
  for (const OpenbNode& node : nodes) {
    milli = std::accumulate(node.free.device_milli.begin(), node.free.device_milli.end(), milli);
  }
  return milli;
}

Result<OpenbTrace> ReadOpenbTrace(const CsvTable& nodes, const CsvTable& pods) {
  Models models;
  Result<std::vector<OpenbNode>> cluster = ReadNodes(nodes, models);
  if (!cluster) return cluster.error();
  std::size_t most_devices = 0;
  for (const OpenbNode& node : *cluster) most_devices = std::max(most_devices, node.free.device_milli.size());
  if (most_devices == 0) {
    return Error(kube::ErrorCode::kDecode, nodes.name + ": column gpu: no node has a GPU; add one that has");
  }
  Result<std::vector<OpenbPod>> workload = ReadPods(pods, models, static_cast<int>(most_devices));
  if (!workload) return workload.error();
  OpenbTrace trace{*std::move(cluster), *std::move(workload)};
  const std::int64_t asked =
      std::accumulate(trace.pods.begin(), trace.pods.end(), std::int64_t{0},
                      [](std::int64_t sum, const OpenbPod& pod) { return sum + pod.gpu_milli(); });
  if (asked == 0) {
    return Error(kube::ErrorCode::kDecode, pods.name + ": column num_gpu: no pod asks for a GPU; add one that does");
  }
  const double arrivals =
      static_cast<double>(trace.gpu_milli()) / static_cast<double>(asked) * static_cast<double>(trace.pods.size());
  if (arrivals > kMostArrivals) {
    return Error(kube::ErrorCode::kDecode, pods.name + ": column gpu_milli: the pods ask for so little that over " +
                                               std::to_string(kMostArrivals) +
                                               " would fill the cluster; add larger ones, or remove nodes");
  }
  return trace;
}

}  // namespace grus
