// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/resource_claims.h"

namespace kube {
namespace {

constexpr char kGroup[] = "resource.k8s.io";

}  // namespace

std::span<const FieldInfo> CapacityRequirements::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&CapacityRequirements::requests>("requests")};
  return kFields;
}

std::span<const FieldInfo> ExactDeviceRequest::Fields() {
  using T = ExactDeviceRequest;
  static constexpr FieldInfo kFields[] = {
      Field<&T::device_class_name>("deviceClassName"),
      Field<&T::allocation_mode>("allocationMode"),
      Field<&T::count>("count", {.omit_zero = true}),
      Field<&T::admin_access>("adminAccess", {.omit_zero = true}),
      Field<&T::selectors>("selectors"),
      Field<&T::tolerations>("tolerations"),
      Field<&T::capacity>("capacity"),
  };
  return kFields;
}

std::span<const FieldInfo> DeviceSubRequest::Fields() {
  using T = DeviceSubRequest;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name"),
      Field<&T::device_class_name>("deviceClassName"),
      Field<&T::allocation_mode>("allocationMode"),
      Field<&T::count>("count", {.omit_zero = true}),
      Field<&T::capacity>("capacity"),
  };
  return kFields;
}

std::span<const FieldInfo> DeviceRequest::Fields() {
  using T = DeviceRequest;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name"),
      Field<&T::exactly>("exactly"),
      Field<&T::first_available>("firstAvailable"),
  };
  return kFields;
}

std::span<const FieldInfo> DeviceClaim::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&DeviceClaim::requests>("requests")};
  return kFields;
}

std::span<const FieldInfo> ResourceClaimSpec::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&ResourceClaimSpec::devices>("devices")};
  return kFields;
}

std::span<const FieldInfo> DeviceAllocation::Fields() {
  using T = DeviceAllocation;
  static constexpr FieldInfo kFields[] = {
      Field<&T::request>("request"),
      Field<&T::driver>("driver"),
      Field<&T::pool>("pool"),
      Field<&T::device>("device"),
      Field<&T::share_id>("shareID"),
      Field<&T::admin_access>("adminAccess", {.omit_zero = true}),
      Field<&T::consumed_capacity>("consumedCapacity"),
  };
  return kFields;
}

std::span<const FieldInfo> DeviceAllocations::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&DeviceAllocations::results>("results")};
  return kFields;
}

std::span<const FieldInfo> AllocationResult::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&AllocationResult::devices>("devices")};
  return kFields;
}

std::span<const FieldInfo> ClaimConsumer::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&ClaimConsumer::uid>("uid")};
  return kFields;
}

std::span<const FieldInfo> ResourceClaimStatus::Fields() {
  using T = ResourceClaimStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::allocation>("allocation"),
      Field<&T::reserved_for>("reservedFor"),
  };
  return kFields;
}

const Kind& ResourceClaim::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&ResourceClaim::spec>("spec"),
      Field<&ResourceClaim::status>("status"),
  };
  static const Kind kKind = MakeKind<ResourceClaim>(
      {.group = kGroup, .version = "v1", .kind = "ResourceClaim", .plural = "resourceclaims", .fields = kFields});
  return kKind;
}

std::span<const FieldInfo> ResourceClaimTemplateSpec::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&ResourceClaimTemplateSpec::spec>("spec")};
  return kFields;
}

const Kind& ResourceClaimTemplate::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&ResourceClaimTemplate::spec>("spec"),
  };
  static const Kind kKind = MakeKind<ResourceClaimTemplate>({.group = kGroup,
                                                             .version = "v1",
                                                             .kind = "ResourceClaimTemplate",
                                                             .plural = "resourceclaimtemplates",
                                                             .fields = kFields});
  return kKind;
}

}  // namespace kube
