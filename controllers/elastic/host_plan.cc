// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/host_plan.h"

#include <algorithm>
#include <chrono>

namespace grus {
namespace {

constexpr kube::Duration kSpacing = std::chrono::seconds(2);

bool IsUsable(const Worker& worker) { return worker.is_ready && !worker.is_ending && !worker.has_lost_node; }

}  // namespace

HostList FirstHosts(const View& view, const Sizes& sizes, int replicas) {
  HostList list;
  list.slots = sizes.slots;
  list.revision = view.hosts ? view.hosts->revision : 0;
  for (const LauncherPod& pod : view.launcher_pods) list.revision = std::max(list.revision, pod.hosts_revision);
  ++list.revision;
  list.published = view.now;
  for (const Worker& worker : view.pods) {
    if (IsUsable(worker) && worker.ordinal < replicas) list.hosts.push_back(worker.name);
  }
  return list;
}

HostPlan PlanHosts(const View& view, const Sizes& sizes, int replicas) {
  const HostList& published = *view.hosts;
  HostPlan plan;
  plan.list = published;

  std::vector<std::string> wanted, leaving, dead;
  for (const std::string& host : published.hosts) {
    const auto worker = std::find_if(view.pods.begin(), view.pods.end(),
                                     [&](const Worker& w) { return w.name == host; });
    const bool is_usable = worker != view.pods.end() && IsUsable(*worker);
    (!is_usable ? dead : worker->ordinal < replicas ? wanted : leaving).push_back(host);
  }
  for (const Worker& worker : view.pods) {
    if (IsUsable(worker) && worker.ordinal < replicas && !published.Has(worker.name)) wanted.push_back(worker.name);
  }
  for (const auto* spare : {&leaving, &dead}) {
    for (const std::string& host : *spare) {
      if (static_cast<int>(wanted.size()) < sizes.NeededToRun()) wanted.push_back(host);
    }
  }
  // The same hosts in another order are no change: Horovod keeps an order of its own.
  if (std::is_permutation(wanted.begin(), wanted.end(), published.hosts.begin(), published.hosts.end())) return plan;

  const kube::Duration left = kSpacing - Waited(view.now, published.published);
  if (left > kube::Duration::zero()) {
    plan.look_again = left;
    return plan;
  }
  plan.list.hosts = std::move(wanted);
  plan.list.revision = published.revision + 1;
  plan.list.published = view.now;
  plan.is_changed = true;
  return plan;
}

}  // namespace grus
