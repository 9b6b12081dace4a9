// SPDX-License-Identifier: Apache-2.0
// Which waiting gangs have a reservation, on which nodes, and for how long. Part of gang_planner.
//
// There is one reservation at a time in each pool, and one for gangs that ask for no GPUs. A gang that has one keeps it
// for its turn (ReservationTurns); meanwhile its nodes are looked for again and again, since room comes free elsewhere,
// too.
//
// In each plan: Begin(), Meet() each gang before it is tried, Reserve() for those that had to wait, Finish().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controllers/policy/planned_gang.h"
#include "controllers/policy/reservation.h"

namespace grus {

class ReservationKeeper {
 public:
  ReservationKeeper(ClusterLedger& ledger, std::int64_t reserve_after)
      : ledger_(ledger), reserve_after_(reserve_after) {}

  static const std::string& Nobody();  // An empty name.
  bool IsOwner(const std::string& gang) const { return HeldBy(gang) != nullptr; }
  const std::string& OwnerBefore(const PlannedGang& gang) const;  // In its pool and queue; empty: none.
  bool HasOwner(const PlannedGang& gang) const;  // The reservation of its pool is this or another gang's.
  std::vector<std::string> Owners() const;
  std::optional<std::int64_t> StartOf(const std::string& gang) const;  // That its reservation expects.
  const ReservedRoom* RoomOf(const std::string& gang) const;           // Kept for it; null: none.
  std::uint64_t ended() const { return ended_; }  // How many have ended: what was kept may be free.
  // The gang for which free room is kept that such a pod of `owner` could take; empty: none.
  const std::string& ReservedFrom(const std::string& owner, const PodShape& shape) const;

  // The gang whose reservation keeps this one from starting; empty: none.
  const std::string& BlockerOf(const PlannedGang& gang);
  // Whether it would end before that owner of a reservation starts.
  bool EndsInTime(const PlannedGang& gang, const std::string& owner, std::int64_t now) const;
  // Its own reserved room, and that of gangs before whose start it ends; empty: with these, too, it has too little.
  ReservedRoom RoomInTime(const PlannedGang& gang, std::int64_t now);

  // `is_due`: whether the queue of an owner has a right to the room that is kept for it.
  void Begin(const std::function<bool(const std::string& owner, PoolIndex pool)>& is_due);
  // A reservation does not bind gangs that come before its owner in their queue, nor those of other queues if it is not
  // due. True: room that was kept is open to this gang now.
  bool Meet(const PlannedGang& gang);
  bool IsTaken(const PlannedGang& gang) const;  // It may not reserve in its pool, in this plan: another one does.
  // Free room that is kept for the owner of the reservation of a pool.
  void ForEachKept(const std::function<void(PoolIndex, const std::string& owner, const ReservedRoom&)>& tell) const;
  // When it may get a reservation.
  std::int64_t ReservesFrom(const GangDemand& demand, std::int64_t now) const;
  // When gangs of its namespace may, after they have used their turn.
  std::int64_t RestsUntil(const std::string& gang, std::int64_t now) const { return turns_.ReservesFrom(gang, now); }
  // Gives it the reservation of its pool, or keeps it up to date. False: no set of nodes would do.
  bool Reserve(const PlannedGang& gang, GangToPlace query, std::int64_t now);
  // Ends the turn of the gang if its time is up; true if so.
  bool EndTurn(const std::string& gang, std::int64_t now);
  void Finish();  // Ends reservations that this plan did not renew.

  // Stops keeping room free for it; its turn goes on. False: none was kept.
  bool Drop(const std::string& gang);
  void End(const std::string& gang);  // Its turn ends, too.
  // Of a gang that has a reservation: when its start or the end of its turn is due.
  std::int64_t NextChange(const std::string& gang, std::int64_t now) const;

  void NoteStart(const PlannedGang& gang, std::int64_t now);
  // When an owner in the ledger ends; nullopt: not known. False: it is the same.
  bool SetEnd(const std::string& owner, std::optional<std::int64_t> at);
  void LookAgain();                                   // Other nodes may suit them better now.
  void ForgetIndexes() { reserved_copies_.clear(); }  // A new index may reuse the address of a freed one.

 private:
  // The reservation of a pool.
  struct Held {
    std::string owner;
    std::int64_t turn_began = 0, turn_length = 0;
    Reservation reservation = {};
    std::int64_t reserved_at = 0;
    std::uint64_t reserved_room = 0;  // The ledger's room_version() then.
    bool is_kept = false;             // The ledger keeps its room free.
    QueueIndex queue = kNoQueue;      // Of the owner, as its rank there, when it reserved.
    GangRank rank = {};
    bool is_due = false, is_met = false, is_renewed = false;  // In this plan.
  };

  const Held* HeldBy(const std::string& gang) const;  // Null: it has none.
  Held* HeldBy(const std::string& gang);
  std::int64_t ReservedCopies(const FitIndex& index, const Held& held);  // That this reservation withholds.
  bool WouldFitWithout(const PlannedGang& gang, const std::vector<const Held*>& held);
  std::vector<const Held*> KeptForOthers(const PlannedGang& gang) const;
  bool IsStale(const Held& held, const PlannedGang& gang, std::int64_t now) const;
  void Find(Held& held, const GangToPlace& query, std::int64_t now);
  void Publish();  // Tells the ledger what is kept.
  // A start further away than the longest turn counts as unknown.
  static bool IsStartKnown(const Held& held, std::int64_t now) {
    return held.reservation.start && *held.reservation.start - now <= ReservationTurns::kLongest;
  }

  ClusterLedger& ledger_;
  const std::int64_t reserve_after_;
  std::unordered_map<std::string, std::int64_t> ends_;
  ReservationTurns turns_;
  std::map<PoolIndex, Held> held_;  // kNoPool: of gangs that ask for no GPUs, and without pools of all.
  std::uint64_t ended_ = 0;
  // The ledger's version, and by how many copies a reservation lowered an index at that version.
  std::map<std::pair<const FitIndex*, const Held*>, std::pair<std::uint64_t, std::int64_t>> reserved_copies_;
};

}  // namespace grus
