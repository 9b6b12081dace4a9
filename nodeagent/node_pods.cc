// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/node_pods.h"

#include <memory>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

// On the mirror pod of a static pod: the UID that the kubelet uses.
constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";

}  // namespace

std::vector<std::string> UidsOf(const kube::Object& pod) {
  std::vector<std::string> uids = {pod.metadata.uid};
  const std::string_view mirrored = pod.metadata.Annotation(kMirrorAnnotation);
  if (!mirrored.empty()) uids.emplace_back(mirrored);
  return uids;
}

std::span<const kube::FieldInfo> PartLimits::Fields() {
  using T = PartLimits;
  static constexpr kube::FieldInfo kFields[] = {
      kube::Field<&T::gpu_milli>(api::kGpuMilliResource),
      kube::Field<&T::vgpu_memory>(api::kVgpuMemoryResource),
      kube::Field<&T::vgpu_compute>(api::kVgpuComputeResource),
      kube::Field<&T::gpu_mem>(api::kGpuMemResource),
  };
  return kFields;
}

std::span<const kube::FieldInfo> PartRequirements::Fields() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&PartRequirements::limits>("limits")};
  return kFields;
}

std::span<const kube::FieldInfo> NodeVariable::Fields() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&NodeVariable::name>("name", {.required = true})};
  return kFields;
}

std::span<const kube::FieldInfo> NodeContainerSpec::Fields() {
  using T = NodeContainerSpec;
  static constexpr kube::FieldInfo kFields[] = {
      kube::Field<&T::name>("name", {.required = true}),
      kube::Field<&T::env>("env"),
      kube::Field<&T::resources>("resources"),
      kube::Field<&T::restart_policy>("restartPolicy"),
  };
  return kFields;
}

std::span<const kube::FieldInfo> NodePodSpec::Fields() {
  using T = NodePodSpec;
  static constexpr kube::FieldInfo kFields[] = {
      kube::Field<&T::scheduler_name>("schedulerName"),
      kube::Field<&T::containers>("containers"),
      kube::Field<&T::init_containers>("initContainers"),
      kube::Field<&T::resource_claims>("resourceClaims"),
  };
  return kFields;
}

std::span<const kube::FieldInfo> NodeContainer::Fields() {
  using T = NodeContainer;
  static constexpr kube::FieldInfo kFields[] = {
      kube::Field<&T::name>("name", {.required = true}),
      kube::Field<&T::container_id>("containerID"),
  };
  return kFields;
}

std::span<const kube::FieldInfo> NodePodStatus::Fields() {
  using T = NodePodStatus;
  static constexpr kube::FieldInfo kFields[] = {
      kube::Field<&T::phase>("phase"),
      kube::Field<&T::containers>("containerStatuses"),
      kube::Field<&T::init_containers>("initContainerStatuses"),
      kube::Field<&T::ephemeral_containers>("ephemeralContainerStatuses"),
  };
  return kFields;
}

const kube::Kind& NodePod::ResourceKind() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&NodePod::spec>("spec"),
                                                kube::Field<&NodePod::status>("status")};
  static const kube::Kind kKind =
      kube::MakeKind<NodePod>({.version = "v1", .kind = "Pod", .plural = "pods", .fields = kFields});
  return kKind;
}

NodePods::NodePods(kube::Client& client, const std::string& node, const kube::Clock& clock, const kube::Log& log)
    : pods_(client, kube::KindOf<NodePod>(), {.field_selector = "spec.nodeName=" + node}, clock, log),
      by_uid_(pods_.AddIndex(UidsOf)) {}

std::optional<PodName> NodePods::Find(const PodOfProcess& pod) const {
  // Two only while one of them is a mirror that the kubelet is about to replace; both have the same name.
  const auto found = pods_.ByIndex<NodePod>(by_uid_, pod.pod_uid);
  if (found.empty()) return std::nullopt;
  const NodePod& known = *found.front();
  PodName name{.ns = known.metadata.ns, .pod = known.metadata.name};
  if (pod.container_id.empty()) return name;
  const NodePodStatus& status = known.status;
  for (const auto* list : {&status.containers, &status.init_containers, &status.ephemeral_containers}) {
    for (const NodeContainer& container : *list) {
      if (container.container_id.ends_with("://" + pod.container_id)) name.container = container.name;
    }
  }
  return name;
}

}  // namespace grus
