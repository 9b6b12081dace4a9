// SPDX-License-Identifier: Apache-2.0
// Asks the kubelet which containers hold which devices (PodResources v1). Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "nodeagent/kubelet/held_devices.h"

namespace grus {

inline constexpr char kPodResourcesSocket[] = "/var/lib/kubelet/pod-resources/kubelet.sock";

class PodResources final : public DeviceHolders {
 public:
  explicit PodResources(std::string socket = kPodResourcesSocket, kube::Duration limit = std::chrono::seconds(3));
  ~PodResources() override;

  // By namespace, pod and container. Blocks for at most `limit`. The kubelet answers all callers together a hundred
  // times a second; kTooManyRequests: more often.
  kube::Result<std::vector<HeldDevices>> List() override;

 private:
  class Connection;
  const kube::Duration limit_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace grus
