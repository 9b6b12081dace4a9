// SPDX-License-Identifier: Apache-2.0
// What users call the pods and containers of this node.
#pragma once

#include <optional>
#include <string>

#include "nodeagent/cgroup_path.h"

namespace grus {

struct PodName {
  std::string ns = {}, pod = {};
  std::string container = {};  // Empty: not known yet, or the process is in none.
  friend bool operator==(const PodName&, const PodName&) = default;
};

class PodNames {
 public:
  virtual ~PodNames() = default;
  // nullopt: no such pod is known, so far. Thread-safe.
  virtual std::optional<PodName> Find(const PodOfProcess& pod) const = 0;
};

}  // namespace grus
