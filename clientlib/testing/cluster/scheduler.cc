// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kManager = "kube-scheduler";
constexpr Duration kFlush = 5min;  // Parked pods are tried again after that even without a reason.

bool IsOurs(const Json& pod) {
  const std::string_view name = TextAt(pod, {"spec", "schedulerName"});
  return name.empty() || name == "default-scheduler";
}

bool IsGated(const Json& pod) { return !ItemsAt(pod, {"spec", "schedulingGates"}).empty(); }

Duration BackoffAfter(int attempts) {
  return std::min<Duration>(1s * (1 << std::min(std::max(attempts - 1, 0), 10)), 10s);
}

// What of a node can make room for a pod.
bool HelpsPods(const Json& before, const Json& after) {
  static constexpr std::pair<std::string_view, std::string_view> kFields[] = {
      {"status", "allocatable"}, {"metadata", "labels"}, {"spec", "taints"}, {"spec", "unschedulable"}};
  for (const auto& [part, field] : kFields) {
    const Json* const a = before.At({part, field});
    const Json* const b = after.At({part, field});
    if ((a == nullptr) != (b == nullptr) || (a && !(*a == *b))) return true;
  }
  return false;
}

}  // namespace

Scheduler::Scheduler(const ClusterContext& context)
    : context_(context),
      gated_(context, context.options.scheduling, [this](const ObjectKey& key) { return MarkGated(key); }) {}

void Scheduler::Observe(const ServerChange& change) {
  if (change.resource == "nodes") {
    ObserveNode(change);
  } else if (change.resource == "pods") {
    ObservePod(KeyOf(change.after ? *change.after : *change.before), change.before.get(), change.after.get());
  }
}

void Scheduler::ObserveNode(const ServerChange& change) {
  const std::string name(TextAt(change.after ? *change.after : *change.before, {"metadata", "name"}));
  if (!change.after) {
    nodes_.erase(name);
    return;
  }
  const bool helps = !change.before || HelpsPods(*change.before, *change.after);
  Node& node = nodes_[name];
  node.object = change.after;
  if (!helps) return;
  node.allocatable = AllocatableOf(*change.after);
  WakeParked();
}

void Scheduler::ObservePod(const ObjectKey& key, const Json* before, const Json* after) {
  const auto placed = placed_.find(key);
  if (!after || (placed != placed_.end() && placed->second.uid != UidOf(*after))) {
    if (TakeBack(key)) WakeParked();
    waiting_.erase(key);
    if (!after) return;
  }
  if (HasEnded(*after)) {
    waiting_.erase(key);
    if (TakeBack(key)) WakeParked();
    return;
  }
  if (const std::string_view node = NodeOf(*after); !node.empty()) {
    waiting_.erase(key);
    if (!placed_.contains(key)) Place(key, *after, node);
    return;
  }
  if (!IsOurs(*after) || IsBeingDeleted(*after) || placed_.contains(key)) {
    waiting_.erase(key);
    return;
  }
  if (IsGated(*after)) {
    waiting_.erase(key);
    gated_.Add(key);
    return;
  }
  const bool is_new = waiting_.find(key) == waiting_.end();
  Waiting& pod = waiting_[key];
  if (is_new || (before && IsGated(*before))) {
    pod.uid = UidOf(*after);
    pod.priority = IntAt(*after, {"spec", "priority"});
    pod.order = ++last_order_;
    pod.ready_at = context_.simulation.Now();
    PlanCycle();
  }
}

void Scheduler::Place(const ObjectKey& key, const Json& pod, std::string_view node) {
  Placed placed{std::string(UidOf(pod)), std::string(node), RequestsOf(pod)};
  Add(used_[placed.node], placed.requests);
  placed_[key] = std::move(placed);
}

bool Scheduler::TakeBack(const ObjectKey& key) {
  const auto found = placed_.find(key);
  if (found == placed_.end()) return false;
  Add(used_[found->second.node], found->second.requests, -1);
  placed_.erase(found);
  return true;
}

void Scheduler::WakeParked() {
  const TimePoint now = context_.simulation.Now();
  std::vector<Waiting*> woken;
  for (auto& [key, pod] : waiting_) {
    if (pod.is_parked) woken.push_back(&pod);
  }
  if (woken.empty()) return;
  std::shuffle(woken.begin(), woken.end(), context_.simulation.random());
  for (Waiting* const pod : woken) {
    pod->is_parked = false;
    pod->order = ++last_order_;
    const TimePoint backed_off = std::max(now, pod->last_attempt + BackoffAfter(pod->attempts));
    pod->ready_at = context_.simulation.OneIn(2) ? now : backed_off;
  }
  PlanCycle();
}

void Scheduler::PlanCycle() {
  TimePoint at = TimePoint::max();
  for (const auto& [key, pod] : waiting_) at = std::min(at, pod.ready_at);
  if (at == TimePoint::max()) return;
  const TimePoint now = context_.simulation.Now();
  at = std::max(at, now) + context_.Draw(context_.options.scheduling);
  if (next_cycle_ <= at) return;
  next_cycle_ = at;
  context_.simulation.After(at - now, [this, at] {
    if (next_cycle_ != at) return;
    next_cycle_ = TimePoint::max();
    RunCycle();
    PlanCycle();
  });
}

void Scheduler::RunCycle() {
  const TimePoint now = context_.simulation.Now();
  auto next = waiting_.end();
  for (auto pod = waiting_.begin(); pod != waiting_.end(); ++pod) {
    if (pod->second.ready_at > now) continue;
    const bool is_before = next == waiting_.end() || pod->second.priority > next->second.priority ||
                           (pod->second.priority == next->second.priority && pod->second.order < next->second.order);
    if (is_before) next = pod;
  }
  if (next == waiting_.end()) return;
  const ObjectKey key = next->first;
  const FakeApiServer::ObjectPtr pod = context_.server.Get("pods", key);
  if (!pod || UidOf(*pod) != next->second.uid) {
    waiting_.erase(next);
    return;
  }
  Schedule(key, *pod);
}

void Scheduler::Schedule(const ObjectKey& key, const Json& pod) {
  const Amounts requests = RequestsOf(pod);
  const std::string_view nominated = TextAt(pod, {"status", "nominatedNodeName"});
  std::vector<std::string> fitting;
  std::vector<Misfit> misfits;
  for (const auto& [name, node] : nodes_) {
    Misfit misfit = FitOf(pod, requests, *node.object, node.allocatable, used_[name]);
    if (!misfit.reasons.empty()) {
      misfits.push_back(std::move(misfit));
    } else if (name == nominated) {
      fitting = {name};
      break;
    } else {
      fitting.push_back(name);
    }
  }
  if (fitting.empty()) {
    Park(key, pod, UnschedulableMessage(misfits));
    return;
  }
  const std::string node = fitting[context_.simulation.random()() % fitting.size()];
  Place(key, pod, node);
  const std::string uid(UidOf(pod));
  waiting_.erase(key);
  context_.simulation.After(context_.Draw(context_.options.binding), [this, key, uid, node] { Bind(key, uid, node); });
}

void Scheduler::Park(const ObjectKey& key, const Json& pod, const std::string& message) {
  Waiting& waiting = waiting_[key];
  ++waiting.attempts;
  waiting.is_parked = true;
  waiting.last_attempt = context_.simulation.Now();
  waiting.ready_at = waiting.last_attempt + kFlush;
  context_.Modify("pods", key, UidOf(pod), kManager, "status", [&](Json& object) {
    return SetCondition(object, {"PodScheduled", "False", "Unschedulable", message}, context_.Now());
  });
}

void Scheduler::Bind(const ObjectKey& key, const std::string& uid, const std::string& node) {
  const FakeApiServer::ObjectPtr pod = context_.server.Get("pods", key);
  if (!pod || UidOf(*pod) != uid) return;  // Its place was taken back when it went.
  if (const Status bound = context_.server.Bind(key, node); !bound) {
    TakeBack(key);
    if (!NodeOf(*pod).empty()) {  // Somebody else was faster.
      Place(key, *pod, NodeOf(*pod));
    } else if (!IsBeingDeleted(*pod)) {
      Waiting& again = waiting_[key];
      again = {uid, IntAt(*pod, {"spec", "priority"}), ++last_order_, 1, context_.simulation.Now(), {}, false};
      again.ready_at = again.last_attempt + BackoffAfter(1);
      PlanCycle();
    }
    WakeParked();
    return;
  }
  context_.Modify("pods", key, uid, kManager, "status", [&](Json& object) {
    return !HasTrueCondition(object, "PodScheduled") && SetCondition(object, {"PodScheduled", "True"}, context_.Now());
  });
}

bool Scheduler::MarkGated(const ObjectKey& key) {
  const FakeApiServer::ObjectPtr pod = context_.server.Get("pods", key);
  if (!pod || !IsGated(*pod)) return true;
  return context_.Modify("pods", key, UidOf(*pod), kManager, "status", [&](Json& object) {
    return SetCondition(
        object, {"PodScheduled", "False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"},
        context_.Now());
  });
}

}  // namespace kube::testing
