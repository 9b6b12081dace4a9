// SPDX-License-Identifier: Apache-2.0
// The device plugin's half of gpushare's contract: what a container and its pod are told, and how many GPUs there are.
// Source: AliyunContainerService/gpushare-device-plugin, pkg/gpu/nvidia.
//
// GPUs are counted as the extender and kubectl-inspect-gpushare do: from 0, of those that the node offers.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"
#include "nodeagent/kubelet/device_plugin.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/sharing/gpushare_assumption.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/pending_parts.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

// In the environment only, beside what the pod is told, too (crds/types/gpushare_names.h): GiB of the container.
inline constexpr char kGpushareContainer[] = "ALIYUN_COM_GPU_MEM_CONTAINER";

// Where nothing else is planned, the GPU that the extender has assumed; those that it assumed first come first.
void FollowAssumptions(std::span<const SharedGpu> gpus, std::vector<PartAsk>& asks);

// Of a container that gets `gib` of this GPU; `pod_gib`: of all containers of its pod, 0 if not known.
std::map<std::string, std::string> GpushareEnvironment(std::int64_t gib, std::int64_t pod_gib, const std::string& gpu,
                                                       std::span<const SharedGpu> gpus);

// By what the pod's containers hold; without keys if that is nothing of this kind, or its GPU is not there any more.
std::map<std::string, std::string> GpushareAnnotations(std::span<const HeldParts> parts,
                                                       std::span<const SharedGpu> gpus);

// Offers aliyun.com/gpu-count, by which the extender and the inspecting tool know how many GPUs a node has. It brings
// no GPU; a container that asks for nothing else does not start, as its image may let it see all of them.
class GpuCountPlugin final : public DevicePlugin {
 public:
  // Both must outlive it; thread-safe.
  GpuCountPlugin(DeviceHolders& holders, std::function<std::vector<SharedGpu>()> gpus)
      : holders_(holders), gpus_(std::move(gpus)) {}
  std::string resource() const override { return api::kGpushareCountResource; }
  std::vector<PluginDevice> Devices() const override;
  kube::Result<std::vector<std::string>> Prefer(const std::vector<std::string>& available,
                                                const std::vector<std::string>& needed, int count) override;
  kube::Result<ContainerSetup> Allocate(const std::vector<std::string>& ids) override;
  kube::Status PreStart(const std::vector<std::string>& ids) override;

 private:
  DeviceHolders& holders_;
  const std::function<std::vector<SharedGpu>()> gpus_;
};

}  // namespace grus
