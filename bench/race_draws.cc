// SPDX-License-Identifier: Apache-2.0
#include "bench/race_draws.h"

#include <algorithm>
#include <random>

#include "bench/race_objects.h"

namespace bench {
namespace {

constexpr int kLate = -1;  // The moment of a preemptor is still to be drawn.

class Lots {
 public:
  explicit Lots(std::uint64_t seed) : engine_(seed) {}
  int Between(int low, int high) {  // Not uniform_int_distribution: its numbers differ from library to library.
    return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

// Most moments lie between the plan and the last bind: while the last members are created, held and lifted.
Outsider DrawOutsider(Lots& lots, int members) {
  constexpr int kUnits[] = {1, 1, 2, 4, 8};
  const int units = kUnits[lots.Between(0, 4)];
  Outsider outsider;
  switch (lots.Between(0, 7)) {
    case 0: outsider = {.moment = Moment::kCreated, .nth = lots.Between(0, members), .units = units}; break;
    case 1:
    case 2: outsider = {.moment = Moment::kCreated, .nth = members - lots.Between(0, 1), .units = units}; break;
    case 3:
    case 4: outsider = {.moment = Moment::kNominated, .nth = lots.Between(1, members), .units = units}; break;
    case 5:
    case 6: outsider = {.moment = Moment::kLifted, .nth = lots.Between(1, members), .units = units}; break;
    default: outsider = {.moment = Moment::kBound, .nth = lots.Between(1, members), .units = units}; break;
  }
  const auto life = std::chrono::milliseconds(lots.Between(1000, 2000));
  if (lots.Between(1, 10) <= 3) outsider.life = life;
  return outsider;
}

// What the preemptor asks for fits nowhere beside the victims. If it comes late, it fits in the place of any of them,
// and so never needs what the gang has; if it is there before the gang, it may ask for more. There is one victim, on a
// node that the preemptor is bound to, or one on each.
void DrawPreemption(Lots& lots, const FreeUnits& free, RoundPlan& plan) {
  plan.gang_comes = static_cast<GangComes>(std::max(0, lots.Between(-1, kGangComes - 1)));
  const bool is_late = plan.gang_comes == GangComes::kAtOnce && lots.Between(0, 2) > 0;
  Outsider preemptor{.is_preemptor = true};
  if (is_late) preemptor.nth = kLate;
  const int stop_seconds = lots.Between(0, 3);
  if (lots.Between(0, 1) == 0) {
    const auto& [node, units] = *std::next(free.begin(), lots.Between(0, static_cast<int>(free.size()) - 1));
    const int of_victim = lots.Between(units / 2 + 1, units);
    preemptor.units = lots.Between(units - of_victim + 1, is_late ? of_victim : units);
    preemptor.node = node;
    plan.victims.push_back({node, of_victim, stop_seconds});
  } else {
    preemptor.units = lots.Between(4, is_late ? 5 : 7);
    for (const auto& [node, units] : free) plan.victims.push_back({node, lots.Between(5, 6), stop_seconds});
  }
  plan.outsiders.push_back(preemptor);
}

FreeUnits Without(FreeUnits free, const std::vector<Victim>& victims) {
  for (const Victim& victim : victims) free[victim.node] -= victim.units;
  return free;
}

// The moments of late preemptors depend on the gang. Some gangs that come after the preemptor would fit into the room
// it waits for, and nowhere else.
void MixPreemption(Lots& lots, const FreeUnits& free, RoundPlan& plan) {
  if (plan.outsiders.front().nth == kLate) {
    const Outsider drawn = DrawOutsider(lots, plan.gang.members);
    plan.outsiders.front().moment = drawn.moment;
    plan.outsiders.front().nth = drawn.nth;
  } else if (plan.gang_comes != GangComes::kAtOnce && lots.Between(0, 2) == 0) {
    const std::vector<Victim> others(plan.victims.begin() + 1, plan.victims.end());
    plan.gang.members = std::max(2, RoomFor(Without(free, others), plan.gang.units));
  }
  // A member that finds no node may end a victim, or not.
  if (lots.Between(0, 1) == 0) plan.gang.priority_class = kPatientClass;
}

}  // namespace

RoundPlan DrawRound(std::uint64_t seed, RaceKind kind, int round, const FreeUnits& free) {
  Lots lots(seed * 1'000'003 + static_cast<std::uint64_t>(round));
  RoundPlan plan;
  plan.is_job = kind == RaceKind::kJobs;
  if (kind == RaceKind::kPreemptor) DrawPreemption(lots, free, plan);
  const FreeUnits left = Without(free, plan.victims);
  // Gangs that leave little room over, most of them: only they can be torn apart.
  constexpr int kUnits[] = {1, 2, 2, 4, 4, 8};
  int units = kUnits[lots.Between(0, 5)];
  int room = RoomFor(left, units);
  if (room < 2) room = RoomFor(left, units = 1);
  const int members = lots.Between(1, 4) == 1 ? lots.Between(2, room) : room - lots.Between(0, 1);
  plan.gang = {"gang-" + std::to_string(round), std::max(2, members), units, ResourceOf(kind)};
  const int outsiders = lots.Between(1, 6);
  for (int i = 0; i < outsiders; ++i) plan.outsiders.push_back(DrawOutsider(lots, plan.gang.members));
  // Of one member, of all outsiders, or of more than there are.
  if (kind == RaceKind::kUngated) plan.minimum_of_outsiders = std::max(1, lots.Between(0, 2) * outsiders);
  if (kind == RaceKind::kPreemptor) MixPreemption(lots, free, plan);
  return plan;
}

void DropNominations(RoundPlan& plan) {
  for (Outsider& outsider : plan.outsiders) {
    if (outsider.moment == Moment::kNominated) outsider.moment = Moment::kLifted;
  }
}

std::string Describe(const RoundPlan& plan) {
  std::string text = std::to_string(plan.gang.members) + " members of " + std::to_string(plan.gang.units) + " units";
  if (!plan.victims.empty()) text += std::string(", which come ") + ToString(plan.gang_comes);
  if (plan.gang.priority_class == kPatientClass) text += ", which preempt nobody";
  for (const Victim& victim : plan.victims) {
    text += "; victim of " + std::to_string(victim.units) + " units on " + victim.node + ", which takes " +
            std::to_string(victim.stop_seconds) + " s to end";
  }
  if (plan.minimum_of_outsiders > 0) text += "; outsiders of a gang of " + std::to_string(plan.minimum_of_outsiders);
  for (const Outsider& outsider : plan.outsiders) {
    text += std::string(outsider.is_preemptor ? "; preemptor" : "; outsider") + " of " +
            std::to_string(outsider.units) + " units" + (outsider.node.empty() ? "" : " for " + outsider.node) +
            " when " + (outsider.nth == 0 ? "none" : std::to_string(outsider.nth)) + " is " + ToString(outsider.moment);
    if (outsider.life) {
      text += ", for " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*outsider.life).count()) +
              " ms";
    }
  }
  return text;
}

}  // namespace bench
