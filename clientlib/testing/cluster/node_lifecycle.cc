// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/node_lifecycle.h"

#include <algorithm>
#include <utility>

#include "clientlib/testing/cluster/node_fit.h"
#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";

std::string TaintId(const Json& taint) {
  return std::string(TextAt(taint, {"key"})) + "=" + std::string(TextAt(taint, {"value"}));
}

// True if anything changed.
bool SetTaint(Json& node, std::string_view key, std::string_view effect, bool is_wanted, std::string_view now) {
  Json taints = Json::MakeArray();
  bool is_there = false;
  for (const Json& taint : ItemsAt(node, {"spec", "taints"})) {
    const bool is_it = TextAt(taint, {"key"}) == key && TextAt(taint, {"effect"}) == effect;
    is_there |= is_it;
    if (!is_it || is_wanted) taints.Append(taint);
  }
  if (is_there == is_wanted) return false;
  if (is_wanted) {
    Json& taint = taints.Append(Json::MakeObject({{"key", key}, {"effect", effect}}));
    if (effect == "NoExecute") taint["timeAdded"] = now;
  }
  node["spec"]["taints"] = std::move(taints);
  if (node["spec"]["taints"].AsArray()->empty()) node["spec"].Erase("taints");
  return true;
}

}  // namespace

NodeLifecycle::NodeLifecycle(const ClusterContext& context)
    : context_(context),
      nodes_(context, context.options.nodes, [this](const ObjectKey& key) { return ReconcileNode(key.name); }),
      pods_(context, context.options.nodes, [this](const ObjectKey& key) { return Evict(key); }) {}

void NodeLifecycle::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  if (change.resource == "nodes") {
    const std::string name(NameOf(object));
    if (!change.after) {
      known_.erase(name);
      dark_.erase(name);
      taints_.erase(name);
      CollectAfterQuarantine(name);
      return;
    }
    known_.insert(name);
    nodes_.Add({"", name});
  } else if (change.resource == "pods" && change.after) {
    const std::string_view node = NodeOf(object);
    const bool was_bound = change.before && !NodeOf(*change.before).empty();
    if (node.empty() || was_bound) return;
    if (!known_.contains(node)) CollectAfterQuarantine(std::string(node));
    if (taints_.find(node) != taints_.end()) pods_.Add(KeyOf(object));
  }
}

void NodeLifecycle::SetDark(const std::string& node, bool is_dark) {
  if (is_dark) {
    dark_.insert(node);
  } else {
    dark_.erase(node);
  }
  nodes_.Add({"", node});
}

bool NodeLifecycle::ReconcileNode(const std::string& name) {
  FakeApiServer::ObjectPtr node = context_.server.Get("nodes", {"", name});
  if (!node) return true;
  const std::string now = context_.Now();
  const bool is_dark = dark_.contains(name);
  const bool is_ready = !is_dark && AnnotationOf(*node, "grus.test/ready") != "false";
  const bool was_ready = HasTrueCondition(*node, "Ready");
  const std::string uid(UidOf(*node));
  bool is_done = context_.Modify("nodes", {"", name}, uid, "status", [&](Json& object) {
    if (is_ready)
      return SetCondition(object, {"Ready", "True", "KubeletReady", "kubelet is posting ready status"}, now);
    if (!is_dark) {
      return SetCondition(object, {"Ready", "False", "KubeletNotReady", "annotation grus.test/ready is false"}, now);
    }
    return SetCondition(object, {"Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."}, now);
  });
  is_done &= context_.Modify("nodes", {"", name}, uid, {}, [&](Json& object) {
    bool has_changed = false;
    for (const std::string_view effect : {"NoSchedule", "NoExecute"}) {
      has_changed |= SetTaint(object, kUnreachable, effect, is_dark, now);
      has_changed |= SetTaint(object, kNotReady, effect, !is_dark && !is_ready, now);
    }
    return SetTaint(object, kUnschedulable, "NoSchedule", IsTrueAt(object, {"spec", "unschedulable"}), now) ||
           has_changed;
  });
  if (was_ready && !is_ready) is_done &= MarkPodsNotReady(name);

  node = context_.server.Get("nodes", {"", name});
  std::map<std::string, TimePoint> taints;
  for (const Json& taint : ItemsAt(*node, {"spec", "taints"})) {
    if (TextAt(taint, {"effect"}) != "NoExecute") continue;
    const std::map<std::string, TimePoint>& known = taints_[name];
    const auto found = known.find(TaintId(taint));
    taints.emplace(TaintId(taint), found == known.end() ? context_.simulation.Now() : found->second);
  }
  if (taints.empty()) {
    taints_.erase(name);
  } else if (taints_[name] != taints) {
    taints_[name] = std::move(taints);
    for (const FakeApiServer::ObjectPtr& pod : context_.server.List("pods")) {
      if (NodeOf(*pod) == name) pods_.Add(KeyOf(*pod));
    }
  }
  return is_done;
}

bool NodeLifecycle::MarkPodsNotReady(const std::string& node) {
  bool is_done = true;
  for (const FakeApiServer::ObjectPtr& pod : context_.server.List("pods")) {
    if (NodeOf(*pod) != node) continue;
    is_done &= context_.Modify("pods", KeyOf(*pod), UidOf(*pod), "status", [&](Json& object) {
      return HasTrueCondition(object, "Ready") &&
             SetCondition(object, {"Ready", "False", "NodeNotReady", "Node is not ready"}, context_.Now());
    });
  }
  return is_done;
}

// The taint eviction controller.
bool NodeLifecycle::Evict(const ObjectKey& key) {
  const FakeApiServer::ObjectPtr pod = context_.server.Get("pods", key);
  if (!pod || IsBeingDeleted(*pod) || HasEnded(*pod)) return true;
  const FakeApiServer::ObjectPtr node = context_.server.Get("nodes", {"", std::string(NodeOf(*pod))});
  const auto since = taints_.find(NodeOf(*pod));
  if (!node || since == taints_.end()) return true;
  TimePoint at = TimePoint::max();
  for (const Json& taint : ItemsAt(*node, {"spec", "taints"})) {
    const auto added = since->second.find(TaintId(taint));
    if (TextAt(taint, {"effect"}) != "NoExecute" || added == since->second.end()) continue;
    const Json* const toleration = TolerationOf(*pod, taint);
    if (toleration && !toleration->Find("tolerationSeconds")) continue;
    const std::int64_t seconds = toleration ? std::max<std::int64_t>(0, IntAt(*toleration, {"tolerationSeconds"})) : 0;
    at = std::min(at, added->second + std::chrono::seconds(seconds));
  }
  if (at == TimePoint::max()) return true;
  if (const Duration left = at - context_.simulation.Now(); left > Duration::zero()) {
    pods_.AddAfter(key, left);
    return true;
  }
  return context_.Modify("pods", key, UidOf(*pod), "status", [&](Json& object) {
    return SetCondition(
        object,
        {"DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"},
        context_.Now());
  }) && context_.DeleteObject("pods", *pod);
}

void NodeLifecycle::CollectAfterQuarantine(const std::string& node) {
  if (!collecting_.insert(node).second) return;
  context_.simulation.After(context_.Draw(context_.options.pod_collection), [this, node] {
    collecting_.erase(node);
    if (!known_.contains(node)) CollectPods(node);
  });
}

// The pod garbage collector.
void NodeLifecycle::CollectPods(const std::string& node) {
  for (const FakeApiServer::ObjectPtr& pod : context_.server.List("pods")) {
    if (NodeOf(*pod) != node) continue;
    const bool is_done = context_.Modify("pods", KeyOf(*pod), UidOf(*pod), "status", [&](Json& object) {
      if (HasEnded(object)) return false;
      object["status"]["phase"] = "Failed";
      SetCondition(object, {"DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists"},
                   context_.Now());
      return true;
    });
    if (!is_done || !context_.DeleteObject("pods", *pod, 0)) CollectAfterQuarantine(node);  // With its next pass.
  }
}

}  // namespace kube::testing
