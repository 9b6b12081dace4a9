// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_problems.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr char kGpuResource[] = "nvidia.com/gpu";
constexpr char kReplicasLabel[] = "nvidia.com/gpu.replicas";  // By gpu-feature-discovery: of each GPU, shared in time.
// The device plugin starts after the node, and starts again when its configuration changes.
constexpr kube::Duration kDevicePluginStarts = std::chrono::minutes(2);

std::string Name(const Gpu& gpu) { return "GPU " + std::to_string(gpu.index) + " (" + gpu.uuid + ")"; }
std::string Gpus(std::size_t count) { return std::to_string(count) + (count == 1 ? " GPU" : " GPUs"); }

void AddSick(const NodeSample& look, std::vector<GpuProblem>& problems) {
  if (!look.is_open && !look.gpus.empty()) {
    problems.push_back(
        {kGpuSickReason, "the GPU driver, which had " + Gpus(look.gpus.size()) +
                             ", does not answer any more; if it is not being replaced, restart the node"});
    return;
  }
  if (look.never_seen > 0) {
    problems.push_back({kGpuSickReason, "the driver counts " + Gpus(look.never_seen) +
                                            " that it has not reached since grus-node-agent started; drain and restart "
                                            "the node"});
  }
  for (const GpuState& state : look.gpus) {
    if (!state.sample) {
      problems.push_back({kGpuSickReason, Name(state.gpu) +
                                              " is lost: the driver does not reach it any more; drain and "
                                              "restart the node"});
    }
    if (state.fault_xid) {
      problems.push_back({kGpuSickReason, "the driver reported Xid " + std::to_string(*state.fault_xid) + " of " +
                                              Name(state.gpu) +
                                              ", which no application causes; NVIDIA's list of Xids "
                                              "says what to do"});
    }
  }
}

void AddMixed(const NodeSample& look, std::vector<GpuProblem>& problems) {
  std::map<std::string, std::size_t> models;
  for (const GpuState& state : look.gpus) ++models[state.gpu.model];
  if (models.size() < 2) return;
  std::string list;
  for (const auto& [model, count] : models) {
    list.append(list.empty() ? "" : ", ").append(std::to_string(count)).append(" of \"" + model + "\"");
  }
  problems.push_back({kGpuModelsReason,
                      "this node has GPUs of several models, so that no label can say which one a pod "
                      "gets: " +
                          list});
}

std::int64_t Replicas(const kube::Node& node) {
  const std::string_view text = node.metadata.Label(kReplicasLabel);
  std::int64_t number = 1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::clamp<std::int64_t>(number, 1, 1000);
}

void AddCount(const NodeSample& look, const kube::Node& node, std::vector<GpuProblem>& problems) {
  // Of divided GPUs, the node offers the parts.
  if (std::ranges::any_of(look.gpus, [](const GpuState& state) { return state.gpu.is_divided; })) return;
  const auto working = std::ranges::count_if(look.gpus, [](const GpuState& state) { return state.sample.has_value(); });
  const kube::Quantity* const offered = kube::FindResource(node.status.allocatable, kGpuResource);
  const std::int64_t allocatable = offered == nullptr ? 0 : offered->Value();
  if (!node.metadata.Label(api::kSharingModeLabel).empty()) {
    if (allocatable == 0) return;
    problems.push_back({kGpuCountReason,
                        "the node offers " + std::to_string(allocatable) +
                            " nvidia.com/gpu beside parts of its GPUs (label " + api::kSharingModeLabel +
                            "): keep NVIDIA's device plugin away from it, or take the label off",
                        kDevicePluginStarts});
    return;
  }
  if (working * Replicas(node) == allocatable) return;
  std::string note = "the node offers " + std::to_string(allocatable) + " nvidia.com/gpu, and its driver shows " +
                     Gpus(static_cast<std::size_t>(working)) + " in working order: ";
  if (offered == nullptr) note += "is NVIDIA's device plugin running? (With DRA it is not needed.)";
  else if (working == 0)
    note += "does nodeAgent.runtimeClassName bring the driver into the container of grus-node-agent?";
  else note += "what does the device plugin's log say?";
  problems.push_back({kGpuCountReason, std::move(note), kDevicePluginStarts});
}

}  // namespace

std::vector<GpuProblem> FindGpuProblems(const NodeSample& look, const kube::Node* node) {
  std::vector<GpuProblem> problems;
  AddSick(look, problems);
  AddMixed(look, problems);
  if (node != nullptr) AddCount(look, *node, problems);
  return problems;
}

}  // namespace grus
