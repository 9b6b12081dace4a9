// SPDX-License-Identifier: Apache-2.0
// What the container runtime is told of a claim: a file of the Container Device Interface (CDI), with a device for each
// request of the claim, which says the environment of the containers that use it. In an annotation it has the claim
// itself, so that it can be read again. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nodeagent/dra/claim_parts.h"
#include "nodeagent/sharing/held_parts.h"

namespace grus {

// "ai.centauruscloud.io/gpu=UID-REQUEST"
std::string CdiIdOf(const ClaimName& claim, std::string_view request);

// A container that uses the request gets what it would from the device plugin (part_plugins.h); of several GPUs the
// values are listed, in the same order.
std::string CdiSpecOf(const AllocatedClaim& claim);
// nullopt: no text that CdiSpecOf() writes.
std::optional<AllocatedClaim> ReadCdiSpec(std::string_view text);

// What the kubelet is answered.
std::vector<ReadyDevice> ReadyDevicesOf(const AllocatedClaim& claim, const std::string& pool);

// What of the claim the request has, by GPU.
std::vector<GpuPart> PartsOfRequest(const AllocatedClaim& claim, std::string_view request);

}  // namespace grus
