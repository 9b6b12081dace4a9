// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/priorities.h"

#include <memory>

#include "clientlib/model/scheduling_v1.h"

namespace grus {
namespace {

// Of several defaults the API server takes the lowest.
std::shared_ptr<const kube::PriorityClass> DefaultOf(const kube::Informer& classes) {
  std::shared_ptr<const kube::PriorityClass> lowest;
  for (const auto& one : classes.List<kube::PriorityClass>()) {
    if (one->global_default && (!lowest || one->value < lowest->value)) lowest = one;
  }
  return lowest;
}

}  // namespace

std::optional<int> PriorityOf(const kube::Informer& classes, std::string_view name) {
  if (!classes.HasList()) return 0;
  const auto found = name.empty() ? DefaultOf(classes) : classes.Get<kube::PriorityClass>({"", std::string(name)});
  if (found) return found->value;
  return name.empty() ? std::optional(0) : std::nullopt;
}

std::string DefaultClass(const kube::Informer& classes) {
  const auto found = DefaultOf(classes);
  return found ? found->metadata.name : std::string();
}

}  // namespace grus
