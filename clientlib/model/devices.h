// SPDX-License-Identifier: Apache-2.0
// The devices that nodes have, and their classes (Dynamic Resource Allocation): the fields needed to count the devices
// of a class on a node. Never send one back whole. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "clientlib/model/box.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/quantity.h"

namespace kube {

// Only its presence matters.
struct Presence {
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Presence&, const Presence&) = default;
};

struct CelDeviceSelector {
  CompactString expression;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const CelDeviceSelector&, const CelDeviceSelector&) = default;
};

struct DeviceSelector {
  Box<CelDeviceSelector> cel;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceSelector&, const DeviceSelector&) = default;
};

struct DeviceClassSpec {
  std::vector<DeviceSelector> selectors;  // A device of the class matches all of them.
  CompactString extended_resource_name;   // Containers may request the devices by this name, too.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceClassSpec&, const DeviceClassSpec&) = default;
};

struct DeviceClass : Object {
  DeviceClassSpec spec;
  static const Kind& ResourceKind();
};

// At most one is set; versions and lists are not read.
struct DeviceAttribute {
  CompactString string = {};
  std::optional<std::int64_t> integer = {};
  std::optional<bool> boolean = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceAttribute&, const DeviceAttribute&) = default;
};
using DeviceAttributes = std::vector<std::pair<CompactString, DeviceAttribute>>;  // "type", or "DOMAIN/type".

struct DeviceCapacity {
  Quantity value;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceCapacity&, const DeviceCapacity&) = default;
};
using DeviceCapacities = std::vector<std::pair<CompactString, DeviceCapacity>>;  // "memory", or "DOMAIN/memory".

struct DeviceTaint {
  CompactString effect;  // "NoSchedule", "NoExecute" or "None".
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceTaint&, const DeviceTaint&) = default;
};

struct Device {
  CompactString name;
  DeviceAttributes attributes = {};
  DeviceCapacities capacity = {};
  std::vector<DeviceTaint> taints = {};
  std::vector<Presence> consumes_counters = {};  // Not empty: it shares hardware with other devices.
  bool allow_multiple_allocations = false;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Device&, const Device&) = default;
};

struct ResourcePool {
  CompactString name;
  std::int64_t generation = 0, slice_count = 0;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourcePool&, const ResourcePool&) = default;
};

struct ResourceSliceSpec {
  CompactString driver, node_name;  // No node: its devices belong to no single node.
  ResourcePool pool;
  std::vector<Device> devices;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourceSliceSpec&, const ResourceSliceSpec&) = default;
};

struct ResourceSlice : Object {
  ResourceSliceSpec spec;
  static const Kind& ResourceKind();
};

}  // namespace kube
