// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_enforcers.h"

#include <algorithm>

namespace grus {

bool PartEnforcers::MayGive(const std::string& gpu) const {
  return std::ranges::all_of(all_, [&](const PartEnforcer* one) { return one->MayGive(gpu); });
}

kube::Status PartEnforcers::Give(const PartToGive& part, ContainerSetup& setup) {
  for (PartEnforcer* const one : all_) {
    if (kube::Status given = one->Give(part, setup); !given) return given;
  }
  return {};
}

kube::Status PartEnforcers::MayStart(PartResource resource, const std::vector<PartId>& ids, const HeldParts* holder) {
  for (PartEnforcer* const one : all_) {
    if (kube::Status may_start = one->MayStart(resource, ids, holder); !may_start) return may_start;
  }
  return {};
}

Enforcement PartEnforcers::WayOf(const HeldParts& part) const {
  for (const PartEnforcer* const one : all_) {
    if (const Enforcement way = one->WayOf(part); way != Enforcement::kNone) return way;
  }
  return Enforcement::kNone;
}

}  // namespace grus
