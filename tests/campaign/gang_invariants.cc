// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_invariants.h"

#include <algorithm>
#include <map>

#include "crds/types/pod_group.h"

namespace grus::testing {
namespace {

using kube::testing::Invariant;
using kube::testing::IntAt;
using kube::testing::IsBeingDeleted;
using kube::testing::ServerChange;

constexpr char kPods[] = "pods";
constexpr kube::Duration kDefaultTimeout = std::chrono::seconds(60);

bool IsBound(const Json& pod) { return !Text(pod, {"spec", "nodeName"}).empty(); }

struct Members {
  int existing = 0, bound = 0;  // Ended ones count if they succeeded.
  bool has_unfinished = false;
};
Members Count(const World& world, const kube::ObjectKey& group) {
  Members members;
  for (const auto& [key, pod] : world.All(kPods)) {
    if (key.ns != group.ns || GroupOf(*pod) != group.name || IsBeingDeleted(*pod)) continue;
    const std::string phase = Text(*pod, {"status", "phase"});
    if (phase == "Failed") continue;
    ++members.existing;
    members.bound += IsBound(*pod);
    members.has_unfinished |= phase != "Succeeded";
  }
  return members;
}

bool IsInPart(const Json& group, const Members& members) {
  return members.bound > 0 && members.has_unfinished && members.bound < IntAt(group, {"spec", "minMember"}, 1);
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
        const std::int64_t seconds = IntAt(*group, {"spec", "scheduleTimeoutSeconds"});
        const kube::Duration timeout = seconds > 0 ? std::chrono::seconds(seconds) : kDefaultTimeout;
        if (now - begun->second > timeout + slack) {
          broken = key.ToString() + " is on nodes below its minimum for " + Seconds(now - begun->second);
        }
      }
      if (!IsInPart(*group, members)) since.erase(uid);
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
    if (clock.HasJumped(world) || change.resource != kGroups || !change.before || !change.after) return std::string();
    const auto attempts = [](const Json& group) { return IntAt(group, {"status", "attempts"}); };
    if (attempts(*change.after) <= attempts(*change.before)) return std::string();
    return Text(*change.after, {"metadata", "name"}) + " is rolled back";
  };
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
  std::vector<Invariant> invariants{NoGpuTwice, WholeInTime(rules.slack), NoGateTooEarly(rules.slack)};
  if (!rules.may_roll_back) invariants.push_back(NoRollBack());
  if (rules.most_members > 0) invariants.push_back(NoMoreMembersThan(rules.most_members));
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
