// SPDX-License-Identifier: Apache-2.0
// Which waiting gang has the reservation, on which nodes, and for how long. Part of gang_planner.
//
// There is one reservation at a time. A gang that has it keeps it for its turn (ReservationTurns); meanwhile its nodes
// are looked for again and again, since room comes free elsewhere, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "controllers/policy/planned_gang.h"
#include "controllers/policy/reservation.h"

namespace grus {

class ReservationKeeper {
 public:
  ReservationKeeper(ClusterLedger& ledger, std::int64_t reserve_after)
      : ledger_(ledger), reserve_after_(reserve_after) {}

  const std::string& owner() const { return owner_; }  // A gang's key; empty: no gang has it.
  std::optional<std::int64_t> start() const { return reservation_.start; }
  bool IsForOther(const PlannedGang& gang) const { return !ledger_.reserved().empty() && owner_ != gang.demand.key; }
  // Whether the needed members would have room if nothing were reserved.
  bool WouldFitOnReserved(const PlannedGang& gang);
  // Whether the gang ends before the one with the reservation can start.
  bool EndsInTime(const PlannedGang& gang, std::int64_t now) const;

  // When it may get a reservation.
  std::int64_t ReservesFrom(const GangDemand& demand, std::int64_t now) const;
  // When gangs of its namespace may, after they have used their turn.
  std::int64_t RestsUntil(const std::string& gang, std::int64_t now) const { return turns_.ReservesFrom(gang, now); }
  // Gives it the reservation, or keeps it up to date. False: no set of nodes would do.
  bool Reserve(const PlannedGang& gang, const GangToPlace& query, std::int64_t now);
  // Ends the turn of the gang if its time is up; true if so.
  bool EndTurn(const std::string& gang, std::int64_t now);
  // Stops keeping the room free; the turn of the gang goes on.
  void Drop();
  void End();
  // Of the gang that has it: when its start or the end of its turn is due.
  std::int64_t NextChange(std::int64_t now) const;

  void NoteStart(const PlannedGang& gang, std::int64_t now);
  // When an owner in the ledger ends; nullopt: not known. False: it is the same.
  bool SetEnd(const std::string& owner, std::optional<std::int64_t> at);
  void LookAgain() { reserved_at_ = 0; }              // Other nodes may suit it better now.
  void ForgetIndexes() { reserved_copies_.clear(); }  // A new index may reuse the address of a freed one.

 private:
  std::int64_t ReservedCopies(const FitIndex& index);  // That the reservation withholds.
  bool IsStale(const PlannedGang& gang, std::int64_t now) const;
  void Find(const GangToPlace& query, std::int64_t now);
  // A start further away than the longest turn counts as unknown.
  bool IsStartKnown(std::int64_t now) const {
    return reservation_.start && *reservation_.start - now <= ReservationTurns::kLongest;
  }

  ClusterLedger& ledger_;
  const std::int64_t reserve_after_;
  std::unordered_map<std::string, std::int64_t> ends_;
  ReservationTurns turns_;
  std::string owner_;
  std::int64_t turn_began_ = 0, turn_length_ = 0;
  Reservation reservation_;
  std::int64_t reserved_at_ = 0;
  std::uint64_t reserved_room_ = 0;  // The ledger's room_version() then.
  // The ledger's version, and by how many copies the reservation lowered an index at that version.
  std::map<const FitIndex*, std::pair<std::uint64_t, std::int64_t>> reserved_copies_;
};

}  // namespace grus
