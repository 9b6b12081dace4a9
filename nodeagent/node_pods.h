// SPDX-License-Identifier: Apache-2.0
// The pods of this node as the API server has them: their names, and which parts of GPUs they ask for. Only this node's
// pods are listed and watched.
//
// Without an API server the agent goes on: pods that it has not heard of have no name. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/devices.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/quantity.h"
#include "nodeagent/pod_names.h"

namespace grus {

// Limits of a container, as much of them as has to do with parts of GPUs.
struct PartLimits {
  std::optional<kube::Quantity> gpu_milli, vgpu_memory, vgpu_compute, gpu_mem;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const PartLimits&, const PartLimits&) = default;
};

struct PartRequirements {
  PartLimits limits;  // Of extended resources, requests are the same.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const PartRequirements&, const PartRequirements&) = default;
};

struct NodeVariable {
  kube::CompactString name;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodeVariable&, const NodeVariable&) = default;
};

struct NodeContainerSpec {
  kube::CompactString name;
  std::vector<NodeVariable> env = {};
  PartRequirements resources = {};
  kube::CompactString restart_policy = {};  // Of an init container: "Always" says that it is a sidecar.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodeContainerSpec&, const NodeContainerSpec&) = default;
};

struct NodePodSpec {
  kube::CompactString scheduler_name = {};
  std::vector<NodeContainerSpec> containers, init_containers;
  std::vector<kube::Presence> resource_claims = {};  // How many.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodePodSpec&, const NodePodSpec&) = default;
};

struct NodeContainer {
  std::string name, container_id = {};  // "containerd://ID"
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodeContainer&, const NodeContainer&) = default;
};

struct NodePodStatus {
  kube::CompactString phase;
  std::vector<NodeContainer> containers, init_containers, ephemeral_containers;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const NodePodStatus&, const NodePodStatus&) = default;
};

// A pod, as much of it as has to do with names and parts of GPUs.
struct NodePod : kube::Object {
  NodePodSpec spec;
  NodePodStatus status;
  bool has_ended() const { return status.phase == "Succeeded" || status.phase == "Failed"; }
  static const kube::Kind& ResourceKind();
};

// By which the cgroups of its processes may name it.
std::vector<std::string> UidsOf(const kube::Object& pod);

class NodePods final : public PodNames {
 public:
  // All must outlive it.
  NodePods(kube::Client& client, const std::string& node, const kube::Clock& clock, const kube::Log& log);

  void Start() { pods_.Start(); }
  std::optional<PodName> Find(const PodOfProcess& pod) const override;
  bool HasList() const { return pods_.HasList(); }  // The first list is here.
  std::vector<std::shared_ptr<const NodePod>> List() const { return pods_.List<NodePod>(); }
  // Waits until the first list is here; false if it does not come in time.
  bool WaitForSync(kube::TimePoint until) const { return pods_.WaitForSync(until); }

 private:
  kube::Informer pods_;
  const kube::Store::IndexId by_uid_;  // Static pods also by the UID that their cgroups have.
};

}  // namespace grus
