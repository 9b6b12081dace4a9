// SPDX-License-Identifier: Apache-2.0
// Pods' claims for devices of a class (Dynamic Resource Allocation), and their allocation: the fields needed to count
// the devices that a pod holds. Never send one back whole. Values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clientlib/model/devices.h"
#include "clientlib/model/quantity.h"

namespace kube {

struct CapacityRequirements {
  ResourceList requests;  // Of one device; what is not named has the default of the device.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const CapacityRequirements&, const CapacityRequirements&) = default;
};

struct ExactDeviceRequest {
  CompactString device_class_name, allocation_mode = {};  // Mode: "ExactCount" (also if empty) or "All".
  std::int64_t count = 0;                                 // 0: not set, which means 1.
  bool admin_access = false;
  std::vector<DeviceSelector> selectors = {};
  std::vector<Presence> tolerations = {};
  Box<CapacityRequirements> capacity = {};  // Set: it requests a part of a device.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ExactDeviceRequest&, const ExactDeviceRequest&) = default;
};

struct DeviceSubRequest {
  CompactString name, device_class_name, allocation_mode = {};
  std::int64_t count = 0;  // As of ExactDeviceRequest.
  Box<CapacityRequirements> capacity = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceSubRequest&, const DeviceSubRequest&) = default;
};

// One of the two is set.
struct DeviceRequest {
  CompactString name;
  Box<ExactDeviceRequest> exactly = {};
  std::vector<DeviceSubRequest> first_available = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

struct DeviceClaim {
  std::vector<DeviceRequest> requests;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceClaim&, const DeviceClaim&) = default;
};

struct ResourceClaimSpec {
  DeviceClaim devices;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourceClaimSpec&, const ResourceClaimSpec&) = default;
};

// One device that the scheduler gave to a claim.
struct DeviceAllocation {
  CompactString request;  // By name; of a sub-request "REQUEST/SUBREQUEST".
  CompactString driver = {}, pool = {}, device = {};
  CompactString share_id = {};  // Of a device that several claims share.
  bool admin_access = false;
  ResourceList consumed_capacity = {};  // Of a device that several claims share: the claim's part of it.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceAllocation&, const DeviceAllocation&) = default;
};

struct DeviceAllocations {
  std::vector<DeviceAllocation> results;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const DeviceAllocations&, const DeviceAllocations&) = default;
};

struct AllocationResult {
  DeviceAllocations devices;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const AllocationResult&, const AllocationResult&) = default;
};

struct ClaimConsumer {
  CompactString uid;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ClaimConsumer&, const ClaimConsumer&) = default;
};

struct ResourceClaimStatus {
  Box<AllocationResult> allocation;
  std::vector<ClaimConsumer> reserved_for;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourceClaimStatus&, const ResourceClaimStatus&) = default;
};

struct ResourceClaim : Object {
  ResourceClaimSpec spec;
  ResourceClaimStatus status;
  static const Kind& ResourceKind();
};

struct ResourceClaimTemplateSpec {
  ResourceClaimSpec spec;  // Of the claims that are made from it.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourceClaimTemplateSpec&, const ResourceClaimTemplateSpec&) = default;
};

struct ResourceClaimTemplate : Object {
  ResourceClaimTemplateSpec spec;
  static const Kind& ResourceKind();
};

}  // namespace kube
