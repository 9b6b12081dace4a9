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
  // Of higher priority than the gang: it finds no node until the scheduler has ended a victim for it.
  bool is_preemptor = false;
  std::string node = {};  // The only one it may run on; empty: any.
};

// A pod of lower priority than the gang, which runs before the round begins.
struct Victim {
  std::string node;
  int units = 1, stop_seconds = 0;
};

enum class GangComes { kAtOnce, kAfterNomination, kAfterVictim };  // Of a preemptor; when the first victim is gone.
inline constexpr int kGangComes = 3;
const char* ToString(GangComes comes);

struct RoundPlan {
  GangSize gang;
  bool is_job = false;  // Its members are those of a Job, otherwise of a StatefulSet.
  GangComes gang_comes = GangComes::kAtOnce;
  std::vector<Victim> victims = {};
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
  // Of the gang's Job, where it has one.
  bool is_rolled_back = false, has_job_failed = false;
  int failed_pods = 0;  // That it counts.
};

using FreeUnits = std::map<std::string, int>;  // By node.
// How many pods of so many units each fit.
int RoomFor(const FreeUnits& free, int units);

// The namespace is empty before and after. `free`: on the nodes, but for what the round itself takes.
RoundReport PlayRound(const GangWorld& world, const std::string& ns, const RoundPlan& plan, const FreeUnits& free);

}  // namespace bench
