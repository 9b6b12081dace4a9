// SPDX-License-Identifier: Apache-2.0
// Rounds of gangs and outsiders, drawn by lot, first with the safeguard and then without: with it no gang may be torn
// apart, and without it some must be, or the rounds prove nothing.
#include <algorithm>
#include <cstdio>
#include <random>

#include "bench/gang_round.h"
#include "bench/gang_scenarios.h"
#include "bench/manager_run.h"
#include "clientlib/model/core_v1.h"

namespace bench {
namespace {

using std::chrono::seconds;

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

// Gangs that leave little room over, most of them: only they can be torn apart.
RoundPlan DrawRound(const RaceOptions& options, RaceKind kind, int round, const FreeUnits& free) {
  Lots lots(options.seed * 1'000'003 + static_cast<std::uint64_t>(round));
  RoundPlan plan;
  constexpr int kUnits[] = {1, 2, 2, 4, 4, 8};
  int units = kUnits[lots.Between(0, 5)];
  int room = RoomFor(free, units);
  if (room < 2) room = RoomFor(free, units = 1);
  const int members = lots.Between(1, 4) == 1 ? lots.Between(2, room) : room - lots.Between(0, 1);
  plan.gang = {"gang-" + std::to_string(round), std::max(2, members), units, ResourceOf(kind)};
  const int outsiders = lots.Between(1, 6);
  for (int i = 0; i < outsiders; ++i) plan.outsiders.push_back(DrawOutsider(lots, plan.gang.members));
  // Of one member, of all outsiders, or of more than there are.
  if (kind == RaceKind::kUngated) plan.minimum_of_outsiders = std::max(1, lots.Between(0, 2) * outsiders);
  return plan;
}

// Without nominations the moment before the gates are lifted shows in nothing: the first lift is the nearest.
void DropNominations(RoundPlan& plan) {
  for (Outsider& outsider : plan.outsiders) {
    if (outsider.moment == Moment::kNominated) outsider.moment = Moment::kLifted;
  }
}

std::string Describe(const RoundPlan& plan) {
  std::string text = std::to_string(plan.gang.members) + " members of " + std::to_string(plan.gang.units) + " units";
  if (plan.minimum_of_outsiders > 0) text += "; outsiders of a gang of " + std::to_string(plan.minimum_of_outsiders);
  for (const Outsider& outsider : plan.outsiders) {
    text += "; outsider of " + std::to_string(outsider.units) + " units when " +
            (outsider.nth == 0 ? "none" : std::to_string(outsider.nth)) + " is " + ToString(outsider.moment);
    if (outsider.life) {
      text += ", for " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*outsider.life).count()) +
              " ms";
    }
  }
  return text;
}

kube::Result<FreeUnits> ReadNodes(kube::Client& client, const char* resource) {
  auto nodes = client.List(kube::KindOf<kube::Node>(), "");
  if (!nodes) return std::move(nodes).error();
  FreeUnits free;
  for (const auto& object : nodes->items) {
    const auto& node = static_cast<const kube::Node&>(*object);
    const kube::Quantity* units = kube::FindResource(node.status.allocatable, resource);
    if (units != nullptr) free[node.metadata.name] = static_cast<int>(units->Value());
  }
  return free;
}

struct Tally {
  int of[kEndings] = {};
  int operator[](Ending ending) const { return of[static_cast<int>(ending)]; }
};

void PrintTally(const std::string& name, const Tally& tally) {
  std::printf("%-15s", name.c_str());
  for (int i = 0; i < kEndings; ++i) std::printf(" %s %d,", ToString(static_cast<Ending>(i)), tally.of[i]);
  std::printf("\n");
  std::fflush(stdout);
}

// An outsider is about from the start, so that the manager knows of competition before the first round.
bool CreateResident(const GangWorld& world, RaceKind kind, const std::string& ns, FreeUnits& free) {
  world.observer.Record(ns);
  kube::Status made;
  if (kind == RaceKind::kUngated) {
    made = CreateObject(world.client, kube::KindOf<api::PodGroup>(), ns, MakePodGroup({"others", 1}, 60));
  }
  if (made) {
    made = CreateObject(world.client, kube::KindOf<kube::Pod>(), ns,
                        kind == RaceKind::kUngated ? MakeUngatedMember("resident", "others", 1, ResourceOf(kind))
                                                   : MakeGangPod("resident", "others", 1, false, ResourceOf(kind)));
  }
  if (!made) std::fprintf(stderr, "%s\n", made.error().message().c_str());
  const kube::TimePoint until = world.clock.Now() + seconds(30);
  while (const auto event = made ? world.observer.Next(until) : std::nullopt) {
    if (!event->pod || event->pod->status.phase != "Running") continue;
    --free[std::string(event->pod->spec.node_name)];
    return true;
  }
  return false;
}

bool RunMode(const GangWorld& world, const RaceOptions& options, RaceKind kind, const std::string& nominations,
             Tally& tally) {
  const std::string name = std::string(ToString(kind)) + "-" + nominations;
  if (const kube::Status prepared = PrepareNodes(world, kind); !prepared) {
    std::fprintf(stderr, "%s\n", prepared.error().message().c_str());
    return false;
  }
  BenchNamespace ns(world, "race-" + name), resident(world, "resident-" + name);
  auto free = ReadNodes(world.client, ResourceOf(kind));
  if (!ns.Exists() || !resident.Exists() || !free || !CreateResident(world, kind, resident.name(), *free)) return false;
  ManagerRun manager(world.manager, world.ManagerArguments("gang", nominations),
                     "build/gang-bench-race-" + name + ".log", world.clock);
  if (!manager.WaitUntilReady(world.clock.Now() + seconds(30))) return false;
  for (int round = 0; round < options.rounds; ++round) {
    RoundPlan plan = DrawRound(options, kind, round, *free);
    if (nominations == "never") DropNominations(plan);
    const RoundReport report = PlayRound(world, ns.name(), plan, *free);
    ++tally.of[static_cast<int>(report.ending)];
    const bool is_good = report.ending == Ending::kWhole || report.ending == Ending::kWaiting;
    if (!is_good || options.is_verbose) {
      std::printf("%s, seed %llu, round %d: %s: %s\n  %s\n", name.c_str(),
                  static_cast<unsigned long long>(options.seed), round, ToString(report.ending), report.detail.c_str(),
                  Describe(plan).c_str());
      for (const std::string& line : report.history) std::printf("    %s\n", line.c_str());
    }
    if ((round + 1) % 50 == 0 || round + 1 == options.rounds) PrintTally(name, tally);
    std::fflush(stdout);
    if (report.ending == Ending::kBroken || !manager.IsRunning()) {
      std::fprintf(stderr, "round %d: the bench cannot go on: %s\n", round, report.detail.c_str());
      return false;
    }
  }
  return true;
}

bool RunKind(const GangWorld& world, const RaceOptions& options, RaceKind kind) {
  Tally held, open;
  const bool plays_held = options.only != "never", plays_open = options.only != "auto";
  bool is_ok = true;
  if (plays_held) is_ok = RunMode(world, options, kind, "auto", held);
  if (plays_open) is_ok = RunMode(world, options, kind, "never", open) && is_ok;
  std::printf("\n%d rounds of a gang and 1 to 6 outsiders that come while it starts, kind %s, seed %llu\n",
              options.rounds, ToString(kind), static_cast<unsigned long long>(options.seed));
  if (plays_held) {
    PrintRow("partial gangs, nominations auto", held[Ending::kPartial], "", 0);
    PrintRow("stranded, stuck or with a wrong status, nominations auto",
             held[Ending::kStranded] + held[Ending::kStuck] + held[Ending::kWrongStatus], "", 0);
  }
  if (plays_open) {
    std::printf("%-58s %9d %-8s at least %6d    %s\n", "partial gangs, nominations never", open[Ending::kPartial], "",
                1, open[Ending::kPartial] > 0 ? "met" : "NOT MET");
  }
  return is_ok;
}

}  // namespace

bool RunRaces(const GangWorld& world, const RaceOptions& options) {
  bool is_ok = true;
  for (const RaceKind kind : options.kinds) is_ok = RunKind(world, options, kind) && is_ok;
  return is_ok;
}

}  // namespace bench
