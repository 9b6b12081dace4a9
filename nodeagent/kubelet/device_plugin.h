// SPDX-License-Identifier: Apache-2.0
// What the kubelet asks of a device plugin (its API v1beta1), for one extended resource.
//
// The kubelet names devices, never pods. Of a container that asks for several resources, it asks for one after the
// other, in random order, and for those of no other container in between. All is called on threads of the server, also
// side by side: implementations are thread-safe. An error of Allocate() makes the pod Failed for good; one of
// PreStart() only delays the container, which the kubelet starts again later. Source: k8s.io/kubelet,
// pkg/apis/deviceplugin/v1beta1/api.proto.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

struct PluginDevice {
  std::string id = {};  // At most 63 characters.
  bool is_healthy = true;
  friend bool operator==(const PluginDevice&, const PluginDevice&) = default;
};

struct PluginMount {
  std::string host_path = {}, container_path = {};
  bool is_read_only = true;
  friend bool operator==(const PluginMount&, const PluginMount&) = default;
};

// What a container gets with its devices. Of several resources of a container the kubelet merges the answers, and of
// two values of one key keeps either.
struct ContainerSetup {
  std::map<std::string, std::string> environment = {};
  std::vector<PluginMount> mounts = {};
  std::vector<std::string> device_paths = {};  // "/dev/nvidia0": the same path in the container, to read and write.
};

class DevicePlugin {
 public:
  virtual ~DevicePlugin() = default;

  virtual std::string resource() const = 0;  // "ai.centauruscloud.io/gpu-milli"
  virtual std::vector<PluginDevice> Devices() const = 0;
  // Which `count` of `available` it should be, with all of `needed` among them. The kubelet may choose others.
  virtual kube::Result<std::vector<std::string>> Prefer(const std::vector<std::string>& available,
                                                        const std::vector<std::string>& needed, int count) = 0;
  virtual kube::Result<ContainerSetup> Allocate(const std::vector<std::string>& ids) = 0;
  // Before each start of the container, also the later ones. The kubelet has recorded by now who holds the devices.
  virtual kube::Status PreStart(const std::vector<std::string>& ids) = 0;
};

}  // namespace grus
