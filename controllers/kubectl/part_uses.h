// SPDX-License-Identifier: Apache-2.0
// What grus-node-agent's metrics say of the parts of one node's GPUs. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/model/meta.h"

namespace grus {

struct PartUser {
  kube::ObjectKey pod = {};
  std::string container = {}, gpu = {};  // UUID
  friend auto operator<=>(const PartUser&, const PartUser&) = default;
};

struct PartUse {
  std::optional<double> memory_bytes = {}, sm_ratio = {};
  bool is_partless = false;  // It has no part of this GPU.
  friend bool operator==(const PartUse&, const PartUse&) = default;
};

using PartUses = std::map<PartUser, PartUse>;

// Of a text in Prometheus' format; at most 10,000. Lines that make no sense are left out.
PartUses ParsePartUses(std::string_view text);

}  // namespace grus
