// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/wait_invariants.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "controllers/elastic/elastic_view.h"
#include "crds/types/pod_group.h"
#include "tests/campaign/elastic_invariants.h"
#include "tests/campaign/elastic_workload.h"
#include "tests/campaign/gang_invariants.h"

namespace grus::testing {
namespace {

using kube::testing::ConditionOf;
using kube::testing::HasEnded;
using kube::testing::IntAt;
using kube::testing::Invariant;
using kube::testing::IsBeingDeleted;
using kube::testing::ServerChange;

constexpr char kKept[] = "what becomes free is kept from other gangs and jobs", kKeptAgain[] = "jobs again at ";
// A status may be that old where only its sentence is another one, and few objects wait.
constexpr kube::Duration kSentenceMayTake = std::chrono::seconds(35);

// By what it is about.
using Complaints = std::map<std::string, std::string>;

// A gang or a job that waits for room, and what it is told.
struct Waiter {
  kube::ObjectKey key;
  const Json* object = nullptr;
  bool is_job = false;
  std::string message;
};

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::vector<Waiter> WaitersOf(const World& world) {
  std::vector<Waiter> waiters;
  for (const char* resource : {kGroups, kJobs}) {
    for (const auto& [key, object] : world.All(resource)) {
      const Json* ready = ConditionOf(*object, "Ready");
      if (ready == nullptr || IsBeingDeleted(*object) || Text(*ready, {"status"}) != "False") continue;
      const std::string reason = Text(*ready, {"reason"});
      if (reason != "WaitingForRoom" && reason != "WaitingForQueue" && reason != "CannotFit" &&
          reason != "WaitingForMembers" && reason != "WaitingForQuota" && reason != "BackingOff") {
        continue;
      }
      waiters.push_back({key, object.get(), resource == kJobs, Text(*ready, {"message"})});
    }
  }
  return waiters;
}

std::string OwnerOfPod(const Json& pod) {
  const std::string job = Text(pod, {"metadata", "labels", kJobNameLabel}), group = GroupOf(pod);
  return job.empty() ? group : job;
}

bool IsNominated(const Json& pod) { return !Text(pod, {"status", "nominatedNodeName"}).empty(); }

// Holds GPUs, or is about to; `name` is "namespace/name", or "other pods of namespace N".
bool HoldsSomething(const World& world, const std::string& name) {
  constexpr std::string_view kOthers = "other pods of namespace ";
  for (const auto& [key, pod] : world.All(kPods)) {
    if (HasEnded(*pod)) continue;
    const std::string owner = OwnerOfPod(*pod);
    const bool is_its = name.starts_with(kOthers) ? owner.empty() && key.ns == name.substr(kOthers.size())
                                                  : key.ns + "/" + owner == name;
    if (is_its && (IsBound(*pod) || !IsGated(*pod) || IsNominated(*pod))) return true;
  }
  return false;
}

bool IsThere(const World& world, const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return false;
  const kube::ObjectKey key{name.substr(0, slash), name.substr(slash + 1)};
  return world.Get(kGroups, key) != nullptr || world.Get(kJobs, key) != nullptr;
}

// What stands after each occurrence of `before`, up to a comma or semicolon.
std::vector<std::string> NamesAfter(const std::string& text, std::string_view before) {
  std::vector<std::string> names;
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    names.push_back(text.substr(at, text.find_first_of(",;", at) - at));
  }
  return names;
}

// The last of the times in it.
std::optional<kube::Time> TimeIn(const std::string& text) {
  std::optional<kube::Time> last;
  for (const std::string& word : NamesAfter(text, " at ")) {
    if (const auto time = kube::ParseTime(word)) last = std::max(last.value_or(*time), *time);
  }
  return last;
}

// Names things that somebody can do, or that are about to happen by themselves.
bool NamesWhatEndsIt(const std::string& message) {
  for (const std::string_view part :
       {" are held", "reserved for ", "lower ", "add nodes", "check its resources", "leave no place for the rest",
        " must be created", "quota", "waits for its volume", "waiting for the API server to say",
        "the workers fit, but the launcher does not fit beside them", "the API server would refuse them now"}) {
    if (Has(message, part)) return true;
  }
  return TimeIn(message).has_value();
}

std::string WrongWords(const World& world, const std::string& message) {
  if (!NamesWhatEndsIt(message)) return "names nobody who could end its wait: " + message;
  const std::size_t held = message.find(" are held");
  if (held != std::string::npos) {
    for (const std::string& name : NamesAfter(message.substr(held, message.find(';', held) - held), " by ")) {
      if (!HoldsSomething(world, name) && !IsThere(world, name)) return "names " + name + " who holds nothing";
    }
  }
  for (const std::string& name : NamesAfter(message, "reserved for ")) {
    if (!IsThere(world, name)) return "names " + name + " who is not there";
  }
  const std::optional<kube::Time> time = TimeIn(message);
  if (time && time->value < world.simulation.WallNow()) return "names a time that is over: " + message;
  return {};
}

Complaints WrongWaits(const World& world) {
  Complaints wrong;
  for (const Waiter& waiter : WaitersOf(world)) {
    const std::string what = WrongWords(world, waiter.message);
    if (!what.empty()) wrong[waiter.key.ToString() + " " + Text(*waiter.object, {"metadata", "uid"})] = what;
  }
  return wrong;
}

int GpusOf(const Json& pod) {
  int gpus = 0;
  for (const Json& container : kube::testing::ItemsAt(pod, {"spec", "containers"})) {
    const std::string text = Text(container, {"resources", "limits", "nvidia.com/gpu"});
    gpus += text.empty() ? 0 : std::stoi(text);
  }
  return gpus;
}

// Free GPUs by node, of nodes that take pods. Pods that the scheduler may bind at any time count where they are
// nominated; those that could go anywhere are `undecided`.
struct FreeGpus {
  std::map<std::string, int> by_node;
  int undecided = 0;
};

FreeGpus FreeOf(const World& world, const std::string& but_for) {
  FreeGpus free;
  for (const auto& [key, node] : world.All("nodes")) {
    const Json* ready = ConditionOf(*node, "Ready");
    const Json* cordon = node->At({"spec", "unschedulable"});
    const bool is_cordoned = cordon && cordon->AsBool() && *cordon->AsBool();
    const bool is_open = ready && Text(*ready, {"status"}) == "True" && !is_cordoned &&
                         kube::testing::ItemsAt(*node, {"spec", "taints"}).empty();
    const std::string gpus = Text(*node, {"status", "allocatable", "nvidia.com/gpu"});
    if (is_open) free.by_node[key.name] = gpus.empty() ? 0 : std::stoi(gpus);
  }
  for (const auto& [key, pod] : world.All(kPods)) {
    if (HasEnded(*pod)) continue;
    std::string node = Text(*pod, {"spec", "nodeName"});
    if (node.empty()) {
      if (key.ns + "/" + OwnerOfPod(*pod) == but_for) continue;
      node = Text(*pod, {"status", "nominatedNodeName"});
      if (node.empty() && IsGated(*pod)) continue;
    }
    if (node.empty()) free.undecided += GpusOf(*pod);
    else if (const auto it = free.by_node.find(node); it != free.by_node.end()) it->second -= GpusOf(*pod);
  }
  return free;
}

// GPUs of each pod that is to start together; empty: that is not to be seen.
std::vector<int> NeedsOf(const World& world, const Waiter& waiter) {
  std::vector<int> needs;
  if (waiter.is_job) {
    if (waiter.object->At({"spec", "workersSpec", "template"}) != nullptr) return needs;
    const std::int64_t min =
        std::max<std::int64_t>(1, IntAt(*waiter.object, {"spec", "workersSpec", "minReplicas"}, 1));
    const std::int64_t gpus = IntAt(*waiter.object, {"spec", "workersSpec", "gpusPerWorker"}, 1);
    needs.assign(static_cast<std::size_t>(min), static_cast<int>(gpus));
    return needs;
  }
  for (const auto& [key, pod] : world.All(kPods)) {
    if (key.ns != waiter.key.ns || GroupOf(*pod) != waiter.key.name || HasEnded(*pod) || IsBeingDeleted(*pod)) continue;
    if (!IsGated(*pod) || pod->At({"spec", "nodeSelector"}) || pod->At({"spec", "affinity"}) || GpusOf(*pod) == 0)
      return {};
    needs.push_back(GpusOf(*pod));
  }
  const auto min = static_cast<std::size_t>(std::max<std::int64_t>(1, IntAt(*waiter.object, {"spec", "minMember"}, 1)));
  if (needs.size() < min) return {};
  std::sort(needs.begin(), needs.end());
  needs.resize(min);
  return needs;
}

// For how many there is room, the largest first.
int Placed(std::vector<int> needs, FreeGpus free) {
  std::sort(needs.rbegin(), needs.rend());
  int placed = 0;
  for (const int gpus : needs) {
    const auto node = std::find_if(free.by_node.begin(), free.by_node.end(),
                                   [gpus](const auto& entry) { return entry.second >= gpus; });
    if (node == free.by_node.end()) continue;
    node->second -= gpus;
    ++placed;
  }
  return placed;
}

// Those that are told of a reservation, a quota or a next try wait for that.
Complaints IdleRoom(const World& world) {
  Complaints wrong;
  for (const Waiter& waiter : WaitersOf(world)) {
    const bool waits_for_more =
        Has(waiter.message, "reserved for ") || Has(waiter.message, "quota") ||
        Has(waiter.message, "the API server would refuse them now") ||
        Has(waiter.message, "the launcher: the workers fit, but the launcher does not fit beside them") ||
        Has(waiter.message, "as the API server makes it") || TimeIn(waiter.message);
    if (waits_for_more) continue;
    const std::vector<int> needs = NeedsOf(world, waiter);
    const FreeGpus free = FreeOf(world, waiter.key.ToString());
    if (needs.empty() || free.undecided > 0 || Placed(needs, free) < static_cast<int>(needs.size())) continue;
    wrong[waiter.key.ToString() + " " + Text(*waiter.object, {"metadata", "uid"})] =
        "waits while the GPUs that it needs are free: " + waiter.message;
  }
  return wrong;
}

Invariant NotForLong(Complaints (*look)(const World&), kube::Duration slack) {
  return [look, patience = Patience(slack), has_jumped = false](const World& world, const ServerChange&) mutable {
    using kube::testing::Simulation;
    const auto wall = world.simulation.WallNow() - Simulation::kWallStart;
    const auto steady = world.simulation.Now() - Simulation::kStart;
    has_jumped |= std::chrono::abs(wall - steady) > std::chrono::minutes(1);
    // Times that were said before the clock jumped are over at once, or never.
    return patience.Check(world.simulation.Now(), has_jumped ? Complaints() : look(world));
  };
}

bool IsBind(const ServerChange& change) {
  return change.resource == kPods && change.after && IsBound(*change.after) &&
         !(change.before && IsBound(*change.before));
}

// What was free before the pod of `change` was bound, if it was not there.
FreeGpus Before(FreeGpus free, const Json& bound) {
  const auto node = free.by_node.find(Text(bound, {"spec", "nodeName"}));
  if (node != free.by_node.end()) node->second += GpusOf(bound);
  return free;
}

// By UID of the gang that is told so: since when, and what was taken from it. What was decided before it was told, and
// what it is told after its turn is over, do not count.
class KeptRoom {
 public:
  explicit KeptRoom(kube::Duration slack) : slack_(slack) {}

  std::string operator()(const World& world, const ServerChange& change) {
    const kube::TimePoint now = world.simulation.Now();
    std::map<std::string, Kept> told;
    std::string broken;
    for (const Waiter& waiter : WaitersOf(world)) {
      if (waiter.is_job || !Has(waiter.message, kKept) || Has(waiter.message, kKeptAgain)) continue;
      const std::string uid = Text(*waiter.object, {"metadata", "uid"});
      const auto before = told_.find(uid);
      Kept kept = before == told_.end() ? Kept{now, std::nullopt, {}} : before->second;
      if (kept.lost && now - *kept.lost > slack_ + kSentenceMayTake) broken = kept.what;
      if (!kept.lost && now - kept.since > slack_ && IsBind(change) && IsTaken(world, waiter, *change.after)) {
        kept.lost = now;
        kept.what = waiter.key.ToString() + " is told that room is kept for it, which " +
                    Text(*change.after, {"metadata", "name"}) + " got";
      }
      told.emplace(uid, std::move(kept));
    }
    told_ = std::move(told);
    if (IsBind(change)) has_run_.insert(Text(*change.after, {"metadata", "name"}));
    return broken;
  }

 private:
  struct Kept {
    kube::TimePoint since;
    std::optional<kube::TimePoint> lost;
    std::string what;
  };

  // By a pod of another gang or job, that is not made again in place of one that ran.
  bool IsTaken(const World& world, const Waiter& waiter, const Json& bound) const {
    const std::string owner = OwnerOfPod(bound);
    if (owner.empty() || owner == waiter.key.name || GpusOf(bound) == 0) return false;
    if (has_run_.contains(Text(bound, {"metadata", "name"})) || IntAt(bound, {"spec", "priority"}) > 0) return false;
    const std::vector<int> needs = NeedsOf(world, waiter);
    const FreeGpus now = FreeOf(world, waiter.key.ToString());
    return !needs.empty() && Placed(needs, now) < Placed(needs, Before(now, bound));
  }

  kube::Duration slack_;
  std::map<std::string, Kept> told_;
  std::set<std::string> has_run_;
};

}  // namespace

std::vector<Invariant> WaitInvariants(kube::Duration slack) {
  return {NotForLong(WrongWaits, slack + kSentenceMayTake), NotForLong(IdleRoom, slack + kSentenceMayTake),
          KeptRoom(slack)};
}

}  // namespace grus::testing
