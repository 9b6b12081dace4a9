// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_invariants.h"

#include <algorithm>
#include <sstream>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"
#include "crds/types/elastic_horovod_job.h"
#include "tests/campaign/elastic_workload.h"
#include "tests/campaign/wait_invariants.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;
using kube::testing::Invariant;
using kube::testing::IsBeingDeleted;
using kube::testing::ItemsAt;
using kube::testing::ServerChange;

// A launcher is never doubled: one Job, and one pod of it that has not ended.
std::string OneLauncher(const World& world, const ServerChange& change) {
  if (change.before || !change.after || !HasRole(*change.after, "launcher")) return {};
  const bool is_pod = change.resource == kPods;
  if (!is_pod && change.resource != kLaunchers) return {};
  std::map<std::string, int> count;
  for (const auto& [key, object] : world.All(change.resource)) {
    const std::string phase = Text(*object, {"status", "phase"});
    if (!HasRole(*object, "launcher") || IsBeingDeleted(*object) || phase == "Succeeded" || phase == "Failed") continue;
    const std::string job = key.ns + "/" + Text(*object, {"metadata", "labels", kJobNameLabel});
    if (++count[job] > 1) return job + " has two launchers in " + std::string(change.resource);
  }
  return {};
}

// A launcher's pod that runs is not deleted while its Job is there, and there to stay.
std::string RunningLauncherStays(const World& world, const ServerChange& change) {
  if (change.resource != kPods || !change.before || !change.after || !HasRole(*change.after, "launcher")) return {};
  if (IsBeingDeleted(*change.before) || !IsBeingDeleted(*change.after) ||
      Text(*change.before, {"status", "phase"}) != "Running")
    return {};
  const Json* owner = kube::testing::ControllerOf(*change.after);
  const Json* ns = world.Get("namespaces", {"", Text(*change.after, {"metadata", "namespace"})});
  if (owner == nullptr || ns == nullptr || IsBeingDeleted(*ns)) return {};
  if (!world.Get("nodes", {"", Text(*change.after, {"spec", "nodeName"})})) return {};
  for (const auto& [key, launcher] : world.All(kLaunchers)) {
    if (Text(*launcher, {"metadata", "uid"}) == Text(*owner, {"uid"}) && !IsBeingDeleted(*launcher)) {
      return "pod " + Text(*change.after, {"metadata", "name"}) + " is deleted while its launcher is there";
    }
  }
  return {};
}

// Workers are granted as the spec allows: none, or from the minimum to the maximum.
std::string GrantsWithinLimits(const World&, const ServerChange& change) {
  if (change.resource != kJobs || !change.after) return {};
  const auto granted = [](const Json& job) { return IntAt(job, {"status", "replicas", "granted"}); };
  if (change.before && granted(*change.before) == granted(*change.after)) return {};  // The workers may leave just now.
  const auto decoded = kube::Decode<api::ElasticHorovodJob>(kube::ToText(*change.after));
  if (!decoded) return {};
  const api::ElasticHorovodJob& job = **decoded;
  const Sizes sizes = SizesOf(job.spec);
  const int count = job.status.replicas.granted;
  // A user may have lowered the limits a moment ago. A job that has ended may keep the workers that it has, and one
  // that is stalled those that were made before the refusal.
  if (count == 0 || job.metadata.generation != job.status.observed_generation || job.status.completion_time ||
      kube::IsConditionTrue(job.status.conditions, "Stalled"))
    return {};
  if (count < sizes.min || count > sizes.max) {
    return job.metadata.name + " is granted " + std::to_string(count) + " workers, of " + std::to_string(sizes.min) +
           " to " + std::to_string(sizes.max);
  }
  return {};
}

// The launcher begins once the minimum of workers runs; for a while after it did, nobody may have seen that it does
// not.
Invariant LauncherWaitsForWorkers() {
  return [last = std::map<std::string, kube::TimePoint>()](const World& world, const ServerChange& change) mutable {
    const bool is_launcher = change.resource == kLaunchers && !change.before && HasRole(*change.after, "launcher");
    if (change.resource != kPods && !is_launcher) return std::string();
    const Json& any = change.after ? *change.after : *change.before;
    const std::string name = Text(any, {"metadata", "labels", kJobNameLabel}),
                      ns = Text(any, {"metadata", "namespace"});
    const Json* job = world.Get(kJobs, {ns, name});
    const std::int64_t min = job ? IntAt(*job, {"spec", "workersSpec", "minReplicas"}) : 0;
    std::int64_t running = 0;
    for (const auto& [key, pod] : world.All(kPods)) {
      running += key.ns == ns && IsOfJob(*pod, name) && HasRole(*pod, "worker") &&
                 Text(*pod, {"status", "phase"}) == "Running";
    }
    const kube::TimePoint now = world.simulation.Now();
    if (running >= min) last[name] = now;
    if (!is_launcher || running >= min) return std::string();
    const auto enough = last.find(name);
    if (enough != last.end() && now - enough->second < std::chrono::minutes(1)) return std::string();
    return name + ": the launcher is made while " + std::to_string(running) + " workers run, of at least " +
           std::to_string(min);
  };
}

// By name: what is wrong with it.
using Complaints = std::map<std::string, std::string>;

bool HasNode(const World& world, const Json& pod) {
  const std::string node = Text(pod, {"spec", "nodeName"});
  return !node.empty() && world.Get("nodes", {"", node}) != nullptr;
}

// Its containers run, whatever else is said of it: its phase follows a moment after their end.
bool IsRunning(const World& world, const Json& pod) {
  const auto& containers = ItemsAt(pod, {"status", "containerStatuses"});
  return Text(pod, {"status", "phase"}) == "Running" && HasNode(world, pod) &&
         std::any_of(containers.begin(), containers.end(), [](const Json& container) {
           return container.At({"state", "running"}) != nullptr;
         });
}

bool HasRunningLauncher(const World& world, const kube::ObjectKey& job) {
  const auto& pods = world.All(kPods);
  return std::any_of(pods.begin(), pods.end(), [&](const auto& entry) {
    return entry.first.ns == job.ns && IsOfJob(*entry.second, job.name) && HasRole(*entry.second, "launcher") &&
           IsRunning(world, *entry.second);
  });
}

// A worker that Horovod can use at that address.
bool IsReachable(const World& world, const kube::ObjectKey& pod, const std::string& address) {
  const Json* worker = world.Get(kPods, pod);
  return worker && IsReady(*worker) && HasNode(world, *worker) && Text(*worker, {"status", "podIP"}) == address;
}

bool SaysTraining(const Json& job) {
  const Json* ready = kube::testing::ConditionOf(job, "Ready");
  return ready && Text(*ready, {"status"}) == "True" && Text(*ready, {"reason"}) == "Training";
}

// Worker pods that the job controls, whatever their labels say, and that hold what they ask for, or wait for it.
int WorkersOf(const World& world, const kube::ObjectKey& job, const std::string& uid, bool without_gates = false) {
  const auto& pods = world.All(kPods);
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [&](const auto& entry) {
    const Json& pod = *entry.second;
    const Json* owner = kube::testing::ControllerOf(pod);
    const bool is_lost = !Text(pod, {"spec", "nodeName"}).empty() && !HasNode(world, pod);
    const Json* gates = pod.At({"spec", "schedulingGates"});
    if (without_gates && gates != nullptr && gates->is_array() && !gates->AsArray()->empty()) return false;
    return entry.first.ns == job.ns && owner && Text(*owner, {"uid"}) == uid && !IsBeingDeleted(pod) &&
           !kube::testing::HasEnded(pod) && !is_lost;
  }));
}

// Jobs whose number of workers is not what they are granted: `is_more` of them, or fewer.
Complaints WrongSizes(const World& world, bool is_more) {
  Complaints wrong;
  for (const auto& [key, job] : world.All(kJobs)) {
    const Json* stalled = kube::testing::ConditionOf(*job, "Stalled");
    if (IsBeingDeleted(*job) || (stalled && Text(*stalled, {"status"}) == "True")) continue;
    const std::int64_t granted = IntAt(*job, {"status", "replicas", "granted"});
    // Those with gates are made before they are granted, for other controllers to decide about.
    const int workers = WorkersOf(world, key, Text(*job, {"metadata", "uid"}), granted == 0);
    if (is_more ? workers <= granted : workers >= granted) continue;
    wrong[key.ToString()] = "has " + std::to_string(workers) + " workers, and is granted " + std::to_string(granted);
  }
  return wrong;
}
Complaints TooManyWorkers(const World& world) { return WrongSizes(world, true); }
Complaints TooFewWorkers(const World& world) { return WrongSizes(world, false); }

// A worker is made only where fewer exist than the job wants.
std::string NoWorkerTooMany(const World& world, const ServerChange& change) {
  if (change.resource != kPods || change.before || !HasRole(*change.after, "worker")) return {};
  const kube::ObjectKey key{Text(*change.after, {"metadata", "namespace"}),
                            Text(*change.after, {"metadata", "labels", kJobNameLabel})};
  const Json* job = world.Get(kJobs, key);
  if (job == nullptr) return {};
  const auto decoded = kube::Decode<api::ElasticHorovodJob>(kube::ToText(*job));
  if (!decoded) return {};
  const int wanted = SizesOf((*decoded)->spec).wanted;
  const int workers = WorkersOf(world, key, (*decoded)->metadata.uid);
  // A user may have lowered the limits a moment ago.
  if (workers <= wanted || (*decoded)->metadata.generation != (*decoded)->status.observed_generation) return {};
  return key.ToString() + " gets " + std::to_string(workers) + " workers, and wants " + std::to_string(wanted);
}

// A job that has ended makes no launcher and no worker any more.
std::string NothingAfterTheEnd(const World& world, const ServerChange& change) {
  const bool is_made = change.after && !change.before;
  if (!is_made || (change.resource != kLaunchers && change.resource != kPods)) return {};
  const kube::ObjectKey key{Text(*change.after, {"metadata", "namespace"}),
                            Text(*change.after, {"metadata", "labels", kJobNameLabel})};
  const Json* job = world.Get(kJobs, key);
  const Json* owner = kube::testing::ControllerOf(*change.after);
  if (!job || !owner || Text(*owner, {"uid"}) != Text(*job, {"metadata", "uid"})) return {};
  const std::string phase = Text(*job, {"status", "phase"});
  if (phase != "Succeeded" && phase != "Failed") return {};
  return key.ToString() + " is " + phase + ", and gets " + Text(*change.after, {"metadata", "name"});
}

// A job that gives workers up deletes those that train only after they have left its host list. (Somebody else who
// deletes a worker leaves the job with fewer than it is granted.)
std::string WorkerLeavesHostsFirst(const World& world, const ServerChange& change) {
  if (change.resource != kPods || !change.before || !HasRole(*change.before, "worker")) return {};
  const bool is_deleted = !change.after || IsBeingDeleted(*change.after);
  if (!is_deleted || IsBeingDeleted(*change.before) || !IsReady(*change.before)) return {};
  const std::string name = Text(*change.before, {"metadata", "name"}),
                    ns = Text(*change.before, {"metadata", "namespace"});
  const kube::ObjectKey job_key{ns, Text(*change.before, {"metadata", "labels", kJobNameLabel})};
  const Json* job = world.Get(kJobs, job_key);
  const Json* hosts = world.Get("configmaps", {ns, job_key.name + "-hosts"});
  if (!job || !hosts || IsBeingDeleted(*job) || !HasNode(world, *change.before) || !HasRunningLauncher(world, job_key))
    return {};
  const int left = WorkersOf(world, job_key, Text(*job, {"metadata", "uid"}));
  const std::int64_t granted = IntAt(*job, {"status", "replicas", "granted"});
  if (granted == 0 || left < granted) return {};
  const auto listed = HostsOf(*hosts);
  const bool is_listed = std::any_of(listed.begin(), listed.end(), [&](const auto& host) {
    return host.first == name && host.second == Text(*change.before, {"status", "podIP"});
  });
  return is_listed ? "worker " + name + " is given up while it is listed as a host" : "";
}

Complaints WrongTrainings(const World& world) {
  Complaints wrong;
  for (const auto& [key, job] : world.All(kJobs)) {
    if (!SaysTraining(*job) || IsBeingDeleted(*job)) continue;
    if (!HasRunningLauncher(world, key)) {
      wrong[key.ToString()] = "says Training, and no launcher runs";
      continue;
    }
    const Json* hosts = world.Get("configmaps", {key.ns, key.name + "-hosts"});
    const auto listed = hosts ? HostsOf(*hosts) : Hosts();
    const auto reachable = std::count_if(listed.begin(), listed.end(), [&](const auto& host) {
      return IsReachable(world, {key.ns, host.first}, host.second);
    });
    const std::int64_t min = IntAt(*job, {"spec", "workersSpec", "minReplicas"}, 1);
    if (reachable >= std::max<std::int64_t>(1, min)) continue;
    wrong[key.ToString()] = "says Training, and " + std::to_string(reachable) +
                            " workers can be reached, of at least " + std::to_string(min);
  }
  return wrong;
}

// A training that prints nothing may hang.
Complaints SilentTrainings(const World& world) {
  Complaints wrong;
  for (const auto& [key, job] : world.All(kJobs)) {
    if (!SaysTraining(*job) || IsBeingDeleted(*job)) continue;
    for (const auto& [pod_key, pod] : world.All(kPods)) {
      if (pod_key.ns != key.ns || !IsOfJob(*pod, key.name) || !HasRole(*pod, "launcher") || !IsRunning(world, *pod))
        continue;
      if (kube::testing::AnnotationOf(*pod, kSilent).empty()) continue;
      wrong[key.ToString()] = "says Training, and its launcher prints nothing";
    }
  }
  return wrong;
}

Complaints WrongHosts(const World& world) {
  Complaints wrong;
  for (const auto& [key, hosts] : world.All("configmaps")) {
    const std::string name = Text(*hosts, {"metadata", "labels", kJobNameLabel});
    // Somebody took our labels off, or the job is over.
    if (name.empty() || Text(*hosts, {"metadata", "labels", kManagedByLabel}) != kManagedBy) continue;
    if (!HasRunningLauncher(world, {key.ns, name})) continue;
    for (const auto& [pod, address] : HostsOf(*hosts)) {
      if (!IsReachable(world, {key.ns, pod}, address))
        wrong[pod + " at " + address] = "is listed as a host, and is none";
    }
  }
  return wrong;
}

// Pods that have a node and do not start, for whatever reason but that they are about to.
Complaints BrokenPods(const World& world) {
  Complaints wrong;
  for (const auto& [key, pod] : world.All(kPods)) {
    if (!HasRole(*pod, "worker") || IsBeingDeleted(*pod) || !HasNode(world, *pod) || IsReady(*pod)) continue;
    for (const Json& container : ItemsAt(*pod, {"status", "containerStatuses"})) {
      const std::string reason = Text(container, {"state", "waiting", "reason"});
      const bool waits = !reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing";
      if (waits || container.At({"state", "terminated"})) {
        wrong[key.ToString() + " " + Text(*pod, {"metadata", "uid"})] = "is broken and holds GPUs";
      }
    }
  }
  return wrong;
}

bool IsAboutPods(const ServerChange& change) {
  return change.resource == kPods || change.resource == kJobs || change.resource == "configmaps" ||
         change.resource == "nodes";
}

Invariant NotForLong(Complaints (*look)(const World&), kube::Duration slack) {
  return [look, patience = Patience(slack)](const World& world, const ServerChange& change) mutable {
    return IsAboutPods(change) ? patience.Check(world.simulation.Now(), look(world)) : std::string();
  };
}

// Workers that admission refuses are given back after a minute, and asked for every five seconds until then.
constexpr kube::Duration kRefusedMayTake = std::chrono::seconds(60 + 5);

// A silent launcher is told after ten minutes, the default of the spec, and looked at every half a minute.
constexpr kube::Duration kSilenceMayTake = std::chrono::seconds(600 + 30);

// A worker that cannot start has a minute before its GPUs are wanted back, and leaves after that of a shrink.
constexpr kube::Duration kBrokenMayTake = std::chrono::seconds(60 + 5);

}  // namespace

std::vector<Invariant> ElasticInvariants(kube::Duration slack) {
  std::vector<Invariant> invariants{OneLauncher,
                                    RunningLauncherStays,
                                    GrantsWithinLimits,
                                    NoWorkerTooMany,
                                    NothingAfterTheEnd,
                                    WorkerLeavesHostsFirst,
                                    NoGpuTwice,
                                    LauncherWaitsForWorkers(),
                                    NotForLong(WrongTrainings, slack),
                                    NotForLong(SilentTrainings, slack + kSilenceMayTake),
                                    NotForLong(WrongHosts, slack),
                                    NotForLong(BrokenPods, slack + kBrokenMayTake),
                                    NotForLong(TooManyWorkers, slack),
                                    NotForLong(TooFewWorkers, slack + kRefusedMayTake)};
  for (Invariant& invariant : WaitInvariants(slack)) invariants.push_back(std::move(invariant));
  return invariants;
}

void CheckElasticJobs(const World& world, std::vector<std::string>& complaints) {
  for (const auto look : {WrongTrainings, WrongHosts, BrokenPods, TooManyWorkers, TooFewWorkers}) {
    for (const auto& [name, what] : look(world)) complaints.push_back(name + " " + what);
  }
}

bool IsOfJob(const Json& object, const std::string& job) {
  return Text(object, {"metadata", "labels", kJobNameLabel}) == job;
}
bool HasRole(const Json& object, const char* role) { return Text(object, {"metadata", "labels", kRoleLabel}) == role; }

Hosts HostsOf(const Json& config_map) {
  Hosts hosts;
  std::istringstream text(Text(config_map, {"data", "hosts"}));
  std::string line;
  while (std::getline(text, line)) {
    const std::size_t colon = line.find(':'), blank = line.find(' ', colon == std::string::npos ? 0 : colon);
    if (colon == std::string::npos || blank == std::string::npos) continue;  // "revision 3", or somebody's nonsense.
    hosts.emplace(line.substr(blank + 1), line.substr(0, colon));
  }
  return hosts;
}

}  // namespace grus::testing
