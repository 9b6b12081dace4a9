// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/priorities.h"

#include <algorithm>

#include "clientlib/model/scheduling_v1.h"

namespace grus {

std::optional<int> PriorityOf(const kube::Informer& classes, std::string_view name) {
  if (!classes.HasList()) return 0;
  if (!name.empty()) {
    const auto found = classes.Get<kube::PriorityClass>({"", std::string(name)});
    return found ? std::optional<int>(found->value) : std::nullopt;
  }
  // Of several defaults the API server takes the lowest.
  std::optional<int> lowest;
  for (const auto& one : classes.List<kube::PriorityClass>()) {
    if (one->global_default) lowest = std::min(lowest.value_or(one->value), one->value);
  }
  return lowest.value_or(0);
}

}  // namespace grus
