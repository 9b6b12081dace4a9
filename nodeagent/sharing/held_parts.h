// SPDX-License-Identifier: Apache-2.0
// What the kubelet says of held devices, as parts of GPUs. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "clientlib/model/meta.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/sharing/device_ids.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

struct HeldParts {
  kube::ObjectKey pod = {};
  std::string container = {};
  std::map<PartResource, std::vector<PartId>> ids = {};  // Of the resources of which it holds any; sorted.
  std::int64_t memory_mib = 0;                           // Said by its pod, of thousandths; 0: in proportion.
  bool overrides_gpu = false;                            // Its pod sets NVIDIA_VISIBLE_DEVICES itself.

  PartAmounts amounts() const;
  const std::string& first_gpu() const { return ids.begin()->second.front().gpu; }  // REQUIRES: it holds any.
  std::vector<std::string> gpus() const;  // UUIDs; all parts of a container should lie on one.
  friend bool operator==(const HeldParts&, const HeldParts&) = default;
};

// Containers that hold parts, of these resources.
std::vector<HeldParts> PartsOf(const std::vector<HeldDevices>& held, std::span<const PartResource> resources);

// Of GPUs whose devices have ids that begin with the UUID, as those of NVIDIA's device plugin and ours: who holds any
// under a resource that is not one of `resources`, by UUID: "team-a/bert-0, container main, by nvidia.com/gpu". Who has
// one of `resources` from another plugin, whose ids are others, holds all: gpushare's own gives any id for any GPU.
std::map<std::string, std::string> HeldOtherwise(const std::vector<HeldDevices>& held,
                                                 std::span<const PartResource> resources,
                                                 std::span<const std::string> uuids);

// "team-a/bert-0, container main"
std::string OwnerText(const kube::ObjectKey& pod, const std::string& container);

}  // namespace grus
