// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/devices.h"

namespace kube {
namespace {

constexpr char kGroup[] = "resource.k8s.io";

}  // namespace

std::span<const FieldInfo> Presence::Fields() { return {}; }

std::span<const FieldInfo> CelDeviceSelector::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&CelDeviceSelector::expression>("expression")};
  return kFields;
}

std::span<const FieldInfo> DeviceSelector::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&DeviceSelector::cel>("cel")};
  return kFields;
}

std::span<const FieldInfo> DeviceClassSpec::Fields() {
  using T = DeviceClassSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::selectors>("selectors"),
      Field<&T::extended_resource_name>("extendedResourceName"),
  };
  return kFields;
}

const Kind& DeviceClass::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&DeviceClass::spec>("spec"),
  };
  static const Kind kKind = MakeKind<DeviceClass>({.group = kGroup,
                                                   .version = "v1",
                                                   .kind = "DeviceClass",
                                                   .plural = "deviceclasses",
                                                   .is_namespaced = false,
                                                   .fields = kFields});
  return kKind;
}

std::span<const FieldInfo> DeviceAttribute::Fields() {
  using T = DeviceAttribute;
  static constexpr FieldInfo kFields[] = {
      Field<&T::string>("string"),
      Field<&T::integer>("int"),
      Field<&T::boolean>("bool"),
  };
  return kFields;
}

std::span<const FieldInfo> DeviceCapacity::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&DeviceCapacity::value>("value")};
  return kFields;
}

std::span<const FieldInfo> DeviceTaint::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&DeviceTaint::effect>("effect")};
  return kFields;
}

std::span<const FieldInfo> Device::Fields() {
  using T = Device;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name"),
      Field<&T::attributes>("attributes"),
      Field<&T::capacity>("capacity"),
      Field<&T::taints>("taints"),
      Field<&T::consumes_counters>("consumesCounters"),
      Field<&T::allow_multiple_allocations>("allowMultipleAllocations", {.omit_zero = true}),
  };
  return kFields;
}

std::span<const FieldInfo> ResourcePool::Fields() {
  using T = ResourcePool;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name"),
      Field<&T::generation>("generation", {.omit_zero = true}),
      Field<&T::slice_count>("resourceSliceCount", {.omit_zero = true}),
  };
  return kFields;
}

std::span<const FieldInfo> ResourceSliceSpec::Fields() {
  using T = ResourceSliceSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::driver>("driver"),
      Field<&T::node_name>("nodeName"),
      Field<&T::pool>("pool"),
      Field<&T::devices>("devices"),
  };
  return kFields;
}

const Kind& ResourceSlice::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&ResourceSlice::spec>("spec"),
  };
  static const Kind kKind = MakeKind<ResourceSlice>({.group = kGroup,
                                                     .version = "v1",
                                                     .kind = "ResourceSlice",
                                                     .plural = "resourceslices",
                                                     .is_namespaced = false,
                                                     .fields = kFields});
  return kKind;
}

}  // namespace kube
