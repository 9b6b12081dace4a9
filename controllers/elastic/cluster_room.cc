// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/cluster_room.h"

#include "controllers/elastic/elastic_view.h"

namespace grus {
namespace {

Resources FromList(const kube::ResourceList& list) {
  Resources resources;
  for (const auto& [name, quantity] : list) {
    if (name == "cpu") resources.milli_cpu = quantity.MilliValue();
    else if (name == "memory") resources.memory_bytes = quantity.Value();
    else if (name == "pods") resources.pods = quantity.Value();
    else if (name.view().find('/') != std::string_view::npos) resources.AddExtended(name, quantity.Value());
  }
  return resources;
}

// Pods that have ended hold nothing, though they still name their node.
bool HoldsNode(const kube::Pod& pod) {
  return !pod.spec.node_name.empty() && pod.status.phase != "Succeeded" && pod.status.phase != "Failed";
}

std::string OwnerOf(const kube::Pod& pod) {
  const std::string_view job = pod.metadata.labels.Get(kJobNameLabel);
  if (job.empty() || pod.metadata.labels.Get(kRoleLabel) != "worker") return {};
  return kube::ObjectKey{pod.metadata.ns, std::string(job)}.ToString();
}

}  // namespace

Resources RequestOf(const kube::Pod& pod) {
  Resources request;
  for (const kube::Container& container : pod.spec.containers) request += FromList(container.resources.requests);
  // As the scheduler counts (KEP-753): one that runs to its end needs its own beside the sidecars before it.
  Resources sidecars, start;
  for (const kube::Container& container : pod.spec.init_containers) {
    Resources peak = FromList(container.resources.requests);
    peak += sidecars;
    start.RaiseTo(peak);
    if (container.restart_policy == "Always") sidecars = std::move(peak);
  }
  request += sidecars;
  request.RaiseTo(start);
  request += FromList(pod.spec.overhead);
  request.pods = 1;
  return request;
}

NodeState StateOf(const kube::Node& node) {
  NodeState state;
  state.name = node.metadata.name;
  state.allocatable = FromList(node.status.allocatable);
  state.labels = node.metadata.labels;
  state.is_cordoned = node.spec.unschedulable || node.metadata.is_being_deleted();
  for (const kube::Taint& taint : node.spec.taints) state.taints.push_back({taint.key, taint.value, taint.effect});
  return state;
}

ClusterRoom::ClusterRoom(kube::Informer& nodes, kube::Informer& pods, std::function<void()> on_freed)
    : on_freed_(std::move(on_freed)) {
  nodes.AddHandler([this](const kube::Change& change, bool) { OnNode(change); });
  pods.AddHandler([this](const kube::Change& change, bool) { OnPod(change); });
}

void ClusterRoom::OnNode(const kube::Change& change) {
  const auto* before = static_cast<const kube::Node*>(change.before.get());
  const auto* after = static_cast<const kube::Node*>(change.after.get());
  if (before && after && before->spec == after->spec && before->status.allocatable == after->status.allocatable &&
      before->metadata.labels == after->metadata.labels &&
      before->metadata.is_being_deleted() == after->metadata.is_being_deleted()) {
    return;  // A heartbeat.
  }
  {
    std::lock_guard lock(mutex_);
    if (after) ledger_.PutNode(StateOf(*after));
    else ledger_.RemoveNode(before->metadata.name);
  }
  on_freed_();
}

void ClusterRoom::OnPod(const kube::Change& change) {
  const auto* before = static_cast<const kube::Pod*>(change.before.get());
  const auto* after = static_cast<const kube::Pod*>(change.after.get());
  const bool held = before && HoldsNode(*before);
  const bool holds = after && HoldsNode(*after);
  const bool is_same_pod = before && after && before->metadata.uid == after->metadata.uid;
  if (held == holds && (!holds || is_same_pod)) return;
  {
    std::lock_guard lock(mutex_);
    if (held) ledger_.Release(before->metadata.uid);
    if (holds) ledger_.Bind(after->metadata.uid, after->spec.node_name, RequestOf(*after), OwnerOf(*after));
  }
  if (held) on_freed_();
}

bool ClusterRoom::HasNode(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return ledger_.HasNode(name);
}

void ClusterRoom::Claim(const std::string& owner, const PodShape& shape, int count) {
  std::lock_guard lock(mutex_);
  ledger_.Claim(owner, shape, count);
}

Room ClusterRoom::RoomFor(const std::string& owner, const PodShape& shape, int at_most) const {
  std::lock_guard lock(mutex_);
  return ledger_.RoomFor(owner, shape, at_most);
}

Room ClusterRoom::ClaimRoom(const std::string& owner, const PodShape& shape, int wanted) {
  std::lock_guard lock(mutex_);
  const Room room = ledger_.RoomFor(owner, shape, wanted);
  ledger_.Claim(owner, shape, room.copies);
  return room;
}

}  // namespace grus
