// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_placer.h"

#include <algorithm>

#include "controllers/policy/gang_standing.h"

namespace grus {

bool GangPlacer::Place(PlannedGang& gang, std::int64_t now) {
  const std::string& key = gang.demand.key;
  const std::optional<PoolNeed> claim = ChargeOf(queues_.claims(), key);
  Charges reserved;
  for (const auto& charge : queues_.reserved()) {
    if (charge.first == key || reservation_.EndsInTime(gang, charge.first, now)) reserved.insert(charge);
  }
  queues_.ClaimFor(key, std::nullopt);
  for (const auto& [owner, idle] : reserved) queues_.SetReserved(owner, std::nullopt);
  const bool is_placed = InAnyPool(gang, now);
  if (!is_placed) queues_.ClaimFor(key, claim);
  for (const auto& [owner, idle] : reserved) queues_.SetReserved(owner, idle);
  if (!is_placed) return false;
  reservation_.End(key);
  if (!reserved.empty()) ChargeReservations();
  return true;
}

bool GangPlacer::InAnyPool(PlannedGang& gang, std::int64_t now) {
  std::size_t best = gang.at;
  int best_right = -1;
  std::optional<std::string> why;
  for (gang.at = 0; gang.at < gang.variants.size(); ++gang.at) {
    const PoolVariant& variant = gang.in_pool();
    const bool has_nodes = gang.variants.size() == 1 || variant.HasNodes();
    const std::optional<std::string> refusal = WhyNotAdmitted(gang, variant, queues_);
    if (has_nodes && !refusal && InPool(gang, now)) return true;
    const int right = (has_nodes && variant.capacity >= gang.needed() ? 8 : 0) + (gang.is_entitled ? 4 : 0) +
                      (IsWithinGuarantee(gang, variant, queues_) ? 2 : 0) + (refusal ? 0 : 1);
    if (right <= best_right) continue;
    best_right = right;
    best = gang.at;
    why = refusal;
  }
  gang.at = best;
  gang.is_entitled = (best_right & 4) != 0;
  if (gang.variants.size() > 1) gang.searched.reset();
  // Where nothing is idle, those that hold the GPUs say more.
  if (gang.is_entitled) why.reset();
  gang.is_changed |= Update(gang.standing.queue_refusal, why.value_or(std::string()));
  return false;
}

bool GangPlacer::InPool(PlannedGang& gang, std::int64_t now) {
  GangToPlace query = QueryOf(gang, gang.in_pool(), ledger_);
  query.at_most = MostAdmitted(gang, gang.in_pool(), queues_);
  gang.searched.reset();
  query.may_use = reservation_.RoomOf(gang.demand.key);
  if (Search(gang, query, now)) return true;
  const ReservedRoom in_time = reservation_.RoomInTime(gang, now);
  query.may_use = &in_time;
  return !in_time.empty() && Search(gang, query, now);
}

bool GangPlacer::Search(PlannedGang& gang, GangToPlace& query, std::int64_t now) {
  if (RoomForMembers(ledger_, query, gang.needed()) < gang.needed()) return false;
  if (gang.guards_version != ledger_.guards_version()) {
    gang.guards_version = ledger_.guards_version();
    gang.is_constrained = HasConstraints(ledger_, gang.demand.members);
  }
  query.is_constrained = gang.is_constrained;
  const GangPlaces places = PlaceGang(ledger_, query);
  gang.searched = places.fitting;
  if (places.nodes.empty()) return false;
  const std::string& key = gang.demand.key;
  for (std::size_t i = 0; i < places.nodes.size(); ++i) {
    const GangDemand::Companion& companion = gang.demand.companion;
    ledger_.AddPlace(static_cast<int>(i) == companion.member ? companion.owner : key,
                     ledger_.NodeAt(places.nodes[i])->state.name, gang.in_pool().members[i],
                     i < places.gpus.size() ? places.gpus[i] : std::string());
  }
  gang.standing = {};
  gang.standing.is_placed = true;
  gang.standing.placed = static_cast<int>(places.nodes.size());
  reservation_.NoteStart(gang, now);
  return true;
}

void GangPlacer::ChargeReservations() {
  if (!queues_.is_active()) return;
  Charges charges;
  reservation_.ForEachKept([&](PoolIndex pool, const std::string& owner, const ReservedRoom& room) {
    if (pool == kNoPool) return;
    std::int64_t idle = 0;
    for (const auto& [id, amount] : room) {
      const LedgerNode* node = ledger_.NodeAt(id);
      if (node == nullptr) continue;
      const std::int64_t free = queues_.MilliOf(node->state.allocatable, pool) - queues_.MilliOf(node->used, pool);
      idle += std::clamp<std::int64_t>(free, 0, queues_.MilliOf(amount, pool));
    }
    if (idle > 0) charges[owner] = {pool, idle};
  });
  for (const auto& [owner, charge] : Charges(queues_.reserved())) {
    if (!charges.contains(owner)) queues_.SetReserved(owner, std::nullopt);
  }
  for (const auto& [owner, charge] : charges) queues_.SetReserved(owner, charge);
}

}  // namespace grus
