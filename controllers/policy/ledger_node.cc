// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/ledger_node.h"

#include <algorithm>

#include "controllers/policy/gpu_parts.h"

namespace grus {

Resources LedgerNode::Taken() const {
  Resources taken = used;
  taken += reserved;
  return taken;
}

const Resources& LedgerNode::TakenBy(Resources& copy) const {
  if (reserved.pods == 0) return used;  // Whatever is reserved is for pods.
  return copy = Taken();
}

Resources LedgerNode::ReservedBut(const ReservedRoom* may_use) const {
  Resources others = reserved;
  if (may_use == nullptr) return others;
  if (const auto own = may_use->find(id); own != may_use->end()) others -= own->second;
  return others;
}

bool LedgerNode::CanHold(const PodShape& shape, const Resources& taken) const {
  return is_known && Accepts(state, shape) && CopiesThatFit(state.allocatable, taken, shape.request, 1) > 0;
}

std::string LedgerNode::GpuFor(const PodShape& shape, const Resources& taken, std::string_view preferred) const {
  return ChooseGpu(state.allocatable, taken, shape.request, PlacementOf(shape), preferred);
}

const NodeUse* LedgerNode::FindUse(OwnerId owner) const {
  const auto use = std::ranges::find(by_owner, owner, &NodeUse::owner);
  return use == by_owner.end() ? nullptr : &*use;
}

}  // namespace grus
