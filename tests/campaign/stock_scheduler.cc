// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/stock_scheduler.h"

#include <algorithm>
#include <utility>

#include "tests/campaign/hostile_bodies.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;
using kube::ObjectKey;
using kube::testing::HasEnded;
using kube::testing::IsBeingDeleted;
using kube::testing::ServerChange;

constexpr kube::Duration kFlush = 5min;   // Pods that found no node are tried again after this time even without news.
constexpr kube::Duration kLatest = 3min;  // Of a bind: how long other plugins may keep a pod.
constexpr kube::Duration kLongestLag = 20ms;  // From a change to its knowledge of it.

bool IsOurs(const Json& pod) { return Text(pod, {"spec", "schedulerName"}) == kStockScheduler; }

kube::Duration BackoffAfter(int attempts) {
  return std::min<kube::Duration>(1s * (1 << std::min(std::max(attempts - 1, 0), 10)), 10s);
}

// Whether the change of a node can make room for a pod.
bool HelpsPods(const Json& before, const Json& after) {
  for (const auto& path : {std::pair("status", "allocatable"), {"metadata", "labels"}, {"spec", "unschedulable"}}) {
    const Json* const a = before.At({path.first, path.second});
    const Json* const b = after.At({path.first, path.second});
    if ((a == nullptr) != (b == nullptr) || (a != nullptr && !(*a == *b))) return true;
  }
  return false;
}

bool IsChangedForScheduler(const Json& before, const Json& after) {
  for (const char* member : {"annotations", "labels"}) {
    const Json* const a = before.At({"metadata", member});
    const Json* const b = after.At({"metadata", member});
    if ((a == nullptr) != (b == nullptr) || (a != nullptr && !(*a == *b))) return true;
  }
  return false;
}

std::string NodesBody(const Json& pod, const std::vector<std::string>& nodes) {
  Json names = Json::MakeArray();
  for (const std::string& node : nodes) names.Append(node);
  return kube::ToText(Json::MakeObject({{"Pod", pod}, {"Nodes", Json()}, {"NodeNames", std::move(names)}}));
}

// Of a filter's answer; nullopt: it says that something went wrong.
std::optional<std::vector<std::string>> NodesIn(const std::string& answer) {
  const auto parsed = kube::ParseJson(answer);
  if (!parsed || !Text(*parsed, {"Error"}).empty() || parsed->Find("NodeNames") == nullptr) return std::nullopt;
  std::vector<std::string> nodes;
  for (const Json& name : kube::testing::ItemsAt(*parsed, {"NodeNames"})) nodes.push_back(*name.AsString());
  return nodes;
}

// Those with the highest score; all, if the answer makes no sense.
std::vector<std::string> BestOf(const std::vector<std::string>& nodes, const ExtenderPort::Answer& answer) {
  const auto parsed = answer ? kube::ParseJson(*answer) : kube::Result<Json>(answer.error());
  if (!parsed || parsed->AsArray() == nullptr) return nodes;
  std::int64_t highest = -1;
  std::vector<std::string> best;
  for (const Json& one : *parsed->AsArray()) {
    const std::int64_t score = kube::testing::IntAt(one, {"Score"});
    if (score > highest) best.clear();
    highest = std::max(highest, score);
    if (score == highest) best.push_back(Text(one, {"Host"}));
  }
  return best.empty() ? nodes : best;
}

bool IsDone(const ExtenderPort::Answer& answer) {
  const auto parsed = answer ? kube::ParseJson(*answer) : kube::Result<Json>(answer.error());
  return parsed && parsed->is_object() && Text(*parsed, {"Error"}).empty();
}

}  // namespace

std::string StockScheduler::Bind::Body() const {
  return kube::ToText(
      Json::MakeObject({{"PodName", pod.name}, {"PodNamespace", pod.ns}, {"PodUID", uid}, {"Node", node}}));
}

StockScheduler& StockScheduler::Start(World& world, CallHabits habits) {
  auto made = std::unique_ptr<StockScheduler>(new StockScheduler(world, habits));
  StockScheduler& scheduler = *made;
  world.caller = std::move(made);
  world.server.AddObserver([&scheduler](const ServerChange& change) { scheduler.Observe(change); });
  scheduler.SendHostileCalls();
  return scheduler;
}

std::string StockScheduler::SaidNode(const std::string& uid) const {
  const auto found = said_.find(uid);
  return found == said_.end() ? "" : found->second;
}

void StockScheduler::After(kube::Duration delay, std::function<void()> action) {
  world_.simulation.After(delay, [this, run = run_, action = std::move(action)] {
    if (run == run_) action();
  });
}

void StockScheduler::Restart(kube::Duration downtime) {
  ++run_;
  is_down_ = true;
  is_in_cycle_ = false;
  waiting_.clear();
  placed_.clear();
  nodes_.clear();
  next_cycle_ = kube::TimePoint::max();
  After(downtime, [this] {
    is_down_ = false;
    for (const ObjectPtr& node : world_.server.List("nodes")) SeeNode(Text(*node, {"metadata", "name"}), node);
    for (const ObjectPtr& pod : world_.server.List("pods")) SeePod(nullptr, pod);
  });
}

void StockScheduler::Observe(const ServerChange& change) {
  if (is_down_) return;
  if (change.resource == "nodes") {
    const std::string name = Text(change.after ? *change.after : *change.before, {"metadata", "name"});
    Deliver(last_node_, [this, name, node = change.after] { SeeNode(name, node); });
  } else if (change.resource == "pods") {
    Deliver(last_pod_, [this, change] { SeePod(change.before, change.after); });
  }
}

void StockScheduler::Deliver(kube::TimePoint& last, std::function<void()> action) {
  const kube::TimePoint now = world_.simulation.Now();
  last = std::max(last, now + world_.simulation.Between(0ms, kLongestLag));
  After(last - now, std::move(action));
}

void StockScheduler::SeeNode(const std::string& name, const ObjectPtr& node) {
  if (!node) return (void)nodes_.erase(name);
  const auto known = nodes_.find(name);
  if (known != nodes_.end() && !HelpsPods(known->second.object, *node)) return;
  nodes_[name] = kube::testing::FitNodeOf(*node);
  WakeAll();
}

void StockScheduler::SeePod(const ObjectPtr& before, const ObjectPtr& after) {
  const ObjectKey key = kube::testing::KeyOf(after ? *after : *before);
  if (!after || HasEnded(*after)) {
    waiting_.erase(key);
    if (TakeBack(key)) WakeAll();
    return;
  }
  if (IsBound(*after)) {
    waiting_.erase(key);
    placed_[key] = {std::string(kube::testing::UidOf(*after)), Text(*after, {"spec", "nodeName"}),
                    kube::testing::NeedsOf(*after)};
    return;
  }
  if (!IsOurs(*after) || placed_.contains(key)) return;
  if (IsBeingDeleted(*after)) return (void)waiting_.erase(key);
  const bool is_new = !waiting_.contains(key);
  Waiting& pod = waiting_[key];
  pod.object = after;
  if (is_new) {
    pod.order = ++last_order_;
    pod.ready_at = world_.simulation.Now();
    PlanCycle();
  } else if (pod.is_unschedulable && before && IsChangedForScheduler(*before, *after)) {
    Wake(pod);
    PlanCycle();
  }
}

bool StockScheduler::TakeBack(const ObjectKey& key) { return placed_.erase(key) > 0; }

void StockScheduler::Wake(Waiting& pod) {
  pod.is_unschedulable = false;
  pod.order = ++last_order_;
  pod.ready_at = std::max(world_.simulation.Now(), pod.last_attempt + BackoffAfter(pod.attempts));
}

void StockScheduler::WakeAll() {
  for (auto& [key, pod] : waiting_) {
    if (pod.is_unschedulable) Wake(pod);
  }
  PlanCycle();
}

void StockScheduler::PlanCycle() {
  if (is_in_cycle_ || is_down_) return;
  kube::TimePoint at = kube::TimePoint::max();
  for (const auto& [key, pod] : waiting_) at = std::min(at, pod.ready_at);
  const kube::TimePoint now = world_.simulation.Now();
  at = at == kube::TimePoint::max() ? at : std::max(at, now) + world_.simulation.Between(1ms, 5ms);
  if (next_cycle_ <= at) return;
  next_cycle_ = at;
  After(at - now, [this, at] {
    if (next_cycle_ != at) return;
    next_cycle_ = kube::TimePoint::max();
    RunCycle();
  });
}

void StockScheduler::RunCycle() {
  const kube::TimePoint now = world_.simulation.Now();
  auto next = waiting_.end();
  for (auto pod = waiting_.begin(); pod != waiting_.end(); ++pod) {
    if (pod->second.ready_at > now) continue;
    if (next == waiting_.end() || pod->second.order < next->second.order) next = pod;
  }
  if (next == waiting_.end()) return PlanCycle();
  is_in_cycle_ = true;
  AskToFilter(next->first, next->second.object);
}

void StockScheduler::EndCycle() {
  is_in_cycle_ = false;
  PlanCycle();
}

std::vector<std::string> StockScheduler::FittingNodes(const Json& pod) const {
  std::map<std::string, kube::testing::Load> loads;
  for (const auto& [key, placed] : placed_) loads[placed.node].Add(placed.needs);
  std::vector<std::string> fitting;
  for (const auto& [name, node] : nodes_) {
    if (FitOf(kube::testing::NeedsOf(pod), node, loads[name], {}).reasons.empty()) fitting.push_back(name);
  }
  return fitting;
}

void StockScheduler::AskToFilter(const ObjectKey& key, const ObjectPtr& pod) {
  const std::vector<std::string> nodes = FittingNodes(*pod);
  if (nodes.empty()) return NoteFailure(key, true), EndCycle();
  last_filter_ = NodesBody(*pod, nodes);
  port_.Call("filter", last_filter_, [this, key, pod, run = run_](const ExtenderPort::Answer& answer) {
    if (run != run_) return;
    const auto left = answer ? NodesIn(*answer) : std::nullopt;
    if (!left || left->empty()) return NoteFailure(key, left.has_value()), EndCycle();
    AskToPrioritize(key, pod, *left);
  });
}

void StockScheduler::AskToPrioritize(const ObjectKey& key, const ObjectPtr& pod,
                                     const std::vector<std::string>& nodes) {
  // With one node there is nothing to compare.
  if (nodes.size() == 1) return Assume(key, pod, nodes.front());
  port_.Call("prioritize", NodesBody(*pod, nodes),
             [this, key, pod, nodes, run = run_](const ExtenderPort::Answer& answer) {
               if (run != run_) return;
               const std::vector<std::string> best = BestOf(nodes, answer);
               Assume(key, pod, best[world_.simulation.random()() % best.size()]);
             });
}

void StockScheduler::Assume(const ObjectKey& key, const ObjectPtr& pod, const std::string& node) {
  const Bind bind{key, std::string(kube::testing::UidOf(*pod)), node};
  if (waiting_.erase(key) > 0) {
    placed_[key] = {bind.uid, node, kube::testing::NeedsOf(*pod)};
    const bool is_late = world_.simulation.OneIn(habits_.late);
    After(is_late ? world_.simulation.Between(1s, kLatest) : world_.simulation.Between(1ms, 30ms),
          [this, bind] { AskToBind(bind, 1); });
  }
  EndCycle();
}

void StockScheduler::AskToBind(const Bind& bind, int tries) {
  asked_.emplace(bind.uid, bind.node);
  last_bind_ = bind.Body();
  const bool is_lost = world_.simulation.OneIn(habits_.answer_lost);
  port_.Call("bind", last_bind_, [this, bind, tries, is_lost, run = run_](const ExtenderPort::Answer& answer) {
    if (!is_lost && IsDone(answer)) return NoteBound(bind);
    if (run != run_) return;
    // Whoever got no answer asks again, or gives up.
    if ((is_lost || !answer) && tries < 3 && world_.simulation.OneIn(2)) return AskToBind(bind, tries + 1);
    const auto placed = placed_.find(bind.pod);
    if (placed == placed_.end() || placed->second.uid != bind.uid) return;
    const ObjectPtr pod = world_.server.Get("pods", bind.pod);
    if (pod && kube::testing::UidOf(*pod) == bind.uid && IsBound(*pod)) return;
    TakeBack(bind.pod);
    if (!pod || kube::testing::UidOf(*pod) != bind.uid || IsBeingDeleted(*pod) || HasEnded(*pod)) return WakeAll();
    Waiting& again = waiting_[bind.pod];
    again.object = pod;
    again.order = ++last_order_;
    NoteFailure(bind.pod, false);
    WakeAll();
  });
  // A proxy that sends it twice.
  if (!world_.simulation.OneIn(habits_.twice)) return;
  world_.simulation.After(world_.simulation.Between(0ms, 2s), [this, bind] {
    port_.Call("bind", bind.Body(), [this, bind](const ExtenderPort::Answer& answer) {
      if (IsDone(answer)) NoteBound(bind);
    });
  });
}

void StockScheduler::NoteBound(const Bind& bind) {
  said_[bind.uid] = bind.node;
  const ObjectPtr pod = world_.server.Get("pods", bind.pod);
  if (!pod || kube::testing::UidOf(*pod) != bind.uid) return;
  const std::string node = Text(*pod, {"spec", "nodeName"});
  if (node == bind.node) return;
  complaints_.push_back("the bind of " + bind.pod.ToString() + " to " + bind.node +
                        " is done, it says, and it is on \"" + node + "\"");
}

void StockScheduler::NoteFailure(const ObjectKey& key, bool is_unschedulable) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;  // It was deleted.
  Waiting& pod = found->second;
  ++pod.attempts;
  pod.is_unschedulable = is_unschedulable;
  pod.last_attempt = world_.simulation.Now();
  pod.ready_at = pod.last_attempt + (is_unschedulable ? kFlush : BackoffAfter(pod.attempts));
}

void StockScheduler::SendHostileCalls() {
  const HostileCall call = DrawHostileCall(world_.simulation.random(), last_filter_, last_bind_);
  port_.Call(call.verb, call.body, [this, call](const ExtenderPort::Answer& answer) {
    const bool is_refused = call.verb == "bind" ? !IsDone(answer) : !answer;
    if (!is_refused)
      complaints_.push_back(call.verb + " takes a body that makes no sense: " + call.body.substr(0, 200));
  });
  world_.simulation.After(world_.simulation.Between(5s, 60s), [this] { SendHostileCalls(); });
}

}  // namespace grus::testing
