// SPDX-License-Identifier: Apache-2.0
// What the scheduler is told of this node's GPUs: a ResourceSlice, of each GPU a device of which several claims may
// have parts. A part is so many bytes of its memory, in MiB, and so many thousandths; a claim that does not say how
// much has all. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"
#include "nodeagent/dra/claim_parts.h"

namespace grus {

// As much of it as is written.
struct NodeSlice : kube::Object {
  kube::Json spec;
  static const kube::Kind& ResourceKind();
};

inline constexpr std::size_t kMostDevices = 128;  // Of a slice.

std::string SliceNameOf(const std::string& node);

// The devices: of GPUs that are well, and that nobody holds by another way (`held`, by UUID); at most kMostDevices.
kube::Json DevicesOf(std::span<const SharedGpu> gpus, const std::map<std::string, std::string>& held);

// The slice that is to be made. `uid`: of the node, with which it goes.
kube::Json SliceOf(const std::string& node, const std::string& uid, kube::Json devices);

// The merge patch that makes `live` what it should be; null: it is.
kube::Json PatchOf(const NodeSlice& live, const std::string& node, const kube::Json& devices);

}  // namespace grus
