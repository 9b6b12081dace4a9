// SPDX-License-Identifier: Apache-2.0
// What the scheduler does for a pod that fits nowhere: it finds the node with the cheapest victims, deletes these, and
// nominates the pod.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "clientlib/testing/cluster/objects.h"
#include "clientlib/testing/cluster/scheduler.h"

namespace kube::testing {

struct Scheduler::Victims {
  std::string node;
  std::vector<std::pair<std::int64_t, ObjectKey>> pods;  // With priorities, highest first; empty: no help.

  // Lower is better.
  auto Cost() const {
    std::int64_t sum = 0;
    for (const auto& [priority, key] : pods) sum += priority + (std::int64_t{1} << 31);
    return std::tuple(pods.front().first, sum, pods.size());
  }
};

Scheduler::Outcome Scheduler::Preempt(const ObjectKey& key, const PodNeeds& pod,
                                      const std::map<std::string, Misfit>& misfits) {
  if (TextAt(pod.object, {"spec", "preemptionPolicy"}) == "Never") {
    return {"not eligible due to preemptionPolicy=Never."};
  }
  if (WaitsForVictims(pod, misfits)) return {"not eligible due to a terminating pod on the nominated node."};
  Victims best;
  for (const auto& [node, misfit] : misfits) {
    if (misfit.is_final) continue;
    Victims victims = VictimsOn(node, key, pod);
    if (victims.pods.empty()) continue;
    if (best.pods.empty() || victims.Cost() < best.Cost()) best = std::move(victims);
  }
  if (best.pods.empty()) return {NoVictimsMessage(misfits), ""};
  Evict(best, pod.priority);
  return {"", best.node};
}

// Whether the pod has preempted others that are not gone yet.
bool Scheduler::WaitsForVictims(const PodNeeds& pod, const std::map<std::string, Misfit>& misfits) const {
  const std::string node(TextAt(pod.object, {"status", "nominatedNodeName"}));
  const auto misfit = misfits.find(node);
  if (misfit == misfits.end() || misfit->second.is_final) return false;
  return std::any_of(placed_.begin(), placed_.end(), [&](const auto& item) {
    if (item.second.node != node || item.second.needs->priority >= pod.priority) return false;
    const ObjectPtr victim = context_.server.Get("pods", item.first);
    if (!victim || !IsBeingDeleted(*victim)) return false;
    const Json* const target = ConditionOf(*victim, "DisruptionTarget");
    return target && TextAt(*target, {"reason"}) == "PreemptionByScheduler";
  });
}

Scheduler::Victims Scheduler::VictimsOn(const std::string& node, const ObjectKey& key, const PodNeeds& pod) const {
  Victims lower{node, {}}, victims{node, {}};
  std::set<ObjectKey> absent;
  const auto load_there = loads_.find(node);
  Load load = load_there == loads_.end() ? Load() : load_there->second;
  for (const auto& [other, placed] : placed_) {
    if (placed.node != node || placed.needs->priority >= pod.priority) continue;
    lower.pods.emplace_back(placed.needs->priority, other);
    absent.insert(other);
    load.Remove(*placed.needs);
  }
  const auto fits = [&] { return Try(key, pod, node, load, RepulsionFor(pod, absent)).reasons.empty(); };
  if (lower.pods.empty() || !fits()) return victims;
  std::stable_sort(lower.pods.begin(), lower.pods.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [priority, other] : lower.pods) {  // See which may stay, the most important first.
    const PodNeeds& needs = *placed_.at(other).needs;
    load.Add(needs);
    absent.erase(other);
    if (fits()) continue;
    load.Remove(needs);
    absent.insert(other);
    victims.pods.emplace_back(priority, other);
  }
  return victims;
}

void Scheduler::Evict(const Victims& victims, std::int64_t priority) {
  if (const auto nominated = nominated_pods_.find(victims.node); nominated != nominated_pods_.end()) {
    for (const auto& [key, needs] : nominated->second) {
      if (needs->priority >= priority) continue;
      context_.Modify("pods", key, UidOf(needs->object), "status", [](Json& object) {
        object["status"].Erase("nominatedNodeName");
        return true;
      });
    }
  }
  for (const auto& [unused, key] : victims.pods) {
    const ObjectPtr pod = context_.server.Get("pods", key);
    if (!pod || UidOf(*pod) != placed_.at(key).uid || IsBeingDeleted(*pod)) continue;
    context_.Modify("pods", key, UidOf(*pod), "status", [&](Json& object) {
      return SetCondition(object,
                          {"DisruptionTarget", "True", "PreemptionByScheduler",
                           "default-scheduler: preempting to accommodate a higher priority pod"},
                          context_.Now());
    });
    context_.DeleteObject("pods", *pod);
  }
}

}  // namespace kube::testing
