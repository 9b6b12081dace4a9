// SPDX-License-Identifier: Apache-2.0
// What the kubelet asks of a driver for claimed devices (Dynamic Resource Allocation, its API v1).
//
// The scheduler has allocated a claim; the driver makes its devices ready before the first container of its pods
// starts, and takes that back after the last has ended. Both may be asked for again, also after either side has started
// anew. An error delays the pod: the kubelet asks again. All is called on threads of the server, also side by side:
// implementations are thread-safe. Source: k8s.io/kubelet, pkg/apis/dra/v1/api.proto.
#pragma once

#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

struct ClaimName {
  std::string ns = {}, name = {}, uid = {};
  friend bool operator==(const ClaimName&, const ClaimName&) = default;
};

// What containers get that use this request of the claim.
struct ReadyDevice {
  std::string request = {}, pool = {}, device = {};
  std::string share_id = {};              // Empty: the device is not shared.
  std::vector<std::string> cdi_ids = {};  // "VENDOR/CLASS=NAME": what the container runtime adds to the container.
  friend bool operator==(const ReadyDevice&, const ReadyDevice&) = default;
};

class ClaimDriver {
 public:
  virtual ~ClaimDriver() = default;

  virtual std::string name() const = 0;  // "gpu.ai.centauruscloud.io"
  virtual kube::Result<std::vector<ReadyDevice>> Prepare(const ClaimName& claim) = 0;
  // Success if there is nothing to take back.
  virtual kube::Status Unprepare(const ClaimName& claim) = 0;
};

}  // namespace grus
