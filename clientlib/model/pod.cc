// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/pod.h"

#include <algorithm>

namespace kube {

std::span<const FieldInfo> Toleration::Fields() {
  using T = Toleration;
  static constexpr FieldInfo kFields[] = {
      Field<&T::key>("key"),
      Field<&T::op>("operator"),
      Field<&T::value>("value"),
      Field<&T::effect>("effect"),
      Field<&T::toleration_seconds>("tolerationSeconds"),
  };
  return kFields;
}

std::span<const FieldInfo> ResourceRequirements::Fields() {
  using T = ResourceRequirements;
  static constexpr FieldInfo kFields[] = {
      Field<&T::limits>("limits"),
      Field<&T::requests>("requests"),
  };
  return kFields;
}

std::span<const FieldInfo> ContainerPort::Fields() {
  using T = ContainerPort;
  static constexpr FieldInfo kFields[] = {
      Field<&T::host_port>("hostPort"),
      Field<&T::protocol>("protocol"),
      Field<&T::host_ip>("hostIP"),
  };
  return kFields;
}

std::span<const FieldInfo> Container::Fields() {
  using T = Container;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.required = true}),
      Field<&T::image>("image"),
      Field<&T::ports>("ports"),
      Field<&T::resources>("resources"),
      Field<&T::restart_policy>("restartPolicy"),
  };
  return kFields;
}

std::span<const FieldInfo> PodSchedulingGate::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&PodSchedulingGate::name>("name", {.required = true})};
  return kFields;
}

std::span<const FieldInfo> PodResourceClaim::Fields() {
  using T = PodResourceClaim;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.required = true}),
      Field<&T::resource_claim_name>("resourceClaimName"),
      Field<&T::resource_claim_template_name>("resourceClaimTemplateName"),
  };
  return kFields;
}

std::span<const FieldInfo> PodSpec::Fields() {
  using T = PodSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::volumes>("volumes"),
      Field<&T::init_containers>("initContainers"),
      Field<&T::containers>("containers", {.required = true}),
      Field<&T::termination_grace_period_seconds>("terminationGracePeriodSeconds"),
      Field<&T::active_deadline_seconds>("activeDeadlineSeconds"),
      Field<&T::node_selector>("nodeSelector"),
      Field<&T::node_name>("nodeName"),
      Field<&T::hostname>("hostname"),
      Field<&T::subdomain>("subdomain"),
      Field<&T::affinity>("affinity"),
      Field<&T::scheduler_name>("schedulerName"),
      Field<&T::tolerations>("tolerations"),
      Field<&T::priority_class_name>("priorityClassName"),
      Field<&T::priority>("priority"),
      Field<&T::overhead>("overhead"),
      Field<&T::resources>("resources"),
      Field<&T::topology_spread>("topologySpreadConstraints"),
      Field<&T::scheduling_gates>("schedulingGates"),
      Field<&T::resource_claims>("resourceClaims"),
  };
  return kFields;
}

std::span<const FieldInfo> ContainerStateRunning::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&ContainerStateRunning::started_at>("startedAt")};
  return kFields;
}

std::span<const FieldInfo> ContainerStateWaiting::Fields() {
  using T = ContainerStateWaiting;
  static constexpr FieldInfo kFields[] = {
      Field<&T::reason>("reason"),
      Field<&T::message>("message"),
  };
  return kFields;
}

std::span<const FieldInfo> ContainerStateTerminated::Fields() {
  using T = ContainerStateTerminated;
  static constexpr FieldInfo kFields[] = {
      Field<&T::exit_code>("exitCode"),
      Field<&T::reason>("reason"),
      Field<&T::message>("message"),
      Field<&T::finished_at>("finishedAt"),
  };
  return kFields;
}

std::span<const FieldInfo> ContainerState::Fields() {
  using T = ContainerState;
  static constexpr FieldInfo kFields[] = {
      Field<&T::waiting>("waiting"),
      Field<&T::running>("running"),
      Field<&T::terminated>("terminated"),
  };
  return kFields;
}

std::span<const FieldInfo> ContainerStatus::Fields() {
  using T = ContainerStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.required = true}), Field<&T::state>("state"),
      Field<&T::last_state>("lastState"),          Field<&T::ready>("ready"),
      Field<&T::restart_count>("restartCount"),
  };
  return kFields;
}

std::span<const FieldInfo> PodResourceClaimStatus::Fields() {
  using T = PodResourceClaimStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.required = true}),
      Field<&T::resource_claim_name>("resourceClaimName"),
  };
  return kFields;
}

std::span<const FieldInfo> PodStatus::Fields() {
  using T = PodStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::phase>("phase"),
      Field<&T::conditions>("conditions"),
      Field<&T::message>("message"),
      Field<&T::reason>("reason"),
      Field<&T::nominated_node_name>("nominatedNodeName"),
      Field<&T::host_ip>("hostIP"),
      Field<&T::pod_ip>("podIP"),
      Field<&T::start_time>("startTime"),
      Field<&T::init_container_statuses>("initContainerStatuses"),
      Field<&T::container_statuses>("containerStatuses"),
      Field<&T::resource_claim_statuses>("resourceClaimStatuses"),
  };
  return kFields;
}

const Kind& Pod::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&Pod::spec>("spec"),
      Field<&Pod::status>("status"),
  };
  static const Kind kKind = MakeKind<Pod>({.version = "v1", .kind = "Pod", .plural = "pods", .fields = kFields});
  return kKind;
}

bool HasEnded(const Pod& pod) { return pod.status.phase == "Succeeded" || pod.status.phase == "Failed"; }

bool HasGate(const Pod& pod, std::string_view gate) {
  return std::any_of(pod.spec.scheduling_gates.begin(), pod.spec.scheduling_gates.end(),
                     [&](const PodSchedulingGate& one) { return one.name == gate; });
}

const CoreCondition* FindUnschedulable(const Pod& pod) {
  const CoreCondition* scheduled = FindCondition(pod.status.conditions, "PodScheduled");
  return scheduled && !scheduled->is_true() && scheduled->reason == "Unschedulable" ? scheduled : nullptr;
}

}  // namespace kube
