// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFlush = 5min;  // Unschedulable pods are tried again after this time even without a change.

bool IsOurs(const Json& pod) {
  const std::string_view name = TextAt(pod, {"spec", "schedulerName"});
  return name.empty() || name == "default-scheduler";
}

std::string_view NominationOf(const Json& pod) { return TextAt(pod, {"status", "nominatedNodeName"}); }

bool Repels(const PodNeeds& pod) { return pod.affinity.pod_anti && !pod.affinity.pod_anti->required.empty(); }

bool IsGated(const Json& pod) { return !ItemsAt(pod, {"spec", "schedulingGates"}).empty(); }

Duration BackoffAfter(int attempts) {
  return std::min<Duration>(1s * (1 << std::min(std::max(attempts - 1, 0), 10)), 10s);
}

// Whether the change of a node can make room for a pod.
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

Scheduler::Scheduler(const ClusterContext& context) : context_(context) {}

void Scheduler::Observe(const ServerChange& change) {
  if (is_down_) return;
  const ObjectPtr before = change.before, after = change.after;
  if (change.resource == "nodes") {
    Deliver(last_node_, [this, before, after] { ObserveNode(before, after); });
  } else if (change.resource == "pods") {
    Deliver(last_pod_, [this, before, after] { ObservePod(before, after); });
  }
}

void Scheduler::Deliver(TimePoint& last, std::function<void()> action) {
  const TimePoint now = context_.simulation.Now();
  last = std::max(last, now + context_.Draw(context_.options.scheduler_watch));
  context_.simulation.After(last - now, [this, run = run_, action = std::move(action)] {
    if (run == run_) action();
  });
}

void Scheduler::Restart(Duration downtime) {
  ++run_;
  is_down_ = true;
  waiting_.clear();
  placed_.clear();
  nodes_.clear();
  loads_.clear();
  nominated_nodes_.clear();
  nominated_pods_.clear();
  repelling_ = 0;
  next_cycle_ = TimePoint::max();
  context_.simulation.After(downtime, [this, run = run_] {
    if (run == run_) Start();
  });
}

void Scheduler::Start() {
  is_down_ = false;
  for (const ObjectPtr& node : context_.server.List("nodes")) ObserveNode(nullptr, node);
  for (const ObjectPtr& pod : context_.server.List("pods")) ObservePod(nullptr, pod);
}

void Scheduler::ObserveNode(const ObjectPtr& before, const ObjectPtr& after) {
  const std::string name(NameOf(after ? *after : *before));
  if (!after) {
    nodes_.erase(name);
    return;
  }
  if (before && !HelpsPods(*before, *after)) return;
  nodes_[name] = FitNodeOf(*after);
  WakeUnschedulable();
}

void Scheduler::ObservePod(const ObjectPtr& before, const ObjectPtr& after) {
  const ObjectKey key = KeyOf(after ? *after : *before);
  if (!after || HasEnded(*after)) {
    waiting_.erase(key);
    const bool was_nominated = before && NodeOf(*before).empty() && !NominationOf(*before).empty();
    if (before) Nominate(key, *before, "");
    if (TakeBack(key)) {
      WakeUnschedulable();
    } else if (was_nominated) {
      WakeUnschedulable(IntAt(*before, {"spec", "priority"}));
    }
    return;
  }
  if (const std::string_view node = NodeOf(*after); !node.empty()) {
    waiting_.erase(key);
    Nominate(key, *after, "");
    if (!placed_.contains(key)) Place(key, *after, node);
    return;
  }
  if (!IsOurs(*after) || placed_.contains(key)) return;
  UpdateNomination(key, before.get(), *after);
  if (IsBeingDeleted(*after)) {
    waiting_.erase(key);
  } else {
    const bool is_new = !waiting_.contains(key);
    Waiting& pod = waiting_[key];
    const bool was_gated = pod.is_gated;
    pod.object = after;
    pod.is_gated = IsGated(*after);
    if (is_new) {
      pod.priority = IntAt(*after, {"spec", "priority"});
      pod.order = ++last_order_;
    }
    if (pod.is_gated) {
      pod.ready_at = TimePoint::max();
    } else if (is_new || was_gated) {
      pod.ready_at = context_.simulation.Now();
      PlanCycle();
    }
  }
  if (before && !NominationOf(*before).empty() && NominationOf(*before) != NominationOf(*after)) {
    WakeUnschedulable(IntAt(*before, {"spec", "priority"}));
  }
}

void Scheduler::Place(const ObjectKey& key, const Json& pod, std::string_view node) {
  Placed placed{std::string(UidOf(pod)), std::string(node), std::make_shared<const PodNeeds>(NeedsOf(pod))};
  loads_[placed.node].Add(*placed.needs);
  repelling_ += Repels(*placed.needs) ? 1 : 0;
  placed_[key] = std::move(placed);
}

bool Scheduler::TakeBack(const ObjectKey& key) {
  const auto found = placed_.find(key);
  if (found == placed_.end()) return false;
  loads_[found->second.node].Remove(*found->second.needs);
  repelling_ -= Repels(*found->second.needs) ? 1 : 0;
  placed_.erase(found);
  return true;
}

void Scheduler::Nominate(const ObjectKey& key, const Json& pod, std::string_view node) {
  if (const auto nominated = nominated_nodes_.find(key); nominated != nominated_nodes_.end()) {
    const auto on_node = nominated_pods_.find(nominated->second);
    on_node->second.erase(key);
    if (on_node->second.empty()) nominated_pods_.erase(on_node);
    nominated_nodes_.erase(nominated);
  }
  if (node.empty()) return;
  nominated_nodes_[key] = node;
  nominated_pods_[std::string(node)][key] = std::make_shared<const PodNeeds>(NeedsOf(pod));
}

// As the real queue does (nominator.go). The nomination of a new gated pod does not count: the real scheduler reads
// nominations of new pods only when it activates them.
void Scheduler::UpdateNomination(const ObjectKey& key, const Json* before, const Json& pod) {
  if (!before && IsGated(pod)) return;
  const std::string_view nomination = NominationOf(pod);
  // The scheduler's own nomination is not in the object yet.
  if (before && nomination.empty() && NominationOf(*before).empty()) return;
  Nominate(key, pod, nomination);
}

void Scheduler::WakeUnschedulable(std::int64_t priority) {
  const TimePoint now = context_.simulation.Now();
  std::vector<Waiting*> woken;
  for (auto& [key, pod] : waiting_) {
    if (pod.is_unschedulable && pod.priority <= priority) woken.push_back(&pod);
  }
  if (woken.empty()) return;
  std::shuffle(woken.begin(), woken.end(), context_.simulation.random());
  for (Waiting* const pod : woken) {
    pod->is_unschedulable = false;
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
  context_.simulation.After(at - now, [this, at, run = run_] {
    if (run != run_ || next_cycle_ != at) return;
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
  const ObjectPtr pod = next->second.object;
  Schedule(key, *pod);
}

void Scheduler::Schedule(const ObjectKey& key, const Json& pod) {
  const PodNeeds needs = NeedsOf(pod);
  const Repulsion repulsion = RepulsionFor(needs);
  const std::string_view nominated = NominationOf(pod);
  std::vector<std::string> fitting;
  std::map<std::string, Misfit> misfits;
  for (const auto& [name, node] : nodes_) {
    Misfit misfit = Try(key, needs, name, loads_[name], repulsion);
    if (!misfit.reasons.empty()) {
      misfits[name] = std::move(misfit);
    } else if (name == nominated) {
      fitting = {name};
      break;
    } else {
      fitting.push_back(name);
    }
  }
  if (fitting.empty()) {
    Outcome outcome = nodes_.empty() ? Outcome{"", ""} : Preempt(key, needs, misfits);
    outcome.message = UnschedulableMessage(misfits, outcome.message);
    NoteFailure(key, pod, "Unschedulable", outcome);
    return;
  }
  // Drops the pod's nomination for another node and wakes nobody, as the real scheduler does.
  const std::string node = fitting[context_.simulation.random()() % fitting.size()];
  Nominate(key, pod, "");
  Place(key, pod, node);
  const std::string uid(UidOf(pod));
  waiting_.erase(key);
  context_.simulation.After(context_.Draw(context_.options.binding), [this, key, uid, node, run = run_] {
    if (run == run_) Bind(key, uid, node);
  });
}

Repulsion Scheduler::RepulsionFor(const PodNeeds& pod, const std::set<ObjectKey>& absent) const {
  Repulsion repulsion;
  if (!Repels(pod) && repelling_ == 0) return repulsion;
  for (const auto& [key, other] : placed_) {
    const auto node = nodes_.find(other.node);
    if (node != nodes_.end() && !absent.contains(key)) repulsion.Add(pod, *other.needs, node->second);
  }
  return repulsion;
}

Misfit Scheduler::Try(const ObjectKey& key, const PodNeeds& pod, const std::string& name, Load load,
                      Repulsion repulsion) const {
  const FitNode& node = nodes_.at(name);
  if (const auto nominated = nominated_pods_.find(name); nominated != nominated_pods_.end()) {
    for (const auto& [other, needs] : nominated->second) {
      if (other == key || needs->priority < pod.priority) continue;
      load.Add(*needs);
      repulsion.Add(pod, *needs, node);
    }
  }
  return FitOf(pod, node, load, repulsion);
}

void Scheduler::NoteFailure(const ObjectKey& key, const Json& pod, std::string_view reason, const Outcome& outcome) {
  Waiting& waiting = waiting_[key];
  ++waiting.attempts;
  waiting.is_unschedulable = true;
  waiting.last_attempt = context_.simulation.Now();
  waiting.ready_at = waiting.last_attempt + kFlush;
  const bool is_renominated = outcome.nomination && *outcome.nomination != NominationOf(pod);
  if (outcome.nomination) Nominate(key, pod, *outcome.nomination);
  context_.Modify("pods", key, UidOf(pod), "status", [&](Json& object) {
    if (is_renominated) object["status"]["nominatedNodeName"] = *outcome.nomination;
    return SetCondition(object, {"PodScheduled", "False", reason, outcome.message}, context_.Now()) || is_renominated;
  });
}

void Scheduler::Bind(const ObjectKey& key, const std::string& uid, const std::string& node) {
  const ObjectPtr pod = context_.server.Get("pods", key);
  if (!pod || UidOf(*pod) != uid) return;  // Its place is freed once the scheduler sees this.
  const Status bound = context_.server.Bind(key, node);
  if (bound) return;
  TakeBack(key);
  WakeUnschedulable();
  if (!NodeOf(*pod).empty()) {  // Somebody else was faster.
    Place(key, *pod, NodeOf(*pod));
  } else if (!IsBeingDeleted(*pod)) {
    Waiting& again = waiting_[key];
    again.object = pod;
    again.priority = IntAt(*pod, {"spec", "priority"});
    again.order = ++last_order_;
    NoteFailure(key, *pod, "SchedulerError", {"binding rejected: " + bound.error().message(), ""});
    again.is_unschedulable = false;
    again.ready_at = again.last_attempt + BackoffAfter(1);
    PlanCycle();
  }
}

}  // namespace kube::testing
