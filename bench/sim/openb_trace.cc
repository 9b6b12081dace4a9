// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_trace.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

#include "bench/sim/csv.h"

namespace grus {
namespace {

using kube::Error;
using kube::Result;

constexpr std::int64_t kMostAmount = 1'000'000'000;  // Of CPU or memory: far above any machine, far below an overflow.
constexpr std::int64_t kMostDevices = 64;
constexpr std::string_view kNodeColumns = "sn, cpu_milli, memory_mib, gpu and model";
constexpr std::string_view kPodColumns = "name, cpu_milli, memory_mib, num_gpu and gpu_milli";

// The columns of that name, in that order.
Result<std::vector<std::size_t>> FindColumns(const CsvTable& table, std::span<const std::string_view> names,
                                             std::string_view wanted) {
  std::vector<std::size_t> columns;
  for (const std::string_view name : names) {
    const Result<std::size_t> found = FindColumn(table, name, wanted);
    if (!found) return found.error();
    columns.push_back(*found);
  }
  return columns;
}

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
  constexpr std::string_view kNames[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};
  const Result<std::vector<std::size_t>> columns = FindColumns(table, kNames, kNodeColumns);
  if (!columns) return columns.error();
  const std::vector<std::size_t>& at = *columns;
  std::vector<OpenbNode> nodes;
  for (const CsvRow& row : table.rows) {
    const std::string& name = row.fields[at[0]];
    if (name.empty()) return BadField(table, row, at[0], "is empty; give the node's name");
    const Result<std::int64_t> cpu = WholeNumberAt(table, row, at[1], 0, kMostAmount);
    if (!cpu) return cpu.error();
    const Result<std::int64_t> memory = WholeNumberAt(table, row, at[2], 0, kMostAmount);
    if (!memory) return memory.error();
    const Result<std::int64_t> gpus = WholeNumberAt(table, row, at[3], 0, kMostDevices);
    if (!gpus) return gpus.error();
    const int model = models.NumberOf(row.fields[at[4]]);
    if (model < 0) return BadField(table, row, at[4], "is one model too many; use at most 64");
    nodes.push_back({name, {*cpu, std::vector<int>(static_cast<std::size_t>(*gpus), kWholeDevice), model}, *memory});
  }
  std::ranges::stable_sort(nodes, {}, &OpenbNode::name);
  const auto twice = std::ranges::adjacent_find(nodes, {}, &OpenbNode::name);
  if (twice == nodes.end()) return nodes;
  return Error(kube::ErrorCode::kDecode,
               table.name + ": column sn: two nodes are named " + twice->name + "; give each its own name");
}

Result<GpuRequest> ReadRequest(const CsvTable& table, const CsvRow& row, std::span<const std::size_t> at,
                               std::int64_t most_devices) {
  const Result<std::int64_t> cpu = WholeNumberAt(table, row, at[1], 0, kMostAmount);
  if (!cpu) return cpu.error();
  const Result<std::int64_t> gpus = WholeNumberAt(table, row, at[3], 0, kMostAmount);
  if (!gpus) return gpus.error();
  if (*gpus > most_devices) {
    return BadField(table, row, at[3],
                    "is more than any node has; the largest has " + std::to_string(most_devices) +
                        " GPUs: remove the pod, or add a node");
  }
  const std::int64_t least = *gpus == 0 ? 0 : *gpus == 1 ? 1 : kWholeDevice;
  const Result<std::int64_t> milli =
      WholeNumberAt(table, row, at[4], least, *gpus == 0 ? 0 : kWholeDevice, "with num_gpu " + std::to_string(*gpus));
  if (!milli) return milli.error();
  return GpuRequest{*cpu, static_cast<int>(*gpus), static_cast<int>(*milli), kAnyModel};
}

Result<std::vector<OpenbPod>> ReadPods(const CsvTable& table, const Models& models, std::int64_t most_devices) {
  constexpr std::string_view kNames[] = {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"};
  const Result<std::vector<std::size_t>> columns = FindColumns(table, kNames, kPodColumns);
  if (!columns) return columns.error();
  const std::vector<std::size_t>& at = *columns;
  const auto spec = std::ranges::find(table.header.fields, "gpu_spec");  // Some lists have none.
  std::vector<OpenbPod> pods;
  for (const CsvRow& row : table.rows) {
    if (row.fields[at[0]].empty()) return BadField(table, row, at[0], "is empty; give the pod's name");
    Result<GpuRequest> request = ReadRequest(table, row, at, most_devices);
    if (!request) return request.error();
    if (spec != table.header.fields.end()) {
      request->models = models.SetOf(row.fields[static_cast<std::size_t>(spec - table.header.fields.begin())]);
    }
    const Result<std::int64_t> memory = WholeNumberAt(table, row, at[2], 0, kMostAmount);
    if (!memory) return memory.error();
    pods.push_back({row.fields[at[0]], *request, *memory});
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
  Result<std::vector<OpenbPod>> workload = ReadPods(pods, models, static_cast<std::int64_t>(most_devices));
  if (!workload) return workload.error();
  OpenbTrace trace{*std::move(cluster), *std::move(workload)};
  if (std::ranges::all_of(trace.pods, [](const OpenbPod& pod) { return pod.request.devices == 0; })) {
    return Error(kube::ErrorCode::kDecode, pods.name + ": column num_gpu: no pod asks for a GPU; add one that does");
  }
  return trace;
}

}  // namespace grus
