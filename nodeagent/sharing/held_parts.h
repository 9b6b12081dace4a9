// SPDX-License-Identifier: Apache-2.0
// What the kubelet says of held devices, as parts of GPUs. Pure.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "clientlib/model/meta.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/sharing/device_ids.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

// Of a claimed GPU (DRA).
struct ClaimedPart {
  std::string gpu = {};  // UUID
  std::int64_t milli = 0, memory_mib = 0;
  friend bool operator==(const ClaimedPart&, const ClaimedPart&) = default;
};

struct HeldParts {
  kube::ObjectKey pod = {};
  std::string container = {};
  std::map<PartResource, std::vector<PartId>> ids = {};  // Of the resources of which it holds any; sorted.
  std::int64_t memory_mib = 0;                           // Said by its pod, of thousandths; 0: in proportion.
  bool overrides_gpu = false;                            // Its pod sets NVIDIA_VISIBLE_DEVICES itself.
  bool is_enforced = false;                              // It is held to its part (PartEnforcer).

  std::vector<ClaimedPart> claimed = {};  // One for each GPU.

  PartAmounts amounts() const;  // Without what is claimed.
  // REQUIRES: it holds any but claimed ones.
  const std::string& first_gpu() const { return ids.begin()->second.front().gpu; }
  std::vector<std::string> gpus() const;  // UUIDs; all parts of a container should lie on one, but for claimed ones.
  friend bool operator==(const HeldParts&, const HeldParts&) = default;
};

// What the container runtime adds to a container by this CDI id; empty: it is none of ours.
using ClaimedParts = std::function<std::vector<ClaimedPart>(const std::string& cdi_id)>;

// Containers that hold parts, of these resources or claimed. `claimed` may be null: then nothing is.
std::vector<HeldParts> PartsOf(const std::vector<HeldDevices>& held, std::span<const PartResource> resources,
                               const ClaimedParts& claimed = {});

// Of GPUs whose devices have ids that begin with the UUID, as those of NVIDIA's device plugin and ours: who holds any
// under a resource that is not one of `resources`, by UUID: "team-a/bert-0, container main, by nvidia.com/gpu". Who has
// a part from another plugin, whose ids are others, holds all: gpushare's own gives any id for any GPU.
std::map<std::string, std::string> HeldOtherwise(const std::vector<HeldDevices>& held,
                                                 std::span<const PartResource> resources,
                                                 std::span<const std::string> uuids);

// "team-a/bert-0, container main"
std::string OwnerText(const kube::ObjectKey& pod, const std::string& container);

}  // namespace grus
