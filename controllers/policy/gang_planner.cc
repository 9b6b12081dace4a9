// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_planner.h"

#include <algorithm>
#include <compare>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "controllers/policy/gang_standing.h"
#include "controllers/policy/placement.h"
#include "controllers/policy/reservation.h"

namespace grus {
namespace {

// How long a computed reservation is used at most before it is computed anew.
constexpr std::int64_t kReservationSeconds = 1;

// How far the clock behind GangDemand::waiting_since may be ahead of ours.
constexpr std::int64_t kClockSkew = 60;

struct QueueKey {
  int minus_priority;
  bool is_extra;  // No member is needed: after gangs of this priority that wait to start.
  std::int64_t waiting_since;
  std::string key;
  friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

QueueKey KeyOf(const GangDemand& demand) {
  return {-demand.priority, demand.needed <= 0, demand.waiting_since, demand.key};
}

struct Gang {
  GangDemand demand;
  std::vector<GangPart> parts;
  GangStanding standing;
  bool is_changed = true;  // Since its standing was last told.
  bool is_constrained = false;
  std::uint64_t guards_version = 0;                      // For which that holds.
  std::uint64_t nodes_version = 0;                       // For which standing.capacity holds.
  bool is_capacity_thorough = false, is_missed = false;  // See CapacityFor().
  std::optional<int> searched;  // Members with a place in the last search; none: too little room for one.
};

}  // namespace

struct GangPlanner::Impl {
  ClusterLedger& ledger;
  const std::int64_t reserve_after;
  std::unordered_map<std::string, Gang> gangs;
  std::map<QueueKey, Gang*> queue;  // Those that wait.
  std::unordered_map<std::string, std::int64_t> ends;
  std::vector<std::string> changed;
  ReservationTurns turns;

  std::string reserved_for;  // The gang that has the reservation; empty: none.
  std::int64_t turn_began = 0, turn_length = 0;
  Reservation reservation;
  std::int64_t reserved_at = 0;
  std::uint64_t reserved_room = 0;  // The ledger's room_version() then.
  // The ledger's version, and by how many copies the reservation lowered an index at that version.
  std::map<const FitIndex*, std::pair<std::uint64_t, std::int64_t>> reserved_copies;

  bool is_dirty = true;
  std::uint64_t planned_version = 0;
  std::int64_t planned_at = 0;

  Impl(ClusterLedger& l, std::int64_t after) : ledger(l), reserve_after(after) {}

  GangToPlace QueryOf(const Gang& gang) const {
    GangToPlace query;
    query.members = &gang.demand.members;
    query.parts = &gang.parts;
    query.needed = gang.demand.needed;
    for (const std::string& name : gang.demand.avoid) {
      if (const LedgerNode* node = ledger.FindNode(name)) query.avoid.push_back(node->id);
    }
    query.is_constrained = gang.is_constrained;
    return query;
  }

  bool IsReservedForOther(const Gang& gang) const {
    return !ledger.reserved().empty() && reserved_for != gang.demand.key;
  }

  // How many copies of an index the reservation withholds.
  std::int64_t ReservedCopies(const FitIndex& index) {
    auto& [version, copies] = reserved_copies[&index];
    if (version == ledger.version()) return copies;
    version = ledger.version();
    copies = 0;
    for (const auto& [id, amount] : ledger.reserved()) {
      if (const LedgerNode* node = ledger.NodeAt(id)) copies += index.CopiesOn(id, node->used) - index.CopiesOn(id);
    }
    return copies;
  }

  bool WouldFitOnReserved(const Gang& gang) {
    const int needed = std::max(1, gang.demand.needed);
    return std::ranges::all_of(gang.parts, [&](const GangPart& part) {
      return part.index->copies() + ReservedCopies(*part.index) >= part.CountBelow(needed);
    });
  }

  // Whether the gang ends before the one with the reservation can start.
  bool EndsInTime(const Gang& gang, std::int64_t now) const {
    return reservation.start && gang.demand.runtime_seconds && gang.demand.needed > 0 &&
           *gang.demand.runtime_seconds <= *reservation.start - now;
  }

  bool TryToPlace(Gang& gang, std::int64_t now) {
    GangToPlace query = QueryOf(gang);
    gang.searched.reset();
    query.may_use_reserved = reserved_for == gang.demand.key;
    if (Search(gang, query, now)) return true;
    if (!IsReservedForOther(gang) || !EndsInTime(gang, now) || !WouldFitOnReserved(gang)) return false;
    query.may_use_reserved = true;
    return Search(gang, query, now);
  }

  bool Search(Gang& gang, GangToPlace& query, std::int64_t now) {
    const int needed = std::max(1, gang.demand.needed);
    if (RoomForMembers(ledger, query, needed) < needed) return false;
    if (gang.guards_version != ledger.guards_version()) {
      gang.guards_version = ledger.guards_version();
      gang.is_constrained = HasConstraints(ledger, gang.demand.members);
    }
    query.is_constrained = gang.is_constrained;
    const GangPlaces places = PlaceGang(ledger, query);
    gang.searched = places.fitting;
    if (places.nodes.empty()) return false;
    const std::string& key = gang.demand.key;
    for (std::size_t i = 0; i < places.nodes.size(); ++i) {
      const GangDemand::Companion& companion = gang.demand.companion;
      ledger.AddPlace(static_cast<int>(i) == companion.member ? companion.owner : key,
                      ledger.NodeAt(places.nodes[i])->state.name, gang.demand.members[i]);
    }
    // Extra members do not change when a running gang ends.
    if (gang.demand.needed > 0 && gang.demand.runtime_seconds) ends[key] = now + *gang.demand.runtime_seconds;
    gang.standing = {};
    gang.standing.is_placed = true;
    gang.standing.placed = static_cast<int>(places.nodes.size());
    turns.Started(key);
    return true;
  }

  void UpdateCapacity(Gang& gang, bool is_thorough) {
    if (gang.nodes_version == ledger.nodes_version() && (gang.is_capacity_thorough || !is_thorough)) return;
    // The first count is thorough; after changes of nodes a rough one does, until the gang asks for a reservation.
    is_thorough = is_thorough || gang.nodes_version == 0;
    gang.nodes_version = ledger.nodes_version();
    gang.is_capacity_thorough = is_thorough;
    const GangCapacity capacity = CapacityFor(ledger, QueryOf(gang), is_thorough);
    gang.is_missed = capacity.is_missed;
    gang.is_changed |= Update(gang.standing.capacity, capacity.members);
    gang.is_changed |= Update(gang.standing.can_never_fit, gang.standing.capacity < std::max(1, gang.demand.needed));
  }

  // The search failed although there is room: constraints between pods are in the way.
  static bool LacksOnlyAPlace(const Gang& gang) { return gang.searched && gang.is_constrained; }

  // A gang that lacks only a place that suits other pods gets no reservation: emptying nodes may not help it. Nor does
  // one for which the search would miss a place on empty nodes.
  bool MayReserve(const Gang& gang, std::int64_t now) const {
    return gang.demand.needed > 0 && !gang.standing.can_never_fit && !gang.is_missed && !LacksOnlyAPlace(gang) &&
           now >= ReservesFrom(gang.demand);
  }

  std::int64_t ReservesFrom(const GangDemand& demand) const {
    // A time far in the future was noted before the clock was set back: nobody knows how long the gang has waited.
    const bool is_known = demand.waiting_since <= planned_at + kClockSkew;
    return std::max(is_known ? demand.waiting_since + reserve_after : 0, turns.ReservesFrom(demand.key, planned_at));
  }

  // A start further away than the longest turn counts as unknown.
  bool IsStartKnown(std::int64_t now) const {
    return reservation.start && *reservation.start - now <= ReservationTurns::kLongest;
  }

  // Ends the turn of the gang if its time is up; true if so.
  bool EndTurn(const GangDemand& demand, std::int64_t now) {
    turn_began = std::min(turn_began, now);
    if (IsStartKnown(now) || now - turn_began < turn_length) return false;
    turns.End(demand.key, turn_length, now);
    return true;
  }

  // False: no set of nodes would do.
  bool Reserve(const Gang& gang, std::int64_t now) {
    const bool is_stale = reserved_for != gang.demand.key || now >= reserved_at + kReservationSeconds ||
                          now < reserved_at ||
                          // Room that was just freed is available sooner than nodes that others still hold.
                          (reservation.start != now && reserved_room != ledger.room_version()) ||
                          reservation.nodes.empty() || (reservation.start && *reservation.start <= now) ||
                          std::ranges::any_of(reservation.nodes, [&](const auto& entry) {
                            const LedgerNode* node = ledger.NodeAt(entry.first);
                            return !node || !node->is_known || !gang.parts.front().index->IsEligible(entry.first);
                          });
    if (is_stale) {
      std::vector<std::int64_t> by_owner(ledger.owner_limit());
      std::erase_if(ends, [&](const auto& end) { return end.second <= now && !ledger.HoldsAnything(end.first); });
      for (const auto& [owner, end] : ends) {
        if (const OwnerId id = ledger.FindOwner(owner); id != 0) by_owner[id] = end;
      }
      reservation = FindReservation(ledger, QueryOf(gang), by_owner, now);
      reserved_at = now;
      reserved_room = ledger.room_version();
      reserved_copies.clear();
    }
    if (reservation.nodes.empty()) return false;
    if (reserved_for != gang.demand.key) {
      turn_began = now;
      turn_length = turns.LengthFor(gang.demand.key, now);
    }
    reserved_for = gang.demand.key;
    if (ledger.reserved() != reservation.nodes) {
      reserved_copies.clear();
      ledger.Reserve(reservation.nodes);
    }
    return true;
  }

  void Erase(const std::string& key) {
    const auto it = gangs.find(key);
    if (it == gangs.end()) return;
    queue.erase(KeyOf(it->second.demand));
    gangs.erase(it);
    is_dirty = true;
  }

  // Stops keeping the room free; the turn of the gang that has the reservation goes on.
  void DropReservation() {
    if (!ledger.reserved().empty()) ledger.Reserve({});
    reserved_copies.clear();
  }

  void EndReservation() {
    DropReservation();
    reserved_for.clear();
  }

  // False: the turn of a gang ended.
  bool PlaceInTurn(std::int64_t now) {
    // The reservation does not bind gangs that come before its owner in the queue.
    if (queue.empty() || queue.begin()->second->demand.key != reserved_for) DropReservation();
    bool is_reserved = false;
    for (auto it = queue.begin(); it != queue.end();) {
      Gang& gang = *it->second;
      UpdateCapacity(gang, false);
      if (TryToPlace(gang, now)) {
        if (gang.demand.key == reserved_for) EndReservation();
        changed.push_back(gang.demand.key);
        it = queue.erase(it);
        continue;
      }
      if (!is_reserved && MayReserve(gang, now)) {
        UpdateCapacity(gang, true);
        is_reserved = MayReserve(gang, now) && Reserve(gang, now);
        if (is_reserved && EndTurn(gang.demand, now)) {
          EndReservation();
          return false;
        }
      }
      if (!is_reserved && gang.demand.key == reserved_for) DropReservation();
      ++it;
    }
    if (!is_reserved) EndReservation();
    return true;
  }

  std::optional<std::int64_t> ChangeOf(const GangDemand& demand) const {
    if (demand.key == reserved_for) {
      if (!IsStartKnown(planned_at)) return turn_began + turn_length;
      return std::max(*reservation.start, planned_at + 1);  // If the start is late, find a later one.
    }
    const std::int64_t at = ReservesFrom(demand);
    return demand.needed > 0 && at > planned_at ? std::optional(at) : std::nullopt;
  }

  // Whether the next change of a gang is due; if there is a reservation, of the gang that has it.
  bool IsDue(std::int64_t now) const {
    const auto is_due = [&](const Gang& gang) {
      const std::optional<std::int64_t> at = ChangeOf(gang.demand);
      return at && *at <= now;
    };
    if (const auto it = gangs.find(reserved_for); it != gangs.end()) return is_due(it->second);
    return std::ranges::any_of(queue, [&](const auto& entry) { return is_due(*entry.second); });
  }

  void DescribeAll() {
    FactsCache facts(ledger);
    int position = 0;
    for (auto& [key, gang] : queue) {
      GangStanding& standing = gang->standing;
      const bool is_reserved_for_it = gang->demand.key == reserved_for;
      GangToPlace query = QueryOf(*gang);
      query.may_use_reserved = is_reserved_for_it;
      bool is_new = std::exchange(gang->is_changed, false);
      is_new |= Update(standing.position, ++position);
      is_new |= Describe(ledger, query, gang->searched, facts, standing);
      is_new |= Update(standing.has_reservation, is_reserved_for_it);
      const std::int64_t rests_until = turns.ReservesFrom(gang->demand.key, planned_at);
      const bool rests = gang->demand.needed > 0 && !standing.can_never_fit && rests_until > planned_at;
      is_new |= Update(standing.reserves_from, rests ? std::optional(rests_until) : std::nullopt);
      is_new |= Update(standing.expected_start, is_reserved_for_it ? reservation.start : std::nullopt);
      const bool is_blocked = !is_reserved_for_it && IsReservedForOther(*gang) && !LacksOnlyAPlace(*gang) &&
                              standing.fitting < std::max(1, gang->demand.needed) && WouldFitOnReserved(*gang);
      is_new |= Update(standing.blocked_by, is_blocked ? std::string_view(reserved_for) : std::string_view());
      if (is_new) changed.push_back(gang->demand.key);
    }
  }
};

GangPlanner::GangPlanner(ClusterLedger& ledger, std::int64_t reserve_after_seconds)
    : impl_(std::make_unique<Impl>(ledger, reserve_after_seconds)) {}
GangPlanner::~GangPlanner() = default;

void GangPlanner::Put(GangDemand demand) {
  const auto it = impl_->gangs.find(demand.key);
  if (it != impl_->gangs.end()) {
    if (it->second.demand == demand) return;
    impl_->Erase(demand.key);
  }
  if (demand.members.empty()) return;
  Gang& gang = impl_->gangs[demand.key];
  gang.demand = std::move(demand);
  gang.parts = PartsOf(impl_->ledger, gang.demand.members);
  // A new index may reuse the address of a freed one.
  for (const GangPart& part : gang.parts) impl_->reserved_copies.erase(part.index.get());
  impl_->queue.emplace(KeyOf(gang.demand), &gang);
  if (gang.demand.key == impl_->reserved_for) impl_->reserved_at = 0;  // Its needs may have changed.
  impl_->is_dirty = true;
}

void GangPlanner::Remove(const std::string& key) {
  impl_->Erase(key);
  if (impl_->reserved_for == key) impl_->EndReservation();
}

void GangPlanner::SetEnd(const std::string& key, std::optional<std::int64_t> at) {
  const auto it = impl_->ends.find(key);
  if (it == impl_->ends.end() ? !at : it->second == at) return;
  if (at) impl_->ends[key] = *at;
  else impl_->ends.erase(it);
  impl_->reserved_at = 0;  // Other nodes may suit the reservation better now.
  impl_->is_dirty = true;
}

std::vector<std::string> GangPlanner::Plan(std::int64_t now) {
  Impl& impl = *impl_;
  const bool is_needed = impl.is_dirty || impl.planned_version != impl.ledger.version() || impl.IsDue(now);
  impl.planned_at = now;
  if (!is_needed) return {};
  impl.changed.clear();
  while (!impl.PlaceInTurn(now)) {  // Again: the reserved room is free for all gangs now.
  }
  impl.DescribeAll();
  impl.is_dirty = false;
  impl.planned_version = impl.ledger.version();
  return std::exchange(impl.changed, {});
}

const GangStanding* GangPlanner::StandingOf(const std::string& key) const {
  const auto it = impl_->gangs.find(key);
  return it == impl_->gangs.end() ? nullptr : &it->second.standing;
}

std::size_t GangPlanner::waiting() const { return impl_->queue.size(); }

const std::string& GangPlanner::reserved_for() const { return impl_->reserved_for; }

std::optional<std::int64_t> GangPlanner::next_change(const std::string& key) const {
  const auto it = impl_->gangs.find(key);
  return it == impl_->gangs.end() ? std::nullopt : impl_->ChangeOf(it->second.demand);
}

}  // namespace grus
