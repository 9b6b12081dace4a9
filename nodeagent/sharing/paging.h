// SPDX-License-Identifier: Apache-2.0
// Over-subscribed memory: what a container may have beside its part of a GPU, in the node's memory while the GPU has no
// room. Its part is counted as ever, so that nobody else has less. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/string_map.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

// A NodePool, as much of it as this is about: an agent need not know what else a newer one says.
struct PagingPoolSpec {
  kube::StringMap node_selector;
  std::int32_t paged_memory_percent = 0;
  static std::span<const kube::FieldInfo> Fields();
};
struct PagingPool : kube::Object {
  PagingPoolSpec spec;
  static const kube::Kind& ResourceKind();
};

// What a node's NodePool allows.
struct PagingAllowance {
  std::string pool = {};     // Empty: no NodePool selects the node.
  std::int64_t percent = 0;  // Of the memory of a part.
  std::string problem = {};  // Why it is not known. Empty: it is.
  friend bool operator==(const PagingAllowance&, const PagingAllowance&) = default;
};

PagingAllowance AllowanceOf(const kube::StringMap& node_labels,
                            const std::vector<std::shared_ptr<const PagingPool>>& pools);

// What `starting` asks for (HeldParts::paged_mib) is allowed, and something holds it to that. An error names the
// container and what to do; kUnavailable: it can start later.
kube::Status CheckPaging(const HeldParts& starting, const PagingAllowance& allowance, std::span<const SharedGpu> gpus);

}  // namespace grus
