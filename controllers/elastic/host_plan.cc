// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/host_plan.h"

#include <algorithm>
#include <chrono>

namespace grus {
namespace {

constexpr kube::Duration kSpacing = std::chrono::seconds(2);
// After an outage of the control plane, kubelets report within so long that their pods are ready: their leases and
// statuses are sent each ten seconds.
constexpr kube::Duration kReturn = std::chrono::seconds(20);

// How much longer workers that are cut off stay listed; nullopt: not at all. When all are cut off at once, it is not
// their nodes that are lost, as Kubernetes' own node controller judges (full disruption).
std::optional<kube::Duration> StayOfCutOff(const View& view, const std::vector<Host>& usable) {
  std::optional<kube::Time> first;
  for (const Worker& worker : view.pods) {
    if (std::ranges::find(usable, worker.name, &Host::pod) == usable.end() || !worker.ready_since) continue;
    first = std::min(first.value_or(*worker.ready_since), *worker.ready_since);
  }
  if (!first) return usable.empty() ? std::optional(kReturn) : std::nullopt;
  const kube::Duration left = kReturn - Waited(view.now, *first);
  return left > kube::Duration::zero() ? std::optional(left) : std::nullopt;
}

}  // namespace

HostList FirstHosts(const View& view, const Sizes& sizes, const WorkerSet& leaving) {
  HostList list;
  list.slots = sizes.slots;
  list.revision = view.hosts ? view.hosts->revision : 0;
  for (const LauncherPod& pod : view.launcher_pods) list.revision = std::max(list.revision, pod.hosts_revision);
  ++list.revision;
  list.published = view.now;
  for (const Worker& worker : view.pods) {
    if (worker.is_usable() && !leaving.contains(&worker)) list.hosts.push_back({worker.name, worker.address});
  }
  return list;
}

HostPlan PlanHosts(const View& view, const Sizes& sizes, const WorkerSet& leaving) {
  const HostList& published = *view.hosts;
  HostPlan plan;
  plan.list = published;

  std::vector<Host> wanted, unwanted, cut_off;
  std::vector<std::string> lost;
  for (const Host& host : published.hosts) {
    // A pod of the same name with another address is a new host.
    const auto worker = std::find_if(view.pods.begin(), view.pods.end(),
                                     [&](const Worker& w) { return w.name == host.pod && w.address == host.address; });
    if (worker == view.pods.end() || worker->is_leaving()) lost.push_back(host.pod);
    else if (!worker->is_usable() && worker->is_cut_off) cut_off.push_back(host);
    else if (!worker->is_usable()) lost.push_back(host.pod);
    else (leaving.contains(&*worker) ? unwanted : wanted).push_back(host);
  }
  if (const auto stay = cut_off.empty() ? std::nullopt : StayOfCutOff(view, wanted)) {
    wanted.insert(wanted.end(), cut_off.begin(), cut_off.end());
    plan.look_again = stay;
  } else {
    for (const Host& host : cut_off) lost.push_back(host.pod);
  }
  for (const Worker& worker : view.pods) {
    const Host host{worker.name, worker.address};
    const bool is_listed = std::find(wanted.begin(), wanted.end(), host) != wanted.end();
    if (worker.is_usable() && !leaving.contains(&worker) && !is_listed) wanted.push_back(host);
  }
  for (const Host& host : unwanted) {
    if (static_cast<int>(wanted.size()) < sizes.NeededToRun()) wanted.push_back(host);
  }
  // The same hosts in another order are no change: Horovod keeps an order of its own.
  if (std::is_permutation(wanted.begin(), wanted.end(), published.hosts.begin(), published.hosts.end())) return plan;

  const kube::Duration left = kSpacing - Waited(view.now, published.published);
  if (left > kube::Duration::zero()) {
    plan.look_again = std::min(left, plan.look_again.value_or(left));
    return plan;
  }
  plan.lost = std::move(lost);
  plan.list.hosts = std::move(wanted);
  plan.list.revision = published.revision + 1;
  plan.list.published = view.now;
  return plan;
}

}  // namespace grus
