// SPDX-License-Identifier: Apache-2.0
// Which devices are of a DeviceClass, and which of them can be counted. Pure functions.
//
// A class selects by CEL. Read is what the classes of drivers say: `device.driver == "D"` and
// `device.attributes["D"].NAME == LITERAL`, joined by `&&`; of anything else it is not known what it selects.
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

 private:
  struct Term {
    std::string domain, name;  // Without a name: of the driver itself.
    kube::DeviceAttribute value;
  };
  bool ReadExpression(std::string_view expression);

  std::vector<Term> terms_;  // All of them hold.
};

// Whether it is one node's, and one claim's at a time: else a count of devices says nothing.
bool IsCountable(const kube::ResourceSliceSpec& slice, const kube::Device& device);

// Not tainted against claims that do not tolerate it.
bool IsUsable(const kube::Device& device);

// Whether it asks for just any so many devices of its class.
bool IsPlain(const kube::ExactDeviceRequest& request);

// The class by which a claim was given a device; empty: not known.
std::string_view ClassOf(const kube::DeviceAllocation& allocation, const kube::ResourceClaimSpec& claim);

}  // namespace grus
