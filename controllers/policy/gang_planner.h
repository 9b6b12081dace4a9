// SPDX-License-Identifier: Apache-2.0
// Which waiting gangs may start now, and on which nodes.
//
// A gang holds nothing while it waits, so gangs that fit one at a time run one after another. Order: priority, then
// time of waiting, of which each GPU second takes one that the gang has had before. A gang that does not fit lets later
// ones pass until it has waited `reserve_after`. Then the first such gang of each pool gets a reservation: others may
// take only room that it does not need, or its room if they end before it could start. If nobody knows when it could
// start, its turn ends (ReservationTurns): a gang that cannot be placed keeps little room idle, and one that only waits
// for others to end still starts. What the planner places is a place in the ledger (owner: the gang's key) until the
// pod is bound or the place is dropped.
//
// Pure data structure: no I/O, clock or lock; the owner serialises access and passes the time in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controllers/policy/cluster_queues.h"

namespace grus {

// The pods of a gang that have no place yet.
struct GangDemand {
  std::string key;  // "namespace/name".
  int priority = 0;
  std::int64_t waiting_since = 0;  // Unix seconds.
  int needed = 0;                  // Place at least so many members, or none. 0: any number helps.
  std::vector<ShapePtr> members;   // In the order in which they are to start; equal shapes share a pointer.
  std::set<std::string> avoid;     // Nodes that the scheduler refused although they looked free.
  // The member whose place goes to another owner than `key`.
  struct Companion {
    int member = -1;
    std::string owner;
    friend bool operator==(const Companion&, const Companion&) = default;
  };
  Companion companion = {};                     // -1: none.
  std::optional<std::int64_t> runtime_seconds;  // How long it will run, declared or measured.
  friend bool operator==(const GangDemand&, const GangDemand&) = default;
};

// Who holds accelerators of the kind that a waiting gang lacks.
struct DeviceUse {
  std::string owner;  // A gang or job, "namespace/name"; empty: pods that belong to neither.
  std::int64_t devices = 0;
  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

struct GangStanding {
  bool is_placed = false;  // The places are in the ledger; the gang waits no longer.
  int placed = 0;          // How many of the first members have places, if is_placed.
  // Of a gang that waits:
  int position = 0;                 // In its queue, from 1; 0: no queue may start it.
  int fitting = 0;                  // How many of the needed members there is room for now.
  bool can_never_fit = false;       // Certainly not into these nodes, even if they were empty.
  std::vector<std::string> closed;  // Then: nodes with which it might, but they are not ready, or cordoned.
  bool is_hopeless() const { return can_never_fit && closed.empty(); }
  int capacity = 0;     // How many of the members an empty cluster could hold, at most members.size().
  std::string lacking;  // The resource of which most is missing, "nvidia.com/gpu"; empty: constraints.
  std::int64_t lacking_free = 0, lacking_total = 0;  // Of that resource, on nodes that its members may use; reserved
                                                     // room is free room.
  int eligible_nodes = 0;                            // Nodes that its members may use, were they empty.
  std::vector<DeviceUse> uses;                       // Of such devices on these nodes, the largest three.
  std::string queue_refusal;                         // Why its queue does not let it start; empty: it does.
  std::optional<YieldAnswer> yields;                 // nullopt: nobody was asked to yield to it.
  bool has_reservation = false;
  std::string blocked_by;  // There is room, but it is reserved for this gang.
  // Unix seconds: its namespace has used its turn, and reserves nothing until then.
  std::optional<std::int64_t> reserves_from;
  // Unix seconds; of the gang with the reservation, if all that it waits for said how long it runs.
  std::optional<std::int64_t> expected_start;
  friend bool operator==(const GangStanding&, const GangStanding&) = default;
};

class ReservationKeeper;

class GangPlanner {
 public:
  // `queues`: over the same ledger. Null: none.
  explicit GangPlanner(ClusterLedger& ledger, std::int64_t reserve_after_seconds = 15, ClusterQueues* queues = nullptr);
  ~GangPlanner();

  // Adds or changes a demand; an unchanged one costs nothing. A placed gang waits again once its demand changes: for
  // what is left to place, beside its places.
  void Put(GangDemand demand);
  void Rerank(const std::string& key);  // Call it when what the queues know of this holder has changed.
  void Remove(const std::string& key);  // It waits no longer; its places stay.
  // When a gang in the ledger is expected to end, in Unix seconds, for backfill and expected starts; nullopt: not
  // known, or it has ended. For a gang that it places, the planner sets this itself from the runtime.
  void SetEnd(const std::string& key, std::optional<std::int64_t> at);

  // Places what fits, in order. Returns the keys of gangs whose standing changed. Cheap if nothing changed since the
  // last pass.
  std::vector<std::string> Plan(std::int64_t now);
  std::uint64_t passes() const;  // That were needed: those in which Plan() decided anew.
  // Null: it never waited, or was removed.
  const GangStanding* StandingOf(const std::string& key) const;
  std::size_t waiting() const;
  std::vector<WaitingDemand> Waiting() const;  // All that wait, in the order of the last plan.
  // The owners whose notice to yield has changed since this was last called.
  std::vector<std::string> TakeToldToYield();
  const ReservationKeeper& reservations() const;
  // When Plan() should run for this gang even if nothing changes: it may get a reservation then, or its reservation's
  // start or turn is due. nullopt: never.
  std::optional<std::int64_t> next_change(const std::string& key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grus
