// SPDX-License-Identifier: Apache-2.0
// The pods of this node as the API server has them, for their names. Only this node's pods are listed and watched.
//
// Without an API server the agent goes on: pods that it has not heard of have no name. Thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/kind.h"
#include "nodeagent/pod_names.h"

namespace grus {

struct NodeContainer {
  std::string name, container_id = {};  // "containerd://ID"
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodeContainer&, const NodeContainer&) = default;
};

struct NodePodStatus {
  std::vector<NodeContainer> containers, init_containers, ephemeral_containers;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodePodStatus&, const NodePodStatus&) = default;
};

// A pod, as much of it as has to do with names.
struct NodePod : kube::Object {
  NodePodStatus status;
  static const kube::Kind& ResourceKind();
};

class NodePods final : public PodNames {
 public:
  // All must outlive it.
  NodePods(kube::Client& client, const std::string& node, const kube::Clock& clock, const kube::Log& log);

  void Start() { pods_.Start(); }
  std::optional<PodName> Find(const PodOfProcess& pod) const override;
  // Waits until the first list is here; false if it does not come in time.
  bool WaitForSync(kube::TimePoint until) const { return pods_.WaitForSync(until); }

 private:
  kube::Informer pods_;
  const kube::Store::IndexId by_uid_;  // Static pods also by the UID that their cgroups have.
};

}  // namespace grus
