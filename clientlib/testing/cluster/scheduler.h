// SPDX-License-Identifier: Apache-2.0
// The default scheduler: one pod after the other, by priority, then in order of arrival, on any node where it fits.
//
// Sees pods and nodes late, each kind in order. A nomination (status.nominatedNodeName) keeps room on that node from
// pods of equal or lower priority, also while its pod is gated. Nominations live in memory: after a restart, that of a
// gated pod does not count until the pod changes in any way.
//
// A pod that fits nowhere waits for a change of nodes or pods that may help, then also for its back-off (1 s, doubling
// to 10 s), or not: the real scheduler takes pods out of their back-off when it is idle. This, the order in which a
// change wakes pods, and the node are random. A pod that fits nowhere loses its nomination unless it may not preempt
// others. Lacks: events, disruption budgets, and what node_fit.h lacks.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "clientlib/testing/cluster/cluster_context.h"
#include "clientlib/testing/cluster/node_fit.h"

namespace kube::testing {

class Scheduler {
 public:
  explicit Scheduler(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Only records the change.

  // Forgets everything, including pending bindings, and starts again after `downtime`.
  void Restart(Duration downtime);

 private:
  using ObjectPtr = FakeApiServer::ObjectPtr;
  using NeedsPtr = std::shared_ptr<const PodNeeds>;

  struct Waiting {
    ObjectPtr object;  // As last seen by the scheduler.
    std::int64_t priority = 0;
    std::uint64_t order = 0;  // Lower ones first.
    int attempts = 0;
    TimePoint last_attempt{};
    TimePoint ready_at{};
    bool is_gated = false;
    bool is_unschedulable = false;  // Tried in vain; a change may help.
  };
  struct Placed {
    std::string uid, node;
    NeedsPtr needs;
  };

  void Deliver(TimePoint& last, std::function<void()> action);
  void Start();
  void ObservePod(const ObjectPtr& before, const ObjectPtr& after);
  void ObserveNode(const ObjectPtr& before, const ObjectPtr& after);
  void Place(const ObjectKey& key, const Json& pod, std::string_view node);
  bool TakeBack(const ObjectKey& key);                                          // True if the pod was placed.
  void Nominate(const ObjectKey& key, const Json& pod, std::string_view node);  // No node: it has none.
  void UpdateNomination(const ObjectKey& key, const Json* before, const Json& pod);
  // Wakes unschedulable pods of at most this priority.
  void WakeUnschedulable(std::int64_t priority = std::numeric_limits<std::int64_t>::max());

  void PlanCycle();
  void RunCycle();
  void Schedule(const ObjectKey& key, const Json& pod);
  Repulsion RepulsionFor(const PodNeeds& pod, const std::set<ObjectKey>& absent = {}) const;
  // `load` and `repulsion`: of the placed pods.
  Misfit Try(const ObjectKey& key, const PodNeeds& pod, const std::string& node, Load load, Repulsion repulsion) const;
  // What happens to a pod that fits nowhere.
  struct Outcome {
    std::string message;
    std::optional<std::string> nomination = {};  // The new nomination; empty: none. No value: unchanged.
  };
  void NoteFailure(const ObjectKey& key, const Json& pod, std::string_view reason, const Outcome& outcome);
  void Bind(const ObjectKey& key, const std::string& uid, const std::string& node);

  // preemption.cc
  struct Victims;
  Outcome Preempt(const ObjectKey& key, const PodNeeds& pod, const std::map<std::string, Misfit>& misfits);
  bool WaitsForVictims(const PodNeeds& pod, const std::map<std::string, Misfit>& misfits) const;
  Victims VictimsOn(const std::string& node, const ObjectKey& key, const PodNeeds& pod) const;
  void Evict(const Victims& victims, std::int64_t priority);

  const ClusterContext& context_;
  std::map<ObjectKey, Waiting> waiting_;
  std::map<ObjectKey, Placed> placed_;  // Bound, or about to be.
  std::map<std::string, FitNode> nodes_;
  std::map<std::string, Load, std::less<>> loads_;                       // By node.
  std::map<ObjectKey, std::string> nominated_nodes_;                     // By pod.
  std::map<std::string, std::map<ObjectKey, NeedsPtr>> nominated_pods_;  // By node.
  int repelling_ = 0;  // The number of placed pods with anti-affinity terms.
  std::uint64_t last_order_ = 0;
  std::uint64_t run_ = 0;  // Counts restarts: pending actions of an earlier run are dropped.
  bool is_down_ = false;
  TimePoint next_cycle_ = TimePoint::max();
  TimePoint last_pod_{}, last_node_{};  // When the newest change is seen.
};

}  // namespace kube::testing
