// SPDX-License-Identifier: Apache-2.0
// Where a waiting gang can start soonest, and when; and for how long it may keep room for that.
//
// FindReservation() counts what is free now and what ends at a known time; what is kept for others is neither. If that
// is not enough, nobody knows when the rest ends: it picks the nodes with the most free devices, which only get emptier
// while others may not enter them. Of the constraints between pods it knows one: pods that keep each other off a node
// need one node each.
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
  ReservedRoom nodes;                 // What the gang needs on each.
  std::optional<std::int64_t> start;  // Unix seconds; nullopt: something that must end first did not say when.
};

// For the first gang.needed members, beside what is reserved but for gang.may_use. Without nodes: they do not fit even
// when all others have ended. `ends`: the expected end by OwnerId; 0: unknown.
Reservation FindReservation(const ClusterLedger& ledger, const GangToPlace& gang, const std::vector<std::int64_t>& ends,
                            std::int64_t now);

// How many pods of the shape one node can take, by the shape's own ports and anti-affinity.
int MostOnOneNode(const PodShape& shape);

// For how long a gang may keep room when nobody knows when it can start.
//
// A turn lasts ten minutes. Then gangs of its namespace reserve nothing for as long, and the next turn of that gang is
// twice as long, a day at most. A turn is forgotten when its gang has started, when another gang of the namespace has
// ended a turn, or when twice its length has passed since its end. Times are Unix seconds; gangs go by their keys in
// the ledger.
class ReservationTurns {
 public:
  static constexpr std::int64_t kFirst = 600, kLongest = 24 * 3600;

  // How long the next turn of the gang lasts.
  std::int64_t LengthFor(std::string_view gang, std::int64_t now) const;
  // When gangs of its namespace may reserve again; 0: at any time.
  std::int64_t ReservesFrom(std::string_view gang, std::int64_t now) const { return LastOf(gang, now).reserves_from; }
  void End(const std::string& gang, std::int64_t length, std::int64_t now);
  void Started(std::string_view gang);

 private:
  // The last ended turn of a namespace.
  struct Turn {
    std::string gang;
    std::int64_t length = 0, reserves_from = 0;
    bool IsForgotten(std::int64_t now) const { return now >= reserves_from + length; }
  };
  const Turn& LastOf(std::string_view gang, std::int64_t now) const;

  std::map<std::string, Turn, std::less<>> turns_;  // By namespace.
};

}  // namespace grus
