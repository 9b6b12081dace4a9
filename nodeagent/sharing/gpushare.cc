// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/gpushare.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "crds/types/gpushare_names.h"

namespace grus {
namespace {

std::optional<std::size_t> PositionOf(const std::string& uuid, std::span<const SharedGpu> gpus) {
  const auto found = std::ranges::find(gpus, uuid, &SharedGpu::uuid);
  if (found == gpus.end()) return std::nullopt;
  return static_cast<std::size_t>(found - gpus.begin());
}

}  // namespace

void FollowAssumptions(std::span<const SharedGpu> gpus, std::vector<PartAsk>& asks) {
  for (PartAsk& ask : asks) {
    if (!ask.planned_gpus.empty() || !ask.assumed) continue;
    const auto at = static_cast<std::size_t>(ask.assumed->gpu);
    if (at < gpus.size()) ask.planned_gpus = {gpus[at].uuid};
  }
  std::ranges::stable_sort(asks, {}, [](const PartAsk& ask) {
    return ask.assumed && ask.assumed->at > 0 ? ask.assumed->at : std::numeric_limits<std::int64_t>::max();
  });
}

std::map<std::string, std::string> GpushareEnvironment(std::int64_t gib, std::int64_t pod_gib, const std::string& gpu,
                                                       std::span<const SharedGpu> gpus) {
  std::map<std::string, std::string> environment = {{api::kGpusharePod, std::to_string(std::max(gib, pod_gib))},
                                                    {kGpushareContainer, std::to_string(gib)}};
  if (const std::optional<std::size_t> at = PositionOf(gpu, gpus)) {
    environment[api::kGpushareIndex] = std::to_string(*at);
    environment[api::kGpushareDevice] = std::to_string(gpus[*at].count(PartResource::kGpuMem));
  }
  return environment;
}

std::map<std::string, std::string> GpushareAnnotations(std::span<const HeldParts> parts,
                                                       std::span<const SharedGpu> gpus) {
  std::int64_t pod_gib = 0, most = 0;
  std::string gpu;  // Of the container that has most: the contract knows but one.
  for (const HeldParts& part : parts) {
    const auto held = part.ids.find(PartResource::kGpuMem);
    if (held == part.ids.end()) continue;
    const auto gib = static_cast<std::int64_t>(held->second.size());
    pod_gib += gib;
    if (gib > most) gpu = held->second.front().gpu;
    most = std::max(most, gib);
  }
  const std::optional<std::size_t> at = PositionOf(gpu, gpus);
  if (!at) return {};
  return {{api::kGpushareIndex, std::to_string(*at)},
          {api::kGpusharePod, std::to_string(pod_gib)},
          {api::kGpushareDevice, std::to_string(gpus[*at].count(PartResource::kGpuMem))},
          {api::kGpushareAssigned, "true"}};
}

std::vector<PluginDevice> GpuCountPlugin::Devices() const {
  // Not by UUID, as ids of GPUs: who holds one holds no GPU. Sick ones count.
  std::vector<PluginDevice> devices;
  for (std::size_t i = 0, count = gpus_().size(); i < count; ++i) devices.push_back({"number-" + std::to_string(i)});
  return devices;
}

kube::Result<std::vector<std::string>> GpuCountPlugin::Prefer(const std::vector<std::string>& available,
                                                              const std::vector<std::string>& needed, int count) {
  std::vector<std::string> ids = needed;
  for (const std::string& id : available) {
    if (std::ssize(ids) < count && std::ranges::count(ids, id) == 0) ids.push_back(id);
  }
  return ids;
}

kube::Result<ContainerSetup> GpuCountPlugin::Allocate(const std::vector<std::string>&) { return ContainerSetup(); }

kube::Status GpuCountPlugin::PreStart(const std::vector<std::string>& ids) {
  const kube::Result<std::vector<HeldDevices>> held = holders_.List();
  if (!held || ids.empty()) return {};  // Its memory, if it asks for any, is checked by that plugin.
  for (const HeldDevices& one : *held) {
    const auto counted = one.ids.find(api::kGpushareCountResource);
    if (counted == one.ids.end() || std::ranges::count(counted->second, ids.front()) == 0) continue;
    if (one.ids.contains(std::string(NameOf(PartResource::kGpuMem)))) continue;
    return kube::Error(kube::ErrorCode::kInvalidArgument,
                       OwnerText({one.ns, one.pod}, one.container) + ": it asks for " + api::kGpushareCountResource +
                           ", which only says how many GPUs a node has, without " +
                           std::string(NameOf(PartResource::kGpuMem)) +
                           "; add limits of that (GiB) to the container, and create the pod again");
  }
  return {};
}

}  // namespace grus
