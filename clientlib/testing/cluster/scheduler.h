// SPDX-License-Identifier: Apache-2.0
// The default scheduler: one pod after the other, by priority, then first come, on any node where it fits.
//
// A pod that fits nowhere waits for a change of nodes or pods that may help, then also for its back-off (1 s, doubling
// to 10 s), or not: the real scheduler takes pods out of their back-off when it has nothing else to do. That, the
// order in which a change wakes pods, and the node are drawn by chance. Lacks: preemption.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "clientlib/testing/cluster/cluster_context.h"
#include "clientlib/testing/cluster/node_fit.h"

namespace kube::testing {

class Scheduler {
 public:
  explicit Scheduler(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Takes notes only.

 private:
  struct Waiting {
    std::string uid;
    std::int64_t priority = 0;
    std::uint64_t order = 0;  // Lower ones first.
    int attempts = 0;
    TimePoint last_attempt{};
    TimePoint ready_at{};
    bool is_parked = false;  // Tried in vain; a change may help.
  };
  struct Placed {
    std::string uid, node;
    Amounts requests;
  };
  struct Node {
    FakeApiServer::ObjectPtr object;
    Amounts allocatable;
  };

  void ObservePod(const ObjectKey& key, const Json* before, const Json* after);
  void ObserveNode(const ServerChange& change);
  void Place(const ObjectKey& key, const Json& pod, std::string_view node);
  bool TakeBack(const ObjectKey& key);  // True if it was placed.
  void WakeParked();

  void PlanCycle();
  void RunCycle();
  void Schedule(const ObjectKey& key, const Json& pod);
  void Park(const ObjectKey& key, const Json& pod, const std::string& message);
  void Bind(const ObjectKey& key, const std::string& uid, const std::string& node);
  bool MarkGated(const ObjectKey& key);

  const ClusterContext& context_;
  WorkLoop gated_;
  std::map<ObjectKey, Waiting> waiting_;
  std::map<ObjectKey, Placed> placed_;  // Bound, or about to be.
  std::map<std::string, Node, std::less<>> nodes_;
  std::map<std::string, Amounts, std::less<>> used_;  // By node.
  std::uint64_t last_order_ = 0;
  TimePoint next_cycle_ = TimePoint::max();
};

}  // namespace kube::testing
