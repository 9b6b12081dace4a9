// SPDX-License-Identifier: Apache-2.0
// One round of the race: a gang starts, and outsiders come at moments of that start.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/gang_objects.h"

namespace bench {

// When the n-th member of the gang came so far.
enum class Moment { kCreated, kNominated, kLifted, kBound };
inline constexpr int kMoments = 4;
const char* ToString(Moment moment);

// A pod beside the gang that asks for the same resource.
struct Outsider {
  Moment moment = Moment::kCreated;
  int nth = 0;  // 0: before the gang is created.
  int units = 1;
  std::optional<kube::Duration> life = {};  // From when it runs; nullopt: to the end of the round.
};

struct RoundPlan {
  GangSize gang;
  std::vector<Outsider> outsiders;
  // Of the gang that the outsiders belong to, whose pods have no gate; 0: they belong to none.
  int minimum_of_outsiders = 0;
};

enum class Ending {
  kWhole,     // All members run.
  kWaiting,   // Nothing of it is bound, and it says why.
  kPartial,   // Some, but not all, were bound for 3 s, or it was rolled back.
  kStranded,  // Its gates are lifted, and for 3 s nothing of it was bound: it holds nothing, but does not wait either.
  kStuck,     // It waits though it fits, or nothing is decided in time.
  kWrongStatus,  // It runs whole, and its PodGroup does not say so.
  kBroken,       // The bench itself could not go on.
};
inline constexpr int kEndings = 7;
const char* ToString(Ending ending);

struct RoundReport {
  Ending ending = Ending::kBroken;
  std::string detail;
  std::vector<std::string> history;
};

using FreeUnits = std::map<std::string, int>;  // By node.
// How many pods of so many units each fit.
int RoomFor(const FreeUnits& free, int units);

// The namespace is empty before and after. `free`: on the nodes, but for what the round itself takes.
RoundReport PlayRound(const GangWorld& world, const std::string& ns, const RoundPlan& plan, const FreeUnits& free);

}  // namespace bench
