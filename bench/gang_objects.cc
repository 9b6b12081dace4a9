// SPDX-License-Identifier: Apache-2.0
#include "bench/gang_objects.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>
#include <numeric>
#include <set>

#include "bench/measure.h"
#include "bench/storm.h"
#include "clientlib/model/apps_v1.h"
#include "clientlib/model/core_v1.h"
#include "crds/types/pod_group.h"
#include "tests/kit/kinds.h"
#include "tests/kit/objects.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;

constexpr int kMostMembers = 1 << 20;

Json PlainPodSpec(int units, const std::string& resource) {
  return kit::PodSpec(units, R"({"automountServiceAccountToken":false,"terminationGracePeriodSeconds":0})", resource);
}

Json GangPodSpec(const GangSize& gang) {
  Json spec = kit::Gated(PlainPodSpec(gang.units, gang.resource));
  if (!gang.priority_class.empty()) spec["priorityClassName"] = gang.priority_class;
  return spec;
}

// No pod is admitted before it is there, and Kubernetes makes it some time after the namespace.
bool CreateDefaultAccount(kube::Client& client, const std::string& ns) {
  const kube::Status made =
      CreateObject(client, KindOf<kit::ServiceAccount>(), ns, kit::MakeObject("v1", "ServiceAccount", "default"));
  if (made || made.error().code() == kube::ErrorCode::kAlreadyExists) return true;
  std::fprintf(stderr, "%s\n", made.error().message().c_str());
  return false;
}

bool CreatePods(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs, bool is_gated) {
  struct Item {
    const GangSize* gang;
    int ordinal;
  };
  std::vector<Item> items;
  for (const GangSize& gang : gangs) {
    for (int i = 0; i < gang.members; ++i) items.push_back({&gang, i});
  }
  return InParallel(static_cast<int>(items.size()), world.threads, [&](int i) {
    const auto& [gang, ordinal] = items[static_cast<std::size_t>(i)];
    const std::string name = gang->name + "-" + std::to_string(ordinal);
    return CreateObject(world.client, KindOf<kube::Pod>(), ns,
                        MakeGangPod(name, gang->name, gang->UnitsOf(ordinal), is_gated, gang->resource));
  });
}

bool CreateGroups(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs) {
  return InParallel(static_cast<int>(gangs.size()), world.threads, [&](int i) {
    return CreateObject(world.client, KindOf<api::PodGroup>(), ns,
                        MakePodGroup(gangs[static_cast<std::size_t>(i)], 60));
  });
}

kube::Status PatchPod(const GangWorld& world, const kube::ObjectKey& pod, const Json& patch,
                      const std::string& subresource) {
  kube::WriteOptions options;
  options.subresource = subresource;
  options.metadata_only = true;
  auto patched = world.client.Patch(KindOf<kube::Pod>(), pod, kube::PatchType::kStrategicMerge, patch, options);
  if (!patched) return std::move(patched).error().with("patch Pod " + pod.ToString());
  return {};
}

// The least that takes a gate away.
kube::Status LiftGate(const GangWorld& world, const kube::ObjectKey& pod) {
  Json lift = Json::MakeObject();
  lift["spec"]["schedulingGates"].Append(Json::MakeObject({{"$patch", "delete"}, {"name", api::kGangGate}}));
  return PatchPod(world, pod, lift, "");
}

}  // namespace

Json MakeGangPod(const std::string& name, const std::string& gang, int units, bool is_gated,
                 const std::string& resource) {
  Json spec = PlainPodSpec(units, resource);
  if (is_gated) spec = kit::Gated(std::move(spec));
  spec["restartPolicy"] = "Never";
  return kit::MakePod(name, std::move(spec),
                      kit::MemberOf(gang, is_gated ? api::kPodGroupLabel : "grus.test/plain-pod-group"));
}

Json MakeUngatedMember(const std::string& name, const std::string& gang, int units, const std::string& resource) {
  Json pod = MakeGangPod(name, gang, units, false, resource);
  pod["metadata"]["labels"][api::kPodGroupLabel] = gang;
  return pod;
}

Json MakePodGroup(const GangSize& gang, int timeout_seconds) {
  Json group = kit::MakePodGroup(gang.name, gang.members);
  group["spec"]["scheduleTimeoutSeconds"] = timeout_seconds;
  return group;
}

Json MakeGangSet(const GangSize& gang) {
  return kit::MakeStatefulSet(gang.name, gang.members, GangPodSpec(gang), kit::MemberOf(gang.name));
}

Json MakeGangJob(const GangSize& gang) {
  return kit::MakeJob(gang.name, gang.members, GangPodSpec(gang), kit::MemberOf(gang.name));
}

bool CreateGangs(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs) {
  return CreateGroups(world, ns, gangs) && CreateMembers(world, ns, gangs);
}

bool CreateMembers(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs) {
  return CreatePods(world, ns, gangs, true);
}

bool CreatePlainPods(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs) {
  return CreatePods(world, ns, gangs, false);
}

bool CreateAndLift(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs,
                   bool is_nominated) {
  kube::Result<kube::ObjectList> nodes = world.client.List(KindOf<kube::Node>(), "");
  if (!nodes) {
    std::fprintf(stderr, "%s\n", nodes.error().message().c_str());
    return false;
  }
  if (!CreateGroups(world, ns, gangs)) return false;

  struct Step {
    const GangSize* gang;
    int ordinal;
    std::string node;
    bool is_lift;
    std::atomic<int>* created;
  };
  std::vector<Step> steps;
  std::deque<std::atomic<int>> created;  // Of each gang.
  std::size_t placed = 0;
  const auto add = [&](const GangSize& gang, bool is_lift, std::atomic<int>& count) {
    for (int i = 0; i < gang.members; ++i) steps.push_back({&gang, i, "", is_lift, &count});
    if (!is_lift) return;
    for (std::size_t i = steps.size() - static_cast<std::size_t>(gang.members); i < steps.size(); ++i) {
      steps[i].node =
          nodes->items[placed++ * static_cast<std::size_t>(gang.units) / 8 % nodes->items.size()]->metadata.name;
    }
  };
  // Each gang is lifted after the next is created, so that threads seldom wait.
  for (const GangSize& gang : gangs) {
    add(gang, false, created.emplace_back(0));
    if (created.size() > 1) add(*(&gang - 1), true, created[created.size() - 2]);
  }
  add(gangs.back(), true, created.back());

  return InParallel(static_cast<int>(steps.size()), world.threads, [&](int at) -> kube::Status {
    const Step& step = steps[static_cast<std::size_t>(at)];
    const std::string name = step.gang->name + "-" + std::to_string(step.ordinal);
    if (!step.is_lift) {
      kube::Status made = CreateObject(world.client, KindOf<kube::Pod>(), ns,
                                       MakeGangPod(name, step.gang->name, step.gang->units, true));
      // After an error no other step is begun, and nobody may wait for one.
      for (std::atomic<int>& count : created) {
        if (&count != step.created && made) continue;
        count += made ? 1 : kMostMembers;
        count.notify_all();
      }
      return made;
    }
    // Threads take steps in their order: those who create are at it.
    for (int n = *step.created; n < step.gang->members; n = *step.created) step.created->wait(n);
    if (is_nominated) {
      Json nomination = Json::MakeObject();
      nomination["status"]["nominatedNodeName"] = step.node;
      if (kube::Status done = PatchPod(world, {ns, name}, nomination, "status"); !done) return done;
    }
    return LiftGate(world, {ns, name});
  });
}

bool LiftAsTheyCome(const GangWorld& world, int pods) {
  std::mutex mutex;
  std::set<std::string> seen;  // UIDs.
  const kube::TimePoint until = world.clock.Now() + std::chrono::minutes(2);
  return InParallel(pods, world.threads, [&](int) -> kube::Status {
    while (const auto event = world.observer.Next(until)) {
      if (!event->pod || event->is_gone || !IsGated(*event->pod)) continue;
      {
        std::lock_guard lock(mutex);
        if (!seen.insert(std::string(event->pod->metadata.uid)).second) continue;
      }
      return LiftGate(world, event->pod->metadata.Key());
    }
    return kube::Error(kube::ErrorCode::kTimeout, "not all pods came");
  });
}

std::vector<GangSize> EqualGangs(int gangs, int members, int gpus) {
  std::vector<GangSize> all;
  for (int i = 0; i < gangs; ++i) all.push_back({"gang-" + std::to_string(i), members, gpus});
  return all;
}

int TotalMembers(const std::vector<GangSize>& gangs) {
  return std::accumulate(gangs.begin(), gangs.end(), 0, [](int sum, const GangSize& g) { return sum + g.members; });
}

kube::Status CreateObject(kube::Client& client, const kube::Kind& kind, const std::string& ns, const Json& object) {
  auto made = client.Create(kind, ns, object);
  if (!made) return std::move(made).error().with("create " + std::string(kind.kind));
  return {};
}

BenchNamespace::BenchNamespace(const GangWorld& world, const std::string& name)
    : world_(world),
      name_(name + "-" + std::to_string(getpid())),
      exists_(CreateNamespace(world.client, name_) && CreateDefaultAccount(world.client, name_)) {}

bool BenchNamespace::Remove() {
  if (!exists_) return true;
  exists_ = false;
  DeleteNamespace(world_.client, name_);
  if (world_.observer.WaitForNoNamespace(name_, world_.clock.Now() + std::chrono::minutes(5))) return true;
  std::fprintf(stderr, "namespace %s did not go away\n", name_.c_str());
  return false;
}

}  // namespace bench
