// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/app_workload.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "clientlib/client/client.h"
#include "crds/types/all_crds.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;

bool IsNamespaced(const std::string& resource) {
  static const std::set<std::string> kOfCluster{"nodes", "namespaces", "gpuqueues.ai.centauruscloud.io",
                                                "nodepools.ai.centauruscloud.io"};
  return !kOfCluster.contains(resource);
}

}  // namespace

std::string Text(const Json& object, kube::testing::JsonPath path) {
  return std::string(kube::testing::TextAt(object, path));
}

bool IsBound(const Json& pod) { return !kube::testing::NodeOf(pod).empty(); }
bool IsReady(const Json& pod) {
  return !kube::testing::IsBeingDeleted(pod) && kube::testing::HasTrueCondition(pod, "Ready");
}

void RunApp(const kube::testing::ProcessContext& context, bool uses_leases, Nominations nominations,
            std::stop_token stop, std::string_view but, const ServeApp& serve) {
  const kube::Log log(kube::LogLevel::kOff);
  kube::Registry metrics;
  kube::Client client(context.transport, nullptr, context.clock);
  Options options;
  options.reconcile_threads = 3;
  std::erase(options.controllers, but);
  if (serve) options.controllers.emplace_back("extender");
  options.nominations = nominations;
  std::unique_ptr<kube::LeaderElector> elector;
  kube::ClientOptions lease_options;
  lease_options.timeout = std::chrono::seconds(5);
  lease_options.pool = kube::HttpPool::kLease;
  kube::Client lease_client(context.transport, nullptr, context.clock, lease_options);
  if (uses_leases) {
    kube::LeaderElectionOptions election;
    election.lease = {"kube-system", "grus-manager"};
    election.identity = context.identity;
    elector = Must(kube::LeaderElector::Create(lease_client, context.clock, log, std::move(election)));
  }
  Prometheus::Connect to_prometheus;
  if (context.asked != nullptr) {
    options.usage_prometheus = "http://prometheus.test:9090";
    to_prometheus = [&](const std::string&) {
      return std::shared_ptr<kube::Transport>(context.asked, [](kube::Transport*) {});
    };
  }
  App app(options, client, elector.get(), context.clock, log, metrics, context.identity, to_prometheus);
  const std::function<bool()> leads = [&elector] { return !elector || elector->IsLeader(); };
  kube::Thread server;  // Ends before the app does.
  if (serve) server = context.clock.Spawn([&](std::stop_token end) { serve(app, leads, std::move(end)); });
  (void)app.Run(stop);  // An error ends the process; it is started again.
}

void CreateCrds(World& world) {
  constexpr char kCrds[] = "customresourcedefinitions.apiextensions.k8s.io";
  for (const kube::CrdInfo& info : api::AllCrds()) {
    Json crd = kube::MakeCrd(info);
    const std::string name = *crd.At({"metadata", "name"})->AsString();
    if (!world.server.Get(kCrds, {"", name})) Must(world.server.Create(kCrds, std::move(crd)));
  }
}

void AddNode(World& world, const std::string& name, int gpus, const Json& labels) {
  kube::testing::NodeOptions options;
  options.labels = labels;
  Must(world.cluster.AddNode(name, gpus, options));
}

void EditSpec(World& world, const std::string& resource, const std::string& name, std::string_view spec) {
  const auto object = world.server.Get(resource, {IsNamespaced(resource) ? kNamespace : "", name});
  if (!object) return;
  Json edited = *object;
  kube::MergePatch(edited["spec"], FromText(spec));
  Must(world.server.Update(resource, std::move(edited)));
}

void Delete(World& world, const std::string& resource, const std::string& name) {
  (void)world.server.Delete(resource, {IsNamespaced(resource) ? kNamespace : "", name});
}

Step Until(std::string name, std::function<bool(const World&)> when, std::function<void(World&)> act) {
  return {std::move(name), std::move(when), std::move(act)};
}

std::string Patience::Check(kube::TimePoint now, const std::map<std::string, std::string>& wrong) {
  std::string broken;
  for (auto it = wrong_.begin(); it != wrong_.end();) {
    const kube::Duration lasted = now - it->second.since;
    if (lasted > slack_ && broken.empty()) {
      broken = it->first + " " + it->second.what + ", for " +
               std::to_string(std::chrono::duration_cast<std::chrono::seconds>(lasted).count()) + " s";
    }
    it = wrong.contains(it->first) ? std::next(it) : wrong_.erase(it);
  }
  for (const auto& [name, what] : wrong) wrong_.try_emplace(name, Wrong{now, what}).first->second.what = what;
  return broken;
}

std::string NoGpuTwice(const World& world, const kube::testing::ServerChange& change) {
  if (change.resource != "pods" || !change.after || Text(*change.after, {"spec", "nodeName"}).empty()) return {};
  if (change.before && !Text(*change.before, {"spec", "nodeName"}).empty()) return {};
  const std::string node = Text(*change.after, {"spec", "nodeName"});
  const auto gpus = [](const std::string& text) { return text.empty() ? 0 : std::stoi(text); };
  int used = 0;
  for (const auto& [key, pod] : world.All("pods")) {
    if (Text(*pod, {"spec", "nodeName"}) != node || kube::testing::HasEnded(*pod)) continue;
    const Json* containers = pod->At({"spec", "containers"});
    if (containers == nullptr || containers->AsArray() == nullptr) continue;
    for (const Json& container : *containers->AsArray()) {
      used += gpus(Text(container, {"resources", "limits", "nvidia.com/gpu"}));
    }
  }
  const Json* there = world.Get("nodes", {"", node});
  if (there == nullptr) return {};
  const int has = gpus(Text(*there, {"status", "allocatable", "nvidia.com/gpu"}));
  return used > has ? node + " has " + std::to_string(has) + " GPUs, pods hold " + std::to_string(used) : "";
}

void CheckOwners(const World& world, std::vector<std::string>& complaints) {
  std::set<std::string> uids;
  for (const auto& [resource, objects] : world.objects) {
    for (const auto& [key, object] : objects) uids.insert(Text(*object, {"metadata", "uid"}));
  }
  for (const auto& [resource, objects] : world.objects) {
    for (const auto& [key, object] : objects) {
      const Json* owner = kube::testing::ControllerOf(*object);
      if (owner && !uids.contains(Text(*owner, {"uid"})))
        complaints.push_back(resource + " " + key.ToString() + " is orphaned");
    }
  }
}

void CheckGenerations(const World& world, std::string_view resource, const std::vector<std::string>& final_phases,
                      std::vector<std::string>& complaints) {
  for (const auto& [key, object] : world.All(resource)) {
    const std::int64_t generation = IntAt(*object, {"metadata", "generation"});
    const std::string phase = Text(*object, {"status", "phase"});
    const bool has_ended = std::find(final_phases.begin(), final_phases.end(), phase) != final_phases.end();
    if (IntAt(*object, {"status", "observedGeneration"}) != generation) {
      complaints.push_back(key.ToString() + ": status is about another generation");
    }
    const Json* conditions = object->At({"status", "conditions"});
    if (conditions == nullptr || conditions->AsArray() == nullptr) continue;
    for (const Json& condition : *conditions->AsArray()) {
      const std::string type = Text(condition, {"type"});
      if (has_ended || (type != "Ready" && type != "Reconciling" && type != "Stalled")) continue;
      if (IntAt(condition, {"observedGeneration"}) != generation) {
        complaints.push_back(key.ToString() + ": condition " + type + " is about another generation");
      }
    }
  }
}

void SortConditions(Json& object) {
  Json* status = object.Find("status");
  Json* conditions = status ? status->Find("conditions") : nullptr;
  if (conditions == nullptr || conditions->AsArray() == nullptr) return;
  std::sort(conditions->AsArray()->begin(), conditions->AsArray()->end(),
            [](const Json& a, const Json& b) { return Text(a, {"type"}) < Text(b, {"type"}); });
}

}  // namespace grus::testing
