// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_needs.h"

#include <algorithm>

namespace grus {
namespace {

using kube::Quantity;

struct Need {
  Quantity running;   // Of the containers.
  Quantity sidecars;  // Of those so far.
  Quantity peak;      // Of an init container beside the sidecars before it.
};

}  // namespace

std::map<std::string_view, Quantity> PodNeeds(const kube::PodSpec& spec,
                                              kube::ResourceList kube::ResourceRequirements::*part) {
  std::map<std::string_view, Need> needs;
  for (const kube::Container& container : spec.containers) {
    for (const auto& [name, amount] : container.resources.*part) {
      Need& need = needs[name];
      need.running = need.running + amount;
    }
  }
  for (const kube::Container& container : spec.init_containers) {
    const bool stays = container.restart_policy == "Always";
    for (const auto& [name, amount] : container.resources.*part) {
      Need& need = needs[name];
      const Quantity beside = need.sidecars + amount;
      need.peak = std::max(need.peak, beside);
      if (stays) need.sidecars = beside;
    }
  }
  std::map<std::string_view, Quantity> sums;
  for (const auto& [name, need] : needs) {
    sums.emplace_hint(sums.end(), name, std::max(need.running + need.sidecars, need.peak));
  }
  return sums;
}

}  // namespace grus
