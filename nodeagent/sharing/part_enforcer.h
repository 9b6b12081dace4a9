// SPDX-License-Identifier: Apache-2.0
// What holds containers to their parts of GPUs, beside the count of who has which. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/kubelet/device_plugin.h"
#include "nodeagent/sharing/enforcement.h"
#include "nodeagent/sharing/held_parts.h"

namespace grus {

// What a container is about to get of one resource.
struct PartToGive {
  PartResource resource = PartResource::kMilli;
  std::vector<PartId> ids = {};  // Of one GPU, at least one; or all of several. Sorted.
  std::int64_t memory_mib = 0;   // That these bring, of all GPUs together; 0 for compute.
};

class PartEnforcer {
 public:
  virtual ~PartEnforcer() = default;
  // False: containers would not be held to parts of this GPU now, and shall be.
  virtual bool MayGive(const std::string& gpu) const = 0;
  // Adds what holds the container to its part, if anything shall, and remembers of the ids whether it does.
  virtual kube::Status Give(const PartToGive& part, ContainerSetup& setup) = 0;
  // Before each start, also the later ones, for each resource. `holder`: who has the first of these ids, with all that
  // it holds and the memory that its pod says: the one that starts, or, of an init container, one of its pod to which
  // its ids were handed on; null: it is not known. Error: the container would not be held to the part that it was given
  // so; it can start later.
  virtual kube::Status MayStart(PartResource resource, const std::vector<PartId>& ids, const HeldParts* holder) = 0;
  // In which way it is held to its part: when its ids were given last, what does so was given with all of them.
  virtual Enforcement WayOf(const HeldParts& part) const = 0;
};

}  // namespace grus
