// SPDX-License-Identifier: Apache-2.0
// Pod, as much of it as a job operator reads. Never send one back whole.
//
// Pods are cached by the hundred thousand: strings are CompactString, rare parts are boxed, and fields that nobody
// reads (environments, probes, volumes without a claim) are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "clientlib/model/affinity.h"
#include "clientlib/model/box.h"
#include "clientlib/model/condition.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/quantity.h"
#include "clientlib/model/volumes.h"

namespace kube {

struct Toleration {
  CompactString key, op, value = {}, effect = {};  // `op` is `operator` in the API; empty means "Equal".
  std::optional<std::int64_t> toleration_seconds = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

struct ResourceRequirements {
  ResourceList requests = {}, limits = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourceRequirements&, const ResourceRequirements&) = default;
};

struct ContainerPort {
  std::int32_t host_port = 0;                 // 0: no port of the node.
  CompactString protocol = {}, host_ip = {};  // Empty: TCP, all addresses.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ContainerPort&, const ContainerPort&) = default;
};

struct Container {
  CompactString name, image = {};
  CompactString restart_policy = {};  // "Always": an init container that stays (a sidecar).
  ResourceRequirements resources = {};
  std::vector<ContainerPort> ports = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Container&, const Container&) = default;
};

struct PodSchedulingGate {
  CompactString name;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PodSchedulingGate&, const PodSchedulingGate&) = default;
};

// Names a claim, or a template from which each pod gets a claim of its own.
struct PodResourceClaim {
  CompactString name, resource_claim_name = {}, resource_claim_template_name = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PodResourceClaim&, const PodResourceClaim&) = default;
};

struct PodSpec {
  CompactString node_name, hostname, subdomain, scheduler_name, priority_class_name;
  StringMap node_selector;
  std::vector<Toleration> tolerations;
  std::vector<Container> containers, init_containers;
  std::vector<PodSchedulingGate> scheduling_gates;
  std::vector<Volume> volumes;  // Those with a claim.
  Box<std::vector<PodResourceClaim>> resource_claims;
  std::optional<std::int32_t> priority;
  ResourceList overhead;
  Box<ResourceRequirements> resources;  // Of the pod as a whole, in place of the sum of its containers'.
  Box<Affinity> affinity;
  std::vector<TopologySpreadConstraint> topology_spread;
  std::optional<std::int64_t> termination_grace_period_seconds, active_deadline_seconds;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

struct ContainerStateRunning {
  std::optional<Time> started_at;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ContainerStateRunning&, const ContainerStateRunning&) = default;
};

struct ContainerStateWaiting {
  CompactString reason, message;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ContainerStateWaiting&, const ContainerStateWaiting&) = default;
};

struct ContainerStateTerminated {
  std::int32_t exit_code = 0;
  CompactString reason, message;
  std::optional<Time> finished_at;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ContainerStateTerminated&, const ContainerStateTerminated&) = default;
};

// At most one is set.
struct ContainerState {
  Box<ContainerStateRunning> running;
  Box<ContainerStateWaiting> waiting;
  Box<ContainerStateTerminated> terminated;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ContainerState&, const ContainerState&) = default;
};

struct ContainerStatus {
  CompactString name;
  std::int32_t restart_count = 0;
  bool ready = false;
  ContainerState state, last_state;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ContainerStatus&, const ContainerStatus&) = default;
};

// The claim that was made from a template.
struct PodResourceClaimStatus {
  CompactString name, resource_claim_name = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PodResourceClaimStatus&, const PodResourceClaimStatus&) = default;
};

struct PodStatus {
  CompactString phase;  // "Pending", "Running", "Succeeded", "Failed" or "Unknown".
  CompactString reason, message, pod_ip, host_ip, nominated_node_name;
  std::optional<Time> start_time;
  std::vector<CoreCondition> conditions;
  std::vector<ContainerStatus> container_statuses, init_container_statuses;
  Box<std::vector<PodResourceClaimStatus>> resource_claim_statuses;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PodStatus&, const PodStatus&) = default;
};

struct Pod : Object {
  PodSpec spec;
  PodStatus status;
  static const Kind& ResourceKind();
};

bool HasEnded(const Pod& pod);  // Succeeded or Failed.
bool HasGate(const Pod& pod, std::string_view gate);
const CoreCondition* FindUnschedulable(const Pod& pod);  // The scheduler's condition that no node fits; null: none.

}  // namespace kube
