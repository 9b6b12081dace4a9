// SPDX-License-Identifier: Apache-2.0
// Finds a waiting gang its places: by what its queue may use, in each of its pools, beside what is kept for others.
// Part of gang_planner.
#pragma once

#include "controllers/policy/cluster_queues.h"
#include "controllers/policy/planned_gang.h"
#include "controllers/policy/reservation_keeper.h"

namespace grus {

class GangPlacer {
 public:
  GangPlacer(ClusterLedger& ledger, ClusterQueues& queues, ReservationKeeper& reservation)
      : ledger_(ledger), queues_(queues), reservation_(reservation) {}

  // In the first of its pools where its queue lets it start and there is room. It may use what is kept for it and, if
  // it ends in time, what is kept for others; its own reservation ends. `gang.at` says which pool it was; else the one
  // that it has most right to.
  bool Place(PlannedGang& gang, std::int64_t now);

  // What is idle of the room that is kept counts as used by the queue of the gang for which it is: else gangs that wait
  // behind it would take as much elsewhere, and those of other queues would come before it. After each change of what
  // is kept.
  void ChargeReservations();

 private:
  bool InAnyPool(PlannedGang& gang, std::int64_t now);
  bool InPool(PlannedGang& gang, std::int64_t now);
  bool Search(PlannedGang& gang, GangToPlace& query, std::int64_t now);

  ClusterLedger& ledger_;
  ClusterQueues& queues_;
  ReservationKeeper& reservation_;
};

}  // namespace grus
