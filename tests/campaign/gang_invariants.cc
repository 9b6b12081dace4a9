// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_invariants.h"

#include <algorithm>
#include <map>
#include <set>

#include "crds/types/pod_group.h"
#include "tests/campaign/part_agents.h"
#include "tests/campaign/wait_invariants.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;
using kube::testing::Invariant;
using kube::testing::IsBeingDeleted;
using kube::testing::ServerChange;

constexpr char kPods[] = "pods";
constexpr kube::Duration kDefaultTimeout = std::chrono::seconds(60);

struct Members {
  int existing = 0, bound = 0;
  bool has_unfinished = false;
};

std::string OwnerUidOf(const Json& pod) {
  const Json* owner = kube::testing::ControllerOf(pod);
  return owner ? Text(*owner, {"uid"}) : "";
}

// Those that have ended count if they succeeded and nobody, or an owner of what has not ended, made them: what other
// Jobs left is of earlier runs.
Members Count(const World& world, const kube::ObjectKey& group) {
  std::vector<const Json*> unfinished, succeeded;
  std::set<std::string> owners{""};
  for (const auto& [key, pod] : world.All(kPods)) {
    if (key.ns != group.ns || GroupOf(*pod) != group.name || IsBeingDeleted(*pod)) continue;
    const std::string phase = Text(*pod, {"status", "phase"});
    if (phase == "Failed") continue;
    (phase == "Succeeded" ? succeeded : unfinished).push_back(pod.get());
    if (phase != "Succeeded") owners.insert(OwnerUidOf(*pod));
  }
  Members members;
  members.has_unfinished = !unfinished.empty();
  std::erase_if(succeeded, [&](const Json* pod) { return !owners.contains(OwnerUidOf(*pod)); });
  for (const auto& pods : {unfinished, succeeded}) {
    members.existing += static_cast<int>(pods.size());
    members.bound +=
        static_cast<int>(std::count_if(pods.begin(), pods.end(), [](const Json* p) { return IsBound(*p); }));
  }
  return members;
}

kube::Duration TimeoutOf(const Json& group) {
  const std::int64_t seconds = IntAt(group, {"spec", "scheduleTimeoutSeconds"});
  return seconds > 0 ? std::chrono::seconds(seconds) : kDefaultTimeout;
}

std::int64_t AttemptsOf(const Json& group) { return IntAt(group, {"status", "attempts"}); }

bool IsRollBack(const ServerChange& change) {
  return change.resource == kGroups && change.before && change.after &&
         AttemptsOf(*change.after) > AttemptsOf(*change.before);
}

bool IsInPart(const Json& group, const Members& members) {
  return members.bound > 0 && members.has_unfinished && members.bound < IntAt(group, {"spec", "minMember"}, 1);
}

// What is missing is there, and might have a node.
bool CouldBeWhole(const Json& group, const Members& members) {
  return members.existing >= IntAt(group, {"spec", "minMember"}, 1);
}

// Whether the wall clock ever jumped, as far as this was asked: then a gang that starts has had its time at once.
class ClockWatch {
 public:
  bool HasJumped(const World& world) {
    using kube::testing::Simulation;
    const auto wall = world.simulation.WallNow() - Simulation::kWallStart;
    const auto steady = world.simulation.Now() - Simulation::kStart;
    has_jumped_ |= std::chrono::abs(wall - steady) > std::chrono::minutes(1);
    return has_jumped_;
  }

 private:
  bool has_jumped_ = false;
};

std::string Seconds(kube::Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

// By UID of the group: one that is made again starts anew.
Invariant WholeInTime(kube::Duration slack) {
  return [slack, since = std::map<std::string, kube::TimePoint>()](const World& world, const ServerChange&) mutable {
    const kube::TimePoint now = world.simulation.Now();
    std::string broken;
    for (const auto& [key, group] : world.All(kGroups)) {
      const std::string uid = Text(*group, {"metadata", "uid"});
      const Members members = Count(world, key);
      // It was so until this change, if it was.
      if (const auto begun = since.find(uid); begun != since.end()) {
        if (now - begun->second > TimeoutOf(*group) + slack) {
          broken = key.ToString() + " is on nodes below its minimum for " + Seconds(now - begun->second);
        }
      }
      if (!IsInPart(*group, members) || !CouldBeWhole(*group, members)) since.erase(uid);
      else since.try_emplace(uid, now);
    }
    return broken;
  };
}

Invariant NoGateTooEarly(kube::Duration slack) {
  struct Memory {
    std::map<std::string, kube::TimePoint> enough;  // When the minimum existed last.
    std::map<std::string, bool> has_run;            // And has a member on a node since.
  };
  return [slack, memory = Memory()](const World& world, const ServerChange& change) mutable {
    if (change.resource != kPods && change.resource != kGroups) return std::string();
    const kube::TimePoint now = world.simulation.Now();
    for (const auto& [key, group] : world.All(kGroups)) {
      const std::string uid = Text(*group, {"metadata", "uid"});
      const std::int64_t min = IntAt(*group, {"spec", "minMember"}, 1);
      const Members members = Count(world, key);
      if (members.existing >= min) memory.enough[uid] = now;
      if (members.bound >= min) memory.has_run[uid] = true;
      if (members.bound == 0) memory.has_run.erase(uid);
    }
    if (!IsLift(change)) return std::string();
    const std::string name = GroupOf(*change.after);
    const Json* group = world.Get(kGroups, {Text(*change.after, {"metadata", "namespace"}), name});
    if (group == nullptr) return std::string();  // Deleted a moment ago.
    const std::string uid = Text(*group, {"metadata", "uid"});
    const auto enough = memory.enough.find(uid);
    // A member may have gone that the manager still sees.
    const bool was_enough = enough != memory.enough.end() && now - enough->second <= slack;
    if (memory.has_run.contains(uid) || was_enough) return std::string();
    return "the gate of " + Text(*change.after, {"metadata", "name"}) + " is lifted while " + name +
           " has fewer members than its minimum";
  };
}

Invariant NoRollBack() {
  return [clock = ClockWatch()](const World& world, const ServerChange& change) mutable {
    if (clock.HasJumped(world) || !IsRollBack(change)) return std::string();
    return Text(*change.after, {"metadata", "name"}) + " is rolled back";
  };
}

// How long the lift was on its way, of a process that stood still with it in its hand; zero of all others.
kube::Duration DelayOfLift(const World& world, const Json& pod) {
  constexpr kube::Duration kUsual = std::chrono::seconds(5);
  const auto written = kube::ParseTime(Text(pod, {"metadata", "annotations", api::kGangLiftedAnnotation}));
  if (!written) return {};
  const kube::Duration delay = world.simulation.WallNow() - written->value;
  return delay > kUsual ? delay : kube::Duration::zero();
}

// Of a gang that came together: its roll-back ends members that run.
Invariant NoHastyRollBack() {
  return [clock = ClockWatch(), lifted = std::map<std::string, kube::TimePoint>()](const World& world,
                                                                                   const ServerChange& change) mutable {
    const bool has_jumped = clock.HasJumped(world);
    const kube::TimePoint now = world.simulation.Now();
    if (change.resource == kPods && change.after && !IsGated(*change.after)) {
      lifted.try_emplace(Text(*change.after, {"metadata", "uid"}), now - DelayOfLift(world, *change.after));
    }
    if (has_jumped || !IsRollBack(change) || IntAt(*change.before, {"status", "startedMinMember"}) == 0)
      return std::string();
    const std::string name = Text(*change.after, {"metadata", "name"});
    const kube::ObjectKey key{Text(*change.after, {"metadata", "namespace"}), name};
    const Members members = Count(world, key);
    if (IntAt(*change.after, {"status", "startedMinMember"}) > 0 || members.bound == 0)
      return std::string();  // Extras.
    if (!CouldBeWhole(*change.after, members)) return name + " is rolled back while a member is still to be made";
    for (const auto& [pod_key, pod] : world.All(kPods)) {
      if (pod_key.ns != key.ns || GroupOf(*pod) != name || IsBound(*pod) || IsBeingDeleted(*pod)) continue;
      if (IsGated(*pod) && AsksForMilli(*pod)) continue;  // Without a GPU that has room it is not lifted.
      const auto since = lifted.find(Text(*pod, {"metadata", "uid"}));
      // Times in objects are in whole seconds.
      const bool had_time =
          since != lifted.end() && now - since->second > TimeoutOf(*change.after) - std::chrono::seconds(2);
      if (!had_time) return name + " is rolled back before the scheduler had its time for " + pod_key.name;
    }
    return std::string();
  };
}

// Whose pods are members, and which none of the stories makes fail.
std::string NoJobIsCharged(const World&, const ServerChange& change) {
  if (change.resource != "jobs.batch" || !change.after) return {};
  const Json* labels = change.after->At({"spec", "template", "metadata", "labels"});
  const bool is_of_gang = labels && labels->Find(api::kPodGroupLabel) != nullptr;
  const std::int64_t failed = IntAt(*change.after, {"status", "failed"});
  if (!is_of_gang || failed == 0) return {};
  return "Job " + Text(*change.after, {"metadata", "name"}) + " is charged with " + std::to_string(failed) +
         " failures";
}

Invariant NoMoreMembersThan(int most) {
  return [most, made = 0, clock = ClockWatch()](const World& world, const ServerChange& change) mutable {
    const bool has_jumped = clock.HasJumped(world);
    if (change.resource != kPods || change.before || GroupOf(*change.after).empty()) return std::string();
    if (++made <= most || has_jumped) return std::string();
    return std::to_string(made) + " members were made, of " + std::to_string(most) + " in this story";
  };
}

}  // namespace

std::vector<Invariant> GangInvariants(const GangRules& rules) {
  std::vector<Invariant> invariants{NoGpuTwice,        WholeInTime(rules.slack), NoGateTooEarly(rules.slack),
                                    NoHastyRollBack(), NoJobIsCharged,           NoPlanTwice(rules.slack)};
  if (rules.slack < kFaultySlack) {  // What was not heard of in time cannot be kept.
    invariants.push_back(NoPartTwice);
    invariants.push_back(NoMemberIsRefused);
  }
  if (!rules.may_roll_back) invariants.push_back(NoRollBack());
  if (rules.most_members > 0) invariants.push_back(NoMoreMembersThan(rules.most_members));
  for (Invariant& invariant : WaitInvariants(rules.slack)) invariants.push_back(std::move(invariant));
  return invariants;
}

void CheckGangs(const World& world, std::vector<std::string>& complaints) {
  for (const auto& [key, group] : world.All(kGroups)) {
    if (IsInPart(*group, Count(world, key))) complaints.push_back(key.ToString() + " rests on nodes below its minimum");
  }
  for (const auto& [key, pod] : world.All(kPods)) {
    if (GroupOf(*pod).empty() || IsBound(*pod)) continue;
    const bool is_nominated = !Text(*pod, {"status", "nominatedNodeName"}).empty();
    if (!IsGated(*pod)) complaints.push_back("member " + key.name + " is lifted and finds no node");
    else if (is_nominated) complaints.push_back("gated member " + key.name + " holds a node");
  }
}

std::string GroupOf(const Json& pod) { return Text(pod, {"metadata", "labels", api::kPodGroupLabel}); }

bool IsGated(const Json& pod) {
  const auto& gates = kube::testing::ItemsAt(pod, {"spec", "schedulingGates"});
  return std::any_of(gates.begin(), gates.end(),
                     [](const Json& gate) { return Text(gate, {"name"}) == api::kGangGate; });
}

bool IsLift(const ServerChange& change) {
  return change.resource == kPods && change.before && change.after && IsGated(*change.before) &&
         !IsGated(*change.after);
}

}  // namespace grus::testing
