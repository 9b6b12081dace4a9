// SPDX-License-Identifier: Apache-2.0
// The part of ClusterAccount that adds claimed devices to pods, and the devices of slices to nodes. It reads claims and
// slices under the lock: of two threads that account for one pod or node, the later one has seen all changes.
#include <algorithm>

#include "controllers/cluster/cluster_account.h"
#include "controllers/cluster/owners.h"

namespace grus {

VolumeLimits ClusterAccount::VolumesOf(const kube::Pod& pod) const {
  VolumeLimits limits = volumes_ ? volumes_->LimitsOf(pod) : VolumeLimits();
  if (devices_ && limits.problem.empty()) limits.problem = devices_->NeedsOf(pod).problem;
  return limits;
}

void ClusterAccount::OnDevices(const std::string& name) {
  Apply([&](Effects& effects) {
    const auto account = [&](const kube::Node& node) {
      const LedgerNode* known = ledger_.FindNode(node.metadata.name);
      if (known == nullptr || !known->is_known) return;  // OnNode() will add it, with these devices.
      NodeState state = StateOf(node, devices_);
      if (state.allocatable == known->state.allocatable) return;
      ledger_.PutNode(std::move(state));
      effects.has_freed = true;
    };
    if (name.empty()) {
      for (const auto& node : nodes_.List<kube::Node>()) account(*node);
    } else if (const auto node = nodes_.Get<kube::Node>({"", name})) {
      account(*node);
    }
  });
}

void ClusterAccount::OnNeeds(const std::string& key) {
  Apply([&](Effects& effects) {
    std::vector<std::string>& urgent = effects.urgent;
    for (const auto& pod : pods_.ByIndex<kube::Pod>(pods_by_device_key_, key)) {
      RecountLocked(*pod, effects);
      std::string owner = OwnerOf(*pod);
      if (pod->spec.node_name.empty() && !owner.empty()) urgent.push_back(std::move(owner));
    }
    std::sort(urgent.begin(), urgent.end());
    urgent.erase(std::unique(urgent.begin(), urgent.end()), urgent.end());
    effects.has_freed = true;  // Also for waiting jobs, whose pods do not exist yet.
  });
}

}  // namespace grus
