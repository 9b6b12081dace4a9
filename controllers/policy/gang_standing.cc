// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_standing.h"

#include <algorithm>
#include <string_view>

#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/reservation.h"

namespace grus {
namespace {

std::int64_t ToInt64(kube::Wide value) {
  return static_cast<std::int64_t>(std::clamp<kube::Wide>(value, 0, INT64_MAX));
}

// The index knows nothing of constraints: read them from a member.
int MostOfPartOnOneNode(const GangToPlace& gang, const GangPart& part) {
  return MostOnOneNode(*(*gang.members)[static_cast<std::size_t>(part.members.front())]);
}

// How many copies of `b` an empty cluster can hold beside `count` of `a`; negative: not even these.
std::int64_t MostBeside(const ClusterLedger& ledger, const GangToPlace& gang, const GangPart& a, int count,
                        const GangPart& b) {
  const int most_a = MostOfPartOnOneNode(gang, a), most_b = MostOfPartOnOneNode(gang, b);
  std::vector<std::int64_t> most(static_cast<std::size_t>(count) + 1, -1);  // Of `b`, by copies of `a`, so far.
  most.front() = 0;
  std::vector<std::int64_t> beside;  // On one node, likewise.
  for (NodeId id = 0; id < ledger.node_limit(); ++id) {
    if (!a.index->IsEligible(id) && !b.index->IsEligible(id)) continue;
    beside.clear();
    Resources taken;
    const Resources& offers = ledger.NodeAt(id)->state.allocatable;
    for (int i = 0; i <= std::min({count, most_a, a.index->CapacityOf(id)}); ++i) {
      beside.push_back(std::min(most_b, b.index->CopiesOn(id, taken)));
      const Resources& request = a.index->shape().request;
      // The least room is lost so, whatever they wish for.
      taken += OnGpu(request, ChooseGpu(offers, taken, request, PoolPlacement::kBinPack));
    }
    for (std::size_t all = most.size(); all-- > 0;) {
      std::int64_t best = -1;
      for (std::size_t here = 0; here < beside.size() && here <= all; ++here) {
        if (most[all - here] >= 0) best = std::max(best, most[all - here] + beside[here]);
      }
      most[all] = best;
    }
  }
  return most.back();
}

// Whether each two kinds of the first `members` could be on an empty cluster together.
bool MayFitTogether(const ClusterLedger& ledger, const GangToPlace& gang, int members) {
  constexpr std::int64_t kMostSteps = 1'000'000;  // A few milliseconds. What would take longer stays uncertain.
  const std::vector<GangPart>& parts = *gang.parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t k = i + 1; k < parts.size(); ++k) {
      const int count_i = parts[i].CountBelow(members), count_k = parts[k].CountBelow(members);
      // How kinds that say their memory share GPUs best is not known.
      const auto says_memory = [](const GangPart& p) { return p.index->shape().request.Extended(kSaidMemory) > 0; };
      if (says_memory(parts[i]) || says_memory(parts[k])) continue;
      const bool is_i_fewer = count_i < count_k;
      const GangPart &few = parts[is_i_fewer ? i : k], &many = parts[is_i_fewer ? k : i];
      const std::int64_t count = std::min(count_i, count_k),
                         on_node = std::min<std::int64_t>(count, few.index->largest_capacity());
      if (count == 0 || count * (on_node + 1) > kMostSteps / std::max<std::int64_t>(1, ledger.node_limit())) continue;
      if (MostBeside(ledger, gang, few, static_cast<int>(count), many) < std::max(count_i, count_k)) return false;
    }
  }
  return true;
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

GangCapacity CapacityFor(const ClusterLedger& ledger, const GangToPlace& gang, bool is_thorough) {
  const int needed = std::max(gang.needed, 1);
  int capacity = static_cast<int>(gang.members->size());
  for (const GangPart& part : *gang.parts) {
    std::int64_t copies = part.index->capacity();
    if (MostOfPartOnOneNode(gang, part) == 1) copies = part.index->eligible_nodes();
    if (copies < part.CountBelow(capacity)) capacity = part.members[static_cast<std::size_t>(copies)];
  }
  if (!is_thorough || gang.parts->size() < 2 || capacity < needed) return {capacity, false};
  // On a cluster much larger than the gang the other kinds cannot be in the way: each pod blocks one node at most.
  const auto members = static_cast<std::int64_t>(gang.members->size());
  const auto has_ample_room = [members](const GangPart& part) {
    const auto own = static_cast<std::int64_t>(part.members.size());
    return part.index->capacity() - (members - own) * part.index->largest_capacity() >= own;
  };
  if (std::ranges::all_of(*gang.parts, has_ample_room)) return {capacity, false};
  GangToPlace on_empty = gang;
  on_empty.on_empty_cluster = true;
  on_empty.is_constrained = false;
  on_empty.avoid.clear();
  if (PlaceGang(ledger, on_empty).fitting >= needed) return {capacity, false};
  // The search is greedy: only what cannot be there in any way never fits.
  int least = 0;
  for (int most = capacity; least < most;) {
    const int middle = most - (most - least) / 2;
    if (MayFitTogether(ledger, gang, middle)) least = middle;
    else most = middle - 1;
  }
  return {least, least >= needed};
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
