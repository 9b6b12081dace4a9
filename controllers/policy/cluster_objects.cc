// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/cluster_objects.h"

#include <algorithm>

#include "controllers/policy/gpu_annotations.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/gpushare_gpus.h"
#include "controllers/policy/pod_needs.h"
#include "controllers/policy/pod_parts.h"

namespace grus {
namespace {

// Users may write any number. No machine has more than this (a PiB), and sums over thousands of such pods stay exact:
// what was added can be taken off again.
constexpr std::int64_t kMostOfOne = std::int64_t{1} << 50;

void Set(Resources& resources, std::string_view name, const kube::Quantity& quantity) {
  const std::int64_t stated = name == "cpu" ? quantity.MilliValue() : quantity.Value();
  const std::int64_t amount = std::clamp(stated, -kMostOfOne, kMostOfOne);
  if (name == "cpu") resources.milli_cpu = amount;
  else if (name == "memory") resources.memory_bytes = amount;
  else if (name == "pods") resources.pods = amount;
  else resources.AddExtended(name, amount - resources.Extended(name));  // GPUs, hugepages and others.
}

Resources FromList(const kube::ResourceList& list) {
  Resources resources;
  for (const auto& [name, quantity] : list) {
    if (!quantity.is_zero()) Set(resources, name, quantity);
  }
  return resources;
}

// For some resources, the request of the pod as a whole replaces the sum over its containers.
void TakeOfPod(const kube::ResourceList& list, Resources& request) {
  for (const auto& [name, quantity] : list) {
    const bool may_state = name == "cpu" || name == "memory" || std::string_view(name).starts_with("hugepages-");
    if (may_state) Set(request, name, quantity);
  }
}

void AddHostPorts(const std::vector<kube::Container>& containers, bool only_sidecars, std::vector<HostPort>& ports) {
  for (const kube::Container& container : containers) {
    if (only_sidecars && container.restart_policy != "Always") continue;
    for (const kube::ContainerPort& port : container.ports) {
      if (port.host_port > 0) ports.push_back({port.host_port, port.protocol, port.host_ip});
    }
  }
}

// Nobody writes more by hand. An object has room for thousands, which would slow down every plan.
constexpr std::size_t kMostTerms = 100;

template <typename T>
void KeepFirst(std::vector<T>& terms) {
  if (terms.size() > kMostTerms) terms.resize(kMostTerms);
}

}  // namespace

Resources RequestOf(const kube::Pod& pod) {
  Resources request;
  for (const auto& [name, need] : PodNeeds(pod.spec, &kube::ResourceRequirements::requests)) Set(request, name, need);
  if (pod.spec.resources) TakeOfPod(pod.spec.resources->requests, request);
  request += FromList(pod.spec.overhead);
  AddSaidOfParts(pod, request);
  request.pods = 1;
  return request;
}

NodeState StateOf(const kube::Node& node) {
  NodeState state;
  state.name = node.metadata.name;
  state.allocatable = FromList(node.status.allocatable);
  AddGpus(node, state.allocatable);
  AddGpushareGpus(node, state.allocatable);
  state.labels = node.metadata.labels;
  state.is_cordoned = node.spec.unschedulable || node.metadata.is_being_deleted();
  state.taints = node.spec.taints;
  return state;
}

PodShape FootprintOf(const kube::Pod& pod) {
  PodShape shape;
  shape.ns = pod.metadata.ns;
  shape.labels = pod.metadata.labels;
  AddHostPorts(pod.spec.containers, false, shape.host_ports);
  AddHostPorts(pod.spec.init_containers, true, shape.host_ports);
  if (pod.spec.affinity && pod.spec.affinity->pod_anti) shape.anti_affinity = pod.spec.affinity->pod_anti->required;
  KeepFirst(shape.anti_affinity);
  KeepFirst(shape.host_ports);
  return shape;
}

PodShape ShapeOf(const kube::Pod& pod) {
  PodShape shape = FootprintOf(pod);
  shape.request = RequestOf(pod);
  if (AsksForGpuParts(shape.request)) shape.placement = PartPlacementOf(pod);
  shape.node_selector = pod.spec.node_selector;
  shape.tolerations = pod.spec.tolerations;
  for (kube::Toleration& toleration : shape.tolerations) toleration.toleration_seconds.reset();
  if (const auto& affinity = pod.spec.affinity) {
    if (affinity->node) shape.node_affinity = affinity->node->required;
    if (affinity->pod) shape.affinity = affinity->pod->required;
  }
  for (const kube::TopologySpreadConstraint& constraint : pod.spec.topology_spread) {
    if (constraint.when_unsatisfiable != "ScheduleAnyway") shape.spread.push_back(constraint);
  }
  KeepFirst(shape.affinity);
  KeepFirst(shape.spread);
  return shape;
}

}  // namespace grus
