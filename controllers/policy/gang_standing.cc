// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_standing.h"

#include <algorithm>
#include <string_view>

#include "controllers/policy/reservation.h"

namespace grus {
namespace {

std::int64_t ToInt64(kube::Wide value) {
  return static_cast<std::int64_t>(std::clamp<kube::Wide>(value, 0, INT64_MAX));
}

}  // namespace

const IndexFacts& FactsCache::Of(const FitIndex& index) {
  const auto [it, is_new] = facts_.try_emplace(&index);
  IndexFacts& facts = it->second;
  if (!is_new) return facts;
  for (const auto& [owner, gpus] : index.LargestUses(3)) facts.uses.push_back({ledger_.OwnerName(owner), gpus});
  facts.copies = index.copies();
  for (const FitIndex::Amount& amount : index.amounts()) facts.free.push_back(amount.free);
  for (const auto& [id, reserved] : ledger_.reserved()) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (!node || !index.IsEligible(id)) continue;
    facts.copies += index.CopiesOn(id, node->used) - index.CopiesOn(id);
    const Resources both = node->Taken();
    for (std::size_t i = 0; i < facts.free.size(); ++i) {
      facts.free[i] += index.FreeOn(id, i, node->used) - index.FreeOn(id, i, both);
    }
  }
  return facts;
}

int CapacityFor(const ClusterLedger& ledger, const GangToPlace& gang, bool is_thorough) {
  int capacity = static_cast<int>(gang.members->size());
  for (const GangPart& part : *gang.parts) {
    std::int64_t copies = part.index->capacity();
    // The index knows nothing of constraints: read them from a member.
    if (MostOnOneNode(*(*gang.members)[static_cast<std::size_t>(part.members.front())]) == 1) {
      copies = part.index->eligible_nodes();
    }
    if (copies < part.CountBelow(capacity)) capacity = part.members[static_cast<std::size_t>(copies)];
  }
  if (!is_thorough || gang.parts->size() < 2 || capacity < std::max(gang.needed, 1)) return capacity;
  // On a cluster much larger than the gang the other kinds cannot be in the way: each pod blocks one node at most.
  const auto members = static_cast<std::int64_t>(gang.members->size());
  const auto has_ample_room = [members](const GangPart& part) {
    const auto own = static_cast<std::int64_t>(part.members.size());
    return part.index->capacity() - (members - own) * part.index->largest_capacity() >= own;
  };
  if (std::ranges::all_of(*gang.parts, has_ample_room)) return capacity;
  GangToPlace on_empty = gang;
  on_empty.on_empty_cluster = true;
  on_empty.is_constrained = false;
  on_empty.avoid.clear();
  return std::min(capacity, PlaceGang(ledger, on_empty).fitting);
}

bool Describe(const ClusterLedger& ledger, const GangToPlace& gang, std::optional<int> searched, FactsCache& facts,
              GangStanding& standing) {
  const int needed = std::max(gang.needed, 1);
  int fitting = RoomForMembers(ledger, gang, needed);
  if (searched) fitting = std::min(fitting, *searched);
  bool is_new = Update(standing.fitting, fitting);

  // Find the kind of member, and the resource of it, that lacks the largest share.
  const GangPart* worst = &gang.parts->front();
  const FitIndex::Amount* lacking = nullptr;
  kube::Wide free = 0;
  double most_missing = 0;
  for (const GangPart& part : *gang.parts) {
    const int count = part.CountBelow(needed);
    const IndexFacts& of_part = facts.Of(*part.index);
    // Kinds that fit alone but not together compete for the same nodes.
    if (of_part.copies >= count && (!searched || gang.is_constrained)) continue;
    for (std::size_t i = 0; i < of_part.free.size(); ++i) {
      const FitIndex::Amount& amount = part.index->amounts()[i];
      const double want = static_cast<double>(amount.each) * count;
      const double missing = want / (static_cast<double>(of_part.free[i]) + 1e-9 * want);
      if (missing <= most_missing) continue;
      most_missing = missing;
      lacking = &amount;
      free = of_part.free[i];
      worst = &part;
    }
  }
  is_new |= Update(standing.lacking, lacking ? std::string_view(lacking->name) : std::string_view());
  is_new |= Update(standing.lacking_free, lacking ? ToInt64(free) : 0);
  is_new |= Update(standing.lacking_total, lacking ? ToInt64(lacking->total) : 0);
  is_new |= Update(standing.eligible_nodes, worst->index->eligible_nodes());
  is_new |= Update(standing.uses, facts.Of(*worst->index).uses);
  return is_new;
}

}  // namespace grus
