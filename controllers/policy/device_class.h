// SPDX-License-Identifier: Apache-2.0
// Which devices are of a DeviceClass, and which of them can be counted. Pure functions.
//
// A class selects devices by CEL expressions. Only the form that drivers use in their classes is understood:
// `device.driver == "D"` and `device.attributes["D"].NAME == LITERAL`, joined by `&&`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/resource_claims.h"

namespace grus {

class DeviceFilter {
 public:
  // Nullopt: a selector is not understood.
  static std::optional<DeviceFilter> Read(const kube::DeviceClassSpec& spec);

  bool Selects(std::string_view driver, const kube::Device& device) const;
  bool IsOfWholeGpus() const;  // Of NVIDIA's driver, and of nothing but whole GPUs.

 private:
  friend std::string DriverOf(const kube::DeviceClassSpec& spec);
  struct Term {
    std::string domain, name;  // Empty name: the driver must equal `value`.
    kube::DeviceAttribute value;
  };
  bool ReadExpression(std::string_view expression);

  std::vector<Term> terms_;  // A selected device meets all.
};

// The driver of all devices of the class, also where the rest of its selectors is not understood; empty: not known.
std::string DriverOf(const kube::DeviceClassSpec& spec);

// NVIDIA's own driver, whose devices are whole GPUs, or else parts (MIG) and GPUs for virtual machines.
inline constexpr char kNvidiaGpuDriver[] = "gpu.nvidia.com";
bool IsWholeGpu(std::string_view driver, const kube::Device& device);

// Whether the device belongs to one node, and to one claim at a time: otherwise a count of devices says nothing.
bool IsCountable(const kube::ResourceSliceSpec& slice, const kube::Device& device);

// Whether no taint keeps away claims that do not tolerate it.
bool IsUsable(const kube::Device& device);

// Whether it asks for a number of devices of its class, whichever they are.
bool IsPlain(const kube::ExactDeviceRequest& request);

// The class of the request for which a claim got the device; empty: not known.
std::string_view ClassOf(const kube::DeviceAllocation& allocation, const kube::ResourceClaimSpec& claim);

}  // namespace grus
