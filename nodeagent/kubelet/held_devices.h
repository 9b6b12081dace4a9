// SPDX-License-Identifier: Apache-2.0
// Which containers of this node hold which devices, by the kubelet itself (its API PodResources v1).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

struct HeldDevices {
  std::string ns = {}, pod = {}, container = {};
  std::map<std::string, std::vector<std::string>> ids = {};  // By resource; sorted.
  std::vector<std::string> cdi_ids = {};  // Of claimed devices (DRA), of all drivers: "VENDOR/CLASS=NAME"; sorted.
  friend bool operator==(const HeldDevices&, const HeldDevices&) = default;
};

class DeviceHolders {
 public:
  virtual ~DeviceHolders() = default;
  // All containers of pods that have not ended, also of the one that the kubelet admits now; those that hold nothing
  // have no ids. Plain init containers are not among them. kUnavailable: the kubelet does not answer now. Thread-safe.
  virtual kube::Result<std::vector<HeldDevices>> List() = 0;
};

}  // namespace grus
