// SPDX-License-Identifier: Apache-2.0
#include "bench/parts/part_audit.h"

#include <algorithm>

#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/gpu_annotations.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace bench {
namespace {

constexpr std::int64_t kWholeGpu = 1000;

}  // namespace

void PartAudit::PutNode(const kube::Node& node) {
  const grus::NodeState state = grus::StateOf(node);
  const std::string prefix = std::string(api::kGpuMilliResource) + "#";
  for (const auto& [name, amount] : state.allocatable.extended) {
    if (name.starts_with(prefix)) node_of_[name.substr(prefix.size())] = state.name;
  }
}

void PartAudit::Release(const std::string& uid) {
  const auto held = held_.find(uid);
  if (held == held_.end()) return;
  milli_[held->second.gpu] -= held->second.milli;
  held_.erase(held);
}

void PartAudit::RemovePod(const kube::Pod& pod) {
  ++revisions_;
  Release(std::string(pod.metadata.uid));
}

void PartAudit::PutPod(const kube::Pod& pod) {
  ++revisions_;
  const std::string uid(pod.metadata.uid), node(pod.spec.node_name);
  Release(uid);
  const std::int64_t milli = grus::MilliOfGpuParts(grus::RequestOf(pod));
  const bool has_ended = pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
  if (node.empty() || milli == 0 || has_ended) return;
  const auto fault = [&](const std::string& what) {
    faults_.push_back("pod " + pod.metadata.Key().ToString() + " on " + node + ": " + what);
  };
  const std::string gpu = grus::GpusOf(pod);
  const auto gpus = gpu.empty() ? 0 : std::ranges::count(gpu, ',') + 1;
  if (gpus != 1) return fault("its annotations name " + std::to_string(gpus) + " GPUs");
  const auto at = node_of_.find(gpu);
  if (at == node_of_.end() || at->second != node) return fault(gpu + " is not of its node");
  held_[uid] = {gpu, milli};
  const std::int64_t sum = milli_[gpu] += milli;
  most_milli_ = std::max(most_milli_, sum);
  if (sum > kWholeGpu) fault(std::to_string(sum) + " thousandths of " + gpu + " are given");
}

}  // namespace bench
