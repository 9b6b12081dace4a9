// SPDX-License-Identifier: Apache-2.0
// Pods, what they hold and their processes on GPUs, made up.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nodeagent/gpu_probe.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/node_pods.h"
#include "nodeagent/sharing/device_ids.h"

namespace grus::testing {

inline std::shared_ptr<const NodePod> NamedPod(const std::string& name,
                                               const std::map<std::string, std::string>& annotations = {},
                                               const std::string& phase = "Running") {
  auto pod = std::make_shared<NodePod>();
  pod->metadata.ns = "a";
  pod->metadata.name = name;
  pod->metadata.uid = "uid-" + name;
  for (const auto& [key, text] : annotations) pod->metadata.annotations[key] = text;
  pod->status.phase = phase;
  return pod;
}

inline HeldDevices PartsHeld(const std::string& pod, const std::string& container, const std::string& gpu, int milli) {
  HeldDevices held{"a", pod, container, {}};
  for (int i = 0; i < milli; ++i) held.ids["ai.centauruscloud.io/gpu-milli"].push_back(ToText({gpu, i}));
  return held;
}

// One more process of this container, of a pod that it is known to be in.
inline void AddProcess(NodeSample& look, std::size_t gpu, const PodName& owner, std::optional<std::uint64_t> bytes,
                       std::optional<std::uint32_t> sm_percent = {}) {
  auto& processes = look.gpus[gpu].processes;
  processes.push_back(
      {{.pid = 100 + static_cast<int>(processes.size()), .memory_bytes = bytes, .sm_percent = sm_percent},
       std::make_shared<const Owner>(Owner{{.pod_uid = "uid-" + owner.pod, .container_id = "1"}, owner})});
}

}  // namespace grus::testing
