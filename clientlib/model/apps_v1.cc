// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/apps_v1.h"

namespace kube {

std::span<const FieldInfo> StatefulSetSpec::Fields() {
  using T = StatefulSetSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::replicas>("replicas"),
      Field<&T::service_name>("serviceName"),
      Field<&T::pod_management_policy>("podManagementPolicy"),
  };
  return kFields;
}

std::span<const FieldInfo> StatefulSetStatus::Fields() {
  using T = StatefulSetStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::observed_generation>("observedGeneration", {.omit_zero = true}),
      Field<&T::replicas>("replicas"),
      Field<&T::ready_replicas>("readyReplicas", {.omit_zero = true}),
      Field<&T::current_replicas>("currentReplicas", {.omit_zero = true}),
      Field<&T::updated_replicas>("updatedReplicas", {.omit_zero = true}),
      Field<&T::current_revision>("currentRevision"),
      Field<&T::update_revision>("updateRevision"),
      Field<&T::available_replicas>("availableReplicas"),
  };
  return kFields;
}

const Kind& StatefulSet::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&StatefulSet::spec>("spec"),
      Field<&StatefulSet::spec_json>("spec", {.read_only = true}),
      Field<&StatefulSet::status>("status"),
  };
  static const Kind kKind = MakeKind<StatefulSet>(
      {.group = "apps", .version = "v1", .kind = "StatefulSet", .plural = "statefulsets", .fields = kFields});
  return kKind;
}

}  // namespace kube
