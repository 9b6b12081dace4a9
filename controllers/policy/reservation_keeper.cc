// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/reservation_keeper.h"

#include <algorithm>

namespace grus {
namespace {

// How long a computed reservation is used at most before it is computed anew.
constexpr std::int64_t kReservationSeconds = 1;

// How far the clock behind GangDemand::waiting_since may be ahead of ours.
constexpr std::int64_t kClockSkew = 60;

template <typename Map>
auto* FindOwned(Map& held, const std::string& gang) {
  const auto it = std::ranges::find_if(held, [&](const auto& entry) { return entry.second.owner == gang; });
  return it == held.end() ? nullptr : &it->second;
}

// Where it reserves.
PoolIndex PoolOf(const PlannedGang& gang) {
  const PoolVariant& variant = gang.in_pool();
  return variant.milli.empty() || variant.milli.back() == 0 ? kNoPool : variant.pool;
}

// Whether it could be placed on nodes that are kept for a gang of that pool.
bool MayBeIn(const PlannedGang& gang, PoolIndex pool) {
  return pool == kNoPool || PoolOf(gang) == kNoPool ||
         std::ranges::any_of(gang.variants, [&](const PoolVariant& own) { return own.pool == pool && own.HasNodes(); });
}

}  // namespace

const std::string& ReservationKeeper::Nobody() {
  static const std::string kNobody;
  return kNobody;
}

const ReservationKeeper::Held* ReservationKeeper::HeldBy(const std::string& gang) const {
  return FindOwned(held_, gang);
}

ReservationKeeper::Held* ReservationKeeper::HeldBy(const std::string& gang) { return FindOwned(held_, gang); }

bool ReservationKeeper::HasOwner(const PlannedGang& gang) const { return held_.contains(PoolOf(gang)); }

const std::string& ReservationKeeper::OwnerBefore(const PlannedGang& gang) const {
  const auto it = held_.find(PoolOf(gang));
  const bool is_before = it != held_.end() && it->second.queue == gang.queue && it->second.rank < gang.rank;
  return is_before ? it->second.owner : Nobody();
}

std::vector<std::string> ReservationKeeper::Owners() const {
  std::vector<std::string> owners;
  for (const auto& [pool, held] : held_) owners.push_back(held.owner);
  return owners;
}

std::optional<std::int64_t> ReservationKeeper::StartOf(const std::string& gang) const {
  const Held* held = HeldBy(gang);
  return held == nullptr ? std::nullopt : held->reservation.start;
}

const ReservedRoom* ReservationKeeper::RoomOf(const std::string& gang) const {
  const Held* held = HeldBy(gang);
  return held != nullptr && held->is_kept ? &held->reservation.nodes : nullptr;
}

const std::string& ReservationKeeper::ReservedFrom(const std::string& owner, const PodShape& shape) const {
  for (const auto& [pool, held] : held_) {
    if (!held.is_kept || held.owner == owner) continue;
    const bool is_open = std::ranges::any_of(held.reservation.nodes, [&](const auto& entry) {
      const LedgerNode* node = ledger_.NodeAt(entry.first);
      return node && node->CanHold(shape, node->used);
    });
    if (is_open) return held.owner;
  }
  return Nobody();
}

std::vector<const ReservationKeeper::Held*> ReservationKeeper::KeptForOthers(const PlannedGang& gang) const {
  std::vector<const Held*> others;
  for (const auto& [pool, held] : held_) {
    if (held.is_kept && held.owner != gang.demand.key) others.push_back(&held);
  }
  return others;
}

std::int64_t ReservationKeeper::ReservedCopies(const FitIndex& index, const Held& held) {
  auto& [version, copies] = reserved_copies_[{&index, &held}];
  if (version == ledger_.version()) return copies;
  version = ledger_.version();
  copies = 0;
  for (const auto& [id, amount] : held.reservation.nodes) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr) continue;
    Resources taken = node->Taken();
    taken -= amount;
    copies += index.CopiesOn(id, taken) - index.CopiesOn(id);
  }
  return copies;
}

bool ReservationKeeper::WouldFitWithout(const PlannedGang& gang, const std::vector<const Held*>& held) {
  return std::ranges::all_of(gang.in_pool().parts, [&](const GangPart& part) {
    std::int64_t copies = part.index->copies();
    for (const Held* other : held) copies += ReservedCopies(*part.index, *other);
    return copies >= part.CountBelow(gang.needed());
  });
}

const std::string& ReservationKeeper::BlockerOf(const PlannedGang& gang) {
  const std::vector<const Held*> others = KeptForOthers(gang);
  if (others.empty() || !WouldFitWithout(gang, others)) return Nobody();
  const auto is_in_the_way = [&](const Held* held) {
    return std::ranges::any_of(gang.in_pool().parts,
                               [&](const GangPart& part) { return ReservedCopies(*part.index, *held) > 0; });
  };
  const auto blocker = std::ranges::find_if(others, is_in_the_way);
  return blocker == others.end() ? others.front()->owner : (*blocker)->owner;
}

bool ReservationKeeper::EndsInTime(const PlannedGang& gang, const std::string& owner, std::int64_t now) const {
  const std::optional<std::int64_t> start = StartOf(owner);
  return !gang.IsExtra() && gang.demand.runtime_seconds && start && *gang.demand.runtime_seconds <= *start - now;
}

ReservedRoom ReservationKeeper::RoomInTime(const PlannedGang& gang, std::int64_t now) {
  std::vector<const Held*> left = KeptForOthers(gang);
  std::erase_if(left, [&](const Held* held) { return !EndsInTime(gang, held->owner, now); });
  if (left.empty()) return {};
  if (const Held* own = HeldBy(gang.demand.key); own != nullptr && own->is_kept) left.push_back(own);
  if (!WouldFitWithout(gang, left)) return {};
  ReservedRoom room;
  for (const Held* held : left) {
    for (const auto& [id, amount] : held->reservation.nodes) room[id] += amount;
  }
  return room;
}

void ReservationKeeper::Begin(const std::function<bool(const std::string& owner, PoolIndex pool)>& is_due) {
  for (auto& [pool, held] : held_) {
    held.is_met = held.is_renewed = false;
    held.is_due = is_due(held.owner, pool);
  }
}

bool ReservationKeeper::Meet(const PlannedGang& gang) {
  bool is_open = false;
  for (auto& [pool, held] : held_) {
    if (held.is_met || held.owner == gang.demand.key || !MayBeIn(gang, pool)) continue;
    if (held.queue == gang.queue ? held.rank < gang.rank : held.is_due) continue;
    held.is_met = true;
    is_open |= std::exchange(held.is_kept, false);
  }
  if (is_open) Publish();
  return is_open;
}

bool ReservationKeeper::IsTaken(const PlannedGang& gang) const {
  const auto it = held_.find(PoolOf(gang));
  if (it == held_.end() || it->second.owner == gang.demand.key) return false;
  return it->second.is_renewed || !it->second.is_met;
}

void ReservationKeeper::ForEachKept(
    const std::function<void(PoolIndex, const std::string& owner, const ReservedRoom&)>& tell) const {
  for (const auto& [pool, held] : held_) {
    if (held.is_kept) tell(pool, held.owner, held.reservation.nodes);
  }
}

std::int64_t ReservationKeeper::ReservesFrom(const GangDemand& demand, std::int64_t now) const {
  // A time far in the future was noted before the clock was set back: nobody knows how long the gang has waited.
  const bool is_known = demand.waiting_since <= now + kClockSkew;
  return std::max(is_known ? demand.waiting_since + reserve_after_ : 0, turns_.ReservesFrom(demand.key, now));
}

bool ReservationKeeper::IsStale(const Held& held, const PlannedGang& gang, std::int64_t now) const {
  const Reservation& reservation = held.reservation;
  return held.owner != gang.demand.key || now >= held.reserved_at + kReservationSeconds || now < held.reserved_at ||
         // Room that was just freed is available sooner than nodes that others still hold.
         (reservation.start != now && held.reserved_room != ledger_.room_version()) || reservation.nodes.empty() ||
         (reservation.start && *reservation.start <= now) ||
         std::ranges::any_of(reservation.nodes, [&](const auto& entry) {
           const LedgerNode* node = ledger_.NodeAt(entry.first);
           return !node || !node->is_known || !gang.in_pool().parts.front().index->IsEligible(entry.first);
         });
}

void ReservationKeeper::Find(Held& held, const GangToPlace& query, std::int64_t now) {
  std::vector<std::int64_t> by_owner(ledger_.owner_limit());
  std::erase_if(ends_, [&](const auto& end) { return end.second <= now && !ledger_.HoldsAnything(end.first); });
  for (const auto& [owner, end] : ends_) {
    if (const OwnerId id = ledger_.FindOwner(owner); id != 0) by_owner[id] = end;
  }
  held.reservation = FindReservation(ledger_, query, by_owner, now);
  held.reserved_at = now;
  held.reserved_room = ledger_.room_version();
  reserved_copies_.clear();
}

bool ReservationKeeper::Reserve(const PlannedGang& gang, GangToPlace query, std::int64_t now) {
  const std::string& key = gang.demand.key;
  Held& held = held_[PoolOf(gang)];
  if (held.owner != key) End(key);  // In another pool.
  // Of what is kept, only what is kept for others is not free for it.
  const ReservedRoom before = held.is_kept ? held.reservation.nodes : ReservedRoom();
  query.may_use = &before;
  if (IsStale(held, gang, now)) Find(held, query, now);
  if (held.reservation.nodes.empty()) {
    held.is_kept = false;
    Publish();
    return false;
  }
  if (held.owner != key) {
    if (!held.owner.empty()) ++ended_;
    held.turn_began = now;
    held.turn_length = turns_.LengthFor(key, now);
  }
  held.owner = key;
  held.queue = gang.queue;
  held.rank = gang.rank;
  held.is_kept = held.is_met = held.is_renewed = true;
  Publish();
  return true;
}

bool ReservationKeeper::EndTurn(const std::string& gang, std::int64_t now) {
  Held* held = HeldBy(gang);
  held->turn_began = std::min(held->turn_began, now);
  if (IsStartKnown(*held, now) || now - held->turn_began < held->turn_length) return false;
  turns_.End(gang, held->turn_length, now);
  return true;
}

void ReservationKeeper::Finish() {
  const auto is_over = [this](const auto& held) {
    if (held.second.is_renewed) return false;
    if (!held.second.owner.empty()) ++ended_;
    return true;
  };
  if (std::erase_if(held_, is_over) > 0) Publish();
}

void ReservationKeeper::Publish() {
  ReservedRoom room;
  for (const auto& [pool, held] : held_) {
    if (!held.is_kept) continue;
    for (const auto& [id, amount] : held.reservation.nodes) room[id] += amount;
  }
  if (ledger_.reserved() == room) return;
  reserved_copies_.clear();
  ledger_.Reserve(std::move(room));
}

bool ReservationKeeper::Drop(const std::string& gang) {
  Held* held = HeldBy(gang);
  if (held == nullptr || !std::exchange(held->is_kept, false)) return false;
  Publish();
  return true;
}

void ReservationKeeper::End(const std::string& gang) {
  const std::size_t ended = std::erase_if(held_, [&](const auto& held) { return held.second.owner == gang; });
  if (ended == 0) return;
  ended_ += ended;
  Publish();
}

std::int64_t ReservationKeeper::NextChange(const std::string& gang, std::int64_t now) const {
  const Held& held = *HeldBy(gang);
  if (!IsStartKnown(held, now)) return held.turn_began + held.turn_length;
  return std::max(*held.reservation.start, now + 1);  // If the start is late, find a later one.
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

void ReservationKeeper::LookAgain() {
  for (auto& [pool, held] : held_) held.reserved_at = 0;
}

}  // namespace grus
