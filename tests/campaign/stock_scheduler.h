// SPDX-License-Identifier: Apache-2.0
// A stock kube-scheduler whose configuration names grus as its extender, for pods of the scheduler name
// kStockScheduler.
//
// As the real one does, it takes one pod at a time through filter and prioritize, assumes that it is where it is to be,
// and binds several at once. It counts the sums of what nodes offer itself (managedResources, ignoredByScheduler:
// false). A pod that finds no node waits for the end of another pod, a change of its own or of what nodes offer, or
// five minutes; a call that failed is made again after a back-off.
//
// What networks and plugins do to calls is in its habits: binds are late by minutes, sent twice, and their answers
// lost. Besides, somebody sends it bodies that make no sense. It notes what it was told (IsAsked(), SaidNode(),
// complaints()).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "clientlib/testing/cluster/node_fit.h"
#include "tests/campaign/app_workload.h"
#include "tests/campaign/extender_port.h"

namespace grus::testing {

inline constexpr char kStockScheduler[] = "with-grus";

// One call in so many.
struct CallHabits {
  int late = 8, twice = 4, answer_lost = 8;
};

class StockScheduler final : public kube::testing::Caller {
 public:
  // Of the world that is being prepared; it lives as long.
  static StockScheduler& Start(World& world, CallHabits habits = {});
  static const StockScheduler& Of(const World& world) { return static_cast<const StockScheduler&>(*world.caller); }
  static StockScheduler& Of(World& world) { return static_cast<StockScheduler&>(*world.caller); }

  ExtenderPort& port() { return port_; }
  void Restart(kube::Duration downtime);  // It forgets everything, and binds that are under way go on without it.

  // Whether it has asked for this pod to be bound there.
  bool IsAsked(const std::string& uid, const std::string& node) const { return asked_.contains({uid, node}); }
  // Where the last bind that was answered said that the pod is; empty: none was answered.
  std::string SaidNode(const std::string& uid) const;
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  using ObjectPtr = kube::testing::FakeApiServer::ObjectPtr;
  struct Waiting {
    ObjectPtr object = {};
    int attempts = 0;
    bool is_unschedulable = false;
    kube::TimePoint last_attempt{}, ready_at{};
    std::uint64_t order = 0;
  };
  struct Placed {
    std::string uid = {}, node = {};
    kube::testing::PodNeeds needs = {};
  };
  struct Bind {
    kube::ObjectKey pod = {};
    std::string uid = {}, node = {};
    std::string Body() const;
  };

  StockScheduler(World& world, CallHabits habits) : world_(world), habits_(habits), port_(world.simulation) {}
  void Observe(const kube::testing::ServerChange& change);
  void Deliver(kube::TimePoint& last, std::function<void()> action);
  void After(kube::Duration delay, std::function<void()> action);  // Not if it was restarted meanwhile.
  void SeeNode(const std::string& name, const ObjectPtr& node);
  void SeePod(const ObjectPtr& before, const ObjectPtr& after);
  bool TakeBack(const kube::ObjectKey& key);
  void Wake(Waiting& pod);
  void WakeAll();
  void PlanCycle();
  void RunCycle();
  void EndCycle();
  std::vector<std::string> FittingNodes(const Json& pod) const;
  void AskToFilter(const kube::ObjectKey& key, const ObjectPtr& pod);
  void AskToPrioritize(const kube::ObjectKey& key, const ObjectPtr& pod, const std::vector<std::string>& nodes);
  void Assume(const kube::ObjectKey& key, const ObjectPtr& pod, const std::string& node);
  void AskToBind(const Bind& bind, int tries);
  void NoteBound(const Bind& bind);
  void NoteFailure(const kube::ObjectKey& key, bool is_unschedulable);
  void SendHostileCalls();

  World& world_;
  const CallHabits habits_;
  ExtenderPort port_;
  std::map<kube::ObjectKey, Waiting> waiting_;
  std::map<kube::ObjectKey, Placed> placed_;  // Bound, or about to be.
  std::map<std::string, kube::testing::FitNode> nodes_;
  bool is_in_cycle_ = false, is_down_ = false;
  kube::TimePoint next_cycle_ = kube::TimePoint::max(), last_pod_{}, last_node_{};
  std::uint64_t run_ = 0, last_order_ = 0;
  std::string last_filter_, last_bind_;  // Bodies.
  // What it remembers for those who check.
  std::set<std::pair<std::string, std::string>> asked_;
  std::map<std::string, std::string> said_;
  std::vector<std::string> complaints_;
};

}  // namespace grus::testing
