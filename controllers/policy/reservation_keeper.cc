// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/reservation_keeper.h"

#include <algorithm>
#include <vector>

namespace grus {
namespace {

// How long a computed reservation is used at most before it is computed anew.
constexpr std::int64_t kReservationSeconds = 1;

// How far the clock behind GangDemand::waiting_since may be ahead of ours.
constexpr std::int64_t kClockSkew = 60;

}  // namespace

std::int64_t ReservationKeeper::ReservedCopies(const FitIndex& index) {
  auto& [version, copies] = reserved_copies_[&index];
  if (version == ledger_.version()) return copies;
  version = ledger_.version();
  copies = 0;
  for (const auto& [id, amount] : ledger_.reserved()) {
    if (const LedgerNode* node = ledger_.NodeAt(id)) copies += index.CopiesOn(id, node->used) - index.CopiesOn(id);
  }
  return copies;
}

bool ReservationKeeper::WouldFitOnReserved(const PlannedGang& gang) {
  return std::ranges::all_of(gang.in_pool().parts, [&](const GangPart& part) {
    return part.index->copies() + ReservedCopies(*part.index) >= part.CountBelow(gang.needed());
  });
}

bool ReservationKeeper::EndsInTime(const PlannedGang& gang, std::int64_t now) const {
  return reservation_.start && gang.demand.runtime_seconds && !gang.IsExtra() &&
         *gang.demand.runtime_seconds <= *reservation_.start - now;
}

std::int64_t ReservationKeeper::ReservesFrom(const GangDemand& demand, std::int64_t now) const {
  // A time far in the future was noted before the clock was set back: nobody knows how long the gang has waited.
  const bool is_known = demand.waiting_since <= now + kClockSkew;
  return std::max(is_known ? demand.waiting_since + reserve_after_ : 0, turns_.ReservesFrom(demand.key, now));
}

bool ReservationKeeper::IsStale(const PlannedGang& gang, std::int64_t now) const {
  return owner_ != gang.demand.key || now >= reserved_at_ + kReservationSeconds || now < reserved_at_ ||
         // Room that was just freed is available sooner than nodes that others still hold.
         (reservation_.start != now && reserved_room_ != ledger_.room_version()) || reservation_.nodes.empty() ||
         (reservation_.start && *reservation_.start <= now) ||
         std::ranges::any_of(reservation_.nodes, [&](const auto& entry) {
           const LedgerNode* node = ledger_.NodeAt(entry.first);
           return !node || !node->is_known || !gang.in_pool().parts.front().index->IsEligible(entry.first);
         });
}

void ReservationKeeper::Find(const GangToPlace& query, std::int64_t now) {
  std::vector<std::int64_t> by_owner(ledger_.owner_limit());
  std::erase_if(ends_, [&](const auto& end) { return end.second <= now && !ledger_.HoldsAnything(end.first); });
  for (const auto& [owner, end] : ends_) {
    if (const OwnerId id = ledger_.FindOwner(owner); id != 0) by_owner[id] = end;
  }
  reservation_ = FindReservation(ledger_, query, by_owner, now);
  reserved_at_ = now;
  reserved_room_ = ledger_.room_version();
  reserved_copies_.clear();
}

bool ReservationKeeper::Reserve(const PlannedGang& gang, const GangToPlace& query, std::int64_t now) {
  if (IsStale(gang, now)) Find(query, now);
  if (reservation_.nodes.empty()) return false;
  if (owner_ != gang.demand.key) {
    turn_began_ = now;
    turn_length_ = turns_.LengthFor(gang.demand.key, now);
  }
  owner_ = gang.demand.key;
  if (ledger_.reserved() != reservation_.nodes) {
    reserved_copies_.clear();
    ledger_.Reserve(reservation_.nodes);
  }
  return true;
}

bool ReservationKeeper::EndTurn(const std::string& gang, std::int64_t now) {
  turn_began_ = std::min(turn_began_, now);
  if (IsStartKnown(now) || now - turn_began_ < turn_length_) return false;
  turns_.End(gang, turn_length_, now);
  return true;
}

void ReservationKeeper::Drop() {
  if (!ledger_.reserved().empty()) ledger_.Reserve({});
  reserved_copies_.clear();
}

void ReservationKeeper::End() {
  Drop();
  owner_.clear();
}

std::int64_t ReservationKeeper::NextChange(std::int64_t now) const {
  if (!IsStartKnown(now)) return turn_began_ + turn_length_;
  return std::max(*reservation_.start, now + 1);  // If the start is late, find a later one.
}

void ReservationKeeper::NoteStart(const PlannedGang& gang, std::int64_t now) {
  const GangDemand& demand = gang.demand;
  // Extra members do not change when a running gang ends.
  if (!gang.IsExtra() && demand.runtime_seconds) ends_[demand.key] = now + *demand.runtime_seconds;
  turns_.Started(demand.key);
}

bool ReservationKeeper::SetEnd(const std::string& owner, std::optional<std::int64_t> at) {
  const auto it = ends_.find(owner);
  if (it == ends_.end() ? !at : it->second == at) return false;
  if (at) ends_[owner] = *at;
  else ends_.erase(it);
  LookAgain();
  return true;
}

}  // namespace grus
