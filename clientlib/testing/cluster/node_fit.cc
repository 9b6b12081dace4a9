// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/node_fit.h"

#include <algorithm>

#include "clientlib/model/json_reader.h"
#include "clientlib/model/quantity.h"
#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

std::int64_t Milli(const Json& amount) {
  if (const std::int64_t* const number = amount.AsInt()) return *number * 1000;
  const std::string* const text = amount.AsString();
  const Result<Quantity> parsed = ParseQuantity(text ? std::string_view(*text) : "0");
  return parsed ? parsed->MilliValue() : 0;
}

Amounts AmountsAt(const Json& json, JsonPath path) {
  Amounts amounts;
  const Json* const found = json.At(path);
  if (const Json::Object* const members = found ? found->AsObject() : nullptr) {
    for (const auto& [name, amount] : *members) amounts[name] = Milli(amount);
  }
  return amounts;
}

// Limits replace missing requests, as the server's defaults do.
Amounts ContainerRequests(const Json& container) {
  Amounts requests = AmountsAt(container, {"resources", "requests"});
  requests.merge(AmountsAt(container, {"resources", "limits"}));
  return requests;
}

void Raise(Amounts& to, const Amounts& least) {
  for (const auto& [name, amount] : least) to[name] = std::max(to[name], amount);
}

bool IsSelected(const PodNeeds& pod, const FitNode& node) {
  if (const Json* const wanted = pod.object.At({"spec", "nodeSelector"}); wanted && wanted->is_object()) {
    for (const auto& [name, value] : *wanted->AsObject()) {
      const auto label = node.labels.find(name);
      if (label == node.labels.end() || !value.AsString() || label->second != *value.AsString()) return false;
    }
  }
  if (!pod.affinity.node || !pod.affinity.node->required) return true;
  return pod.affinity.node->required->Matches(node.labels, std::string(TextAt(node.object, {"metadata", "name"})));
}

bool Clash(const ContainerPort& a, const ContainerPort& b) {
  const auto is_any = [](const ContainerPort& port) { return port.host_ip == "" || port.host_ip == "0.0.0.0"; };
  const auto protocol = [](const ContainerPort& port) {
    return port.protocol == "" ? std::string_view("TCP") : port.protocol.view();
  };
  return a.host_port == b.host_port && protocol(a) == protocol(b) && (is_any(a) || is_any(b) || a.host_ip == b.host_ip);
}

bool HasFreePorts(const PodNeeds& pod, const Load& load) {
  return std::none_of(pod.host_ports.begin(), pod.host_ports.end(), [&](const ContainerPort& wanted) {
    return std::any_of(load.host_ports.begin(), load.host_ports.end(),
                       [&](const ContainerPort& taken) { return Clash(wanted, taken); });
  });
}

// Whether a term of `owner` selects `other`.
bool IsAbout(const PodAffinityTerm& term, const PodNeeds& owner, const PodNeeds& other) {
  const bool is_in_namespace =
      (term.namespaces.empty() && !term.namespace_selector && owner.ns == other.ns) ||
      (term.namespace_selector && term.namespace_selector->empty()) ||
      std::find(term.namespaces.begin(), term.namespaces.end(), other.ns) != term.namespaces.end();
  return is_in_namespace && term.label_selector && term.label_selector->Matches(other.labels);
}

void AddTopologies(const PodNeeds& owner, const PodNeeds& other, const FitNode& node,
                   std::set<std::pair<std::string, std::string>>& to) {
  if (!owner.affinity.pod_anti) return;
  for (const PodAffinityTerm& term : owner.affinity.pod_anti->required) {
    const auto label = node.labels.find(term.topology_key);
    if (label != node.labels.end() && IsAbout(term, owner, other)) to.emplace(term.topology_key, label->second);
  }
}

bool IsIn(const FitNode& node, const std::set<std::pair<std::string, std::string>>& topologies) {
  return std::any_of(topologies.begin(), topologies.end(), [&](const auto& topology) {
    const auto label = node.labels.find(topology.first);
    return label != node.labels.end() && label->second == topology.second;
  });
}

// "3 of this, 1 of that."
std::string Sentence(std::vector<std::string> parts) {
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : ", ").append(part);
  return text + ".";
}

std::string Available(const std::map<std::string, Misfit>& nodes) {
  return "0/" + std::to_string(nodes.size()) + " nodes are available: ";
}

}  // namespace

void Add(Amounts& to, const Amounts& what, int sign) {
  for (const auto& [name, amount] : what) to[name] += sign * amount;
}

// KEP-753: an init container runs beside the sidecars that were started before it.
Amounts RequestsOf(const Json& pod) {
  Amounts sidecars, peak;
  for (const Json& container : ItemsAt(pod, {"spec", "initContainers"})) {
    Amounts now = ContainerRequests(container);
    Add(now, sidecars);
    Raise(peak, now);
    if (TextAt(container, {"restartPolicy"}) == "Always") sidecars = std::move(now);
  }
  Amounts requests = std::move(sidecars);
  for (const Json& container : ItemsAt(pod, {"spec", "containers"})) Add(requests, ContainerRequests(container));
  Raise(requests, peak);
  Add(requests, AmountsAt(pod, {"spec", "overhead"}));
  requests["pods"] = 1000;
  return requests;
}

const Json* TolerationOf(const Json& pod, const Json& taint) {
  for (const Json& toleration : ItemsAt(pod, {"spec", "tolerations"})) {
    const std::string_view effect = TextAt(toleration, {"effect"});
    if (!effect.empty() && effect != TextAt(taint, {"effect"})) continue;
    const std::string_view key = TextAt(toleration, {"key"});
    const bool is_any_value = TextAt(toleration, {"operator"}) == "Exists";
    if (key.empty() ? !is_any_value : key != TextAt(taint, {"key"})) continue;
    if (is_any_value || TextAt(toleration, {"value"}) == TextAt(taint, {"value"})) return &toleration;
  }
  return nullptr;
}

PodNeeds NeedsOf(const Json& pod) {
  PodNeeds needs;
  needs.ns = TextAt(pod, {"metadata", "namespace"});
  if (const Json* const labels = pod.At({"metadata", "labels"}); labels && labels->is_object()) {
    for (const auto& [name, value] : *labels->AsObject()) {
      if (value.AsString()) needs.labels.emplace(name, *value.AsString());
    }
  }
  needs.priority = IntAt(pod, {"spec", "priority"});
  needs.requests = RequestsOf(pod);
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Json& container : ItemsAt(pod, {"spec", list})) {
      if (list == "initContainers" && TextAt(container, {"restartPolicy"}) != "Always") continue;
      for (const Json& port : ItemsAt(container, {"ports"})) {
        const std::int64_t number = IntAt(port, {"hostPort"});
        if (number == 0) continue;
        needs.host_ports.push_back({static_cast<std::int32_t>(number), std::string(TextAt(port, {"protocol"})),
                                    std::string(TextAt(port, {"hostIP"}))});
      }
    }
  }
  if (const Json* const affinity = pod.At({"spec", "affinity"})) {
    // The server refuses an affinity that cannot be read: ignore it.
    if (Result<Affinity> read = ReadText<Affinity>(ToText(*affinity))) needs.affinity = *std::move(read);
  }
  needs.object = pod;
  return needs;
}

FitNode FitNodeOf(const Json& node) {
  FitNode fit;
  fit.object = node;
  if (const Json* const labels = node.At({"metadata", "labels"}); labels && labels->is_object()) {
    for (const auto& [name, value] : *labels->AsObject()) {
      if (value.AsString()) fit.labels.emplace(name, *value.AsString());
    }
  }
  fit.allocatable = AmountsAt(node, {"status", node.At({"status", "allocatable"}) ? "allocatable" : "capacity"});
  return fit;
}

void Load::Add(const PodNeeds& pod) {
  kube::testing::Add(used, pod.requests);
  host_ports.insert(host_ports.end(), pod.host_ports.begin(), pod.host_ports.end());
}

void Load::Remove(const PodNeeds& pod) {
  kube::testing::Add(used, pod.requests, -1);
  for (const ContainerPort& port : pod.host_ports) {
    host_ports.erase(std::find(host_ports.begin(), host_ports.end(), port));
  }
}

void Repulsion::Add(const PodNeeds& pod, const PodNeeds& other, const FitNode& node) {
  AddTopologies(pod, other, node, own);
  AddTopologies(other, pod, node, theirs);
}

Misfit FitOf(const PodNeeds& pod, const FitNode& node, const Load& load, const Repulsion& repulsion) {
  const Json cordon = Json::MakeObject({{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}});
  if (IsTrueAt(node.object, {"spec", "unschedulable"}) && !TolerationOf(pod.object, cordon)) {
    return {{"node(s) were unschedulable"}, true};
  }
  for (const Json& taint : ItemsAt(node.object, {"spec", "taints"})) {
    if (TextAt(taint, {"effect"}) == "PreferNoSchedule" || TolerationOf(pod.object, taint)) continue;
    return {{"node(s) had untolerated taint {" + std::string(TextAt(taint, {"key"})) + ": " +
             std::string(TextAt(taint, {"value"})) + "}"},
            true};
  }
  if (!IsSelected(pod, node)) return {{"node(s) didn't match Pod's node affinity/selector"}, true};
  if (!HasFreePorts(pod, load)) return {{"node(s) didn't have free ports for the requested pod ports"}, false};

  Misfit misfit;
  for (const auto& [name, wanted] : pod.requests) {
    if (wanted == 0) continue;
    const auto whole = node.allocatable.find(name);
    const auto taken = load.used.find(name);
    const std::int64_t all = whole == node.allocatable.end() ? 0 : whole->second;
    if (wanted <= all - (taken == load.used.end() ? 0 : taken->second)) continue;
    misfit.reasons.push_back(name == "pods" ? "Too many pods" : "Insufficient " + name);
    misfit.is_final = misfit.is_final || wanted > all;
  }
  if (!misfit.reasons.empty()) return misfit;
  if (IsIn(node, repulsion.own)) return {{"node(s) didn't match pod anti-affinity rules"}, false};
  if (IsIn(node, repulsion.theirs)) return {{"node(s) didn't satisfy existing pods anti-affinity rules"}, false};
  return misfit;
}

std::string UnschedulableMessage(const std::map<std::string, Misfit>& nodes, const std::string& preemption) {
  if (nodes.empty()) return "no nodes available to schedule pods";
  std::map<std::string, int> counts;
  for (const auto& [name, node] : nodes) {
    for (const std::string& reason : node.reasons) ++counts[reason];
  }
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts) reasons.push_back(std::to_string(count) + " " + reason);
  const std::string head = Available(nodes) + Sentence(std::move(reasons));
  // Before preemption the scheduler tries to deallocate device claims.
  return preemption.empty() ? head : head + " no new claims to deallocate, preemption: " + preemption;
}

std::string NoVictimsMessage(const std::map<std::string, Misfit>& nodes) {
  const auto final_ones =
      std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.second.is_final; });
  const auto others = static_cast<std::ptrdiff_t>(nodes.size()) - final_ones;
  std::vector<std::string> victims;
  if (others > 0) victims.push_back(std::to_string(others) + " No preemption victims found for incoming pod");
  if (final_ones > 0) victims.push_back(std::to_string(final_ones) + " Preemption is not helpful for scheduling");
  return Available(nodes) + Sentence(std::move(victims));
}

}  // namespace kube::testing
