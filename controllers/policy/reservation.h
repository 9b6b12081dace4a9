// SPDX-License-Identifier: Apache-2.0
// Where a gang that waits can start soonest, and when; and for how long it may keep room for that.
//
// It looks at what is free now and at what ends at a known time. If that is not enough, the rest ends at an unknown
// time: then the nodes with the most room are picked, which only get emptier while nobody else may enter them.
// Constraints between pods are looked at only so far: pods that keep each other off a node need one each.
//
// Pure functions and a value.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/policy/placement.h"

namespace grus {

struct Reservation {
  std::map<NodeId, Resources> nodes;  // What the gang needs on each.
  std::optional<std::int64_t> start;  // Unix seconds; nullopt: something that must end first did not say when.
};

// For the first gang.needed members, were there no other reservation. Without nodes: they would not fit even then.
// `ends`: by OwnerId, when it is expected to end; 0: unknown.
Reservation FindReservation(const ClusterLedger& ledger, const GangToPlace& gang, const std::vector<std::int64_t>& ends,
                            std::int64_t now);

// How many pods of the shape one node can take, by the shape's own ports and anti-affinity.
int MostOnOneNode(const PodShape& shape);

// For how long a gang may keep room when nobody knows when it can start.
//
// A turn lasts ten minutes. Then gangs of its namespace reserve nothing for as long, and the next turn of that gang is
// twice as long, a day at most; until the gang has started, or its last turn is as long ago as it lasted. Times are
// Unix seconds; gangs go by their keys in the ledger.
class ReservationTurns {
 public:
  static constexpr std::int64_t kFirst = 600, kLongest = 24 * 3600;

  // How long the next turn of the gang lasts.
  std::int64_t LengthFor(std::string_view gang, std::int64_t now) const;
  // From when on gangs of its namespace may reserve; 0: at any time.
  std::int64_t ReservesFrom(std::string_view gang, std::int64_t now) const { return LastOf(gang, now).reserves_from; }
  void End(const std::string& gang, std::int64_t length, std::int64_t now);
  void Started(std::string_view gang);

 private:
  // The last of a namespace that ended.
  struct Turn {
    std::string gang;
    std::int64_t length = 0, reserves_from = 0;
    bool IsForgotten(std::int64_t now) const { return now >= reserves_from + length; }
  };
  const Turn& LastOf(std::string_view gang, std::int64_t now) const;

  std::map<std::string, Turn, std::less<>> turns_;  // By namespace.
};

}  // namespace grus
