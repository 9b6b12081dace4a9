// SPDX-License-Identifier: Apache-2.0
// What the kubelet says of held devices, as parts of GPUs. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clientlib/model/meta.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/sharing/device_ids.h"
#include "nodeagent/sharing/enforcement.h"
#include "nodeagent/sharing/part_resources.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

// What a container has of one GPU.
struct GpuPart {
  std::string gpu = {};  // UUID
  std::int64_t milli = 0, memory_mib = 0;
  friend bool operator==(const GpuPart&, const GpuPart&) = default;
};

struct HeldParts {
  kube::ObjectKey pod = {};
  std::string container = {};
  std::map<PartResource, std::vector<PartId>> ids = {};  // Of the resources of which it holds any; sorted.
  std::int64_t memory_mib = 0;                           // Said by its pod, of thousandths; 0: in proportion.
  std::optional<std::int64_t> paged_mib = {};            // Beside it, see paging.h; none: not known.
  bool overrides_gpu = false;                            // Its pod sets NVIDIA_VISIBLE_DEVICES itself.
  Enforcement enforcement = Enforcement::kNone;          // In which way it is held to its part (PartEnforcer).

  std::vector<GpuPart> claimed = {};  // One for each GPU.

  PartAmounts amounts() const;                           // Without what is claimed.
  PartAmounts amounts_on(const std::string& gpu) const;  // Of these, what lies there.
  // UUIDs. All parts of a container should lie on one, but for whole GPUs, and claimed ones.
  std::vector<std::string> gpus() const;
  bool has_whole_gpus() const;  // Two or more, all ids of each.
  friend bool operator==(const HeldParts&, const HeldParts&) = default;
};

// Of each of its GPUs, held or claimed: by the index of the GPU; then those that are not among `gpus`.
std::vector<GpuPart> PartsByGpu(const HeldParts& held, std::span<const SharedGpu> gpus);

// What the pod says of memory, for its thousandths. It says nothing for whole GPUs, nor if it makes no sense.
void SetSaidMemory(std::int64_t said_mib, HeldParts& held);
// Likewise of memory beside a part, but for what makes no sense, of which CheckPaging() tells.
void SetSaidPaging(std::int64_t said_mib, HeldParts& held);

// What the container runtime adds to a container by this CDI id; empty: it is none of ours.
using ClaimedParts = std::function<std::vector<GpuPart>(const std::string& cdi_id)>;

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
