// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/node_fit.h"

#include <algorithm>

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

// Limits stand in for requests that are missing, as the server's defaults have it.
Amounts ContainerRequests(const Json& container) {
  Amounts requests = AmountsAt(container, {"resources", "requests"});
  requests.merge(AmountsAt(container, {"resources", "limits"}));
  return requests;
}

void Raise(Amounts& to, const Amounts& least) {
  for (const auto& [name, amount] : least) to[name] = std::max(to[name], amount);
}

// One nodeSelectorTerm: all of its requirements.
bool TermMatches(const Json& term, const Json& node) {
  const Json::Array& expressions = ItemsAt(term, {"matchExpressions"});
  const Json::Array& fields = ItemsAt(term, {"matchFields"});
  if (expressions.empty() && fields.empty()) return false;
  const Json* const labels = node.At({"metadata", "labels"});
  const Json by_field = Json::MakeObject({{"metadata.name", TextAt(node, {"metadata", "name"})}});
  return std::all_of(expressions.begin(), expressions.end(),
                     [&](const Json& requirement) { return RequirementMatches(requirement, labels); }) &&
         std::all_of(fields.begin(), fields.end(),
                     [&](const Json& requirement) { return RequirementMatches(requirement, &by_field); });
}

bool IsSelected(const Json& pod, const Json& node) {
  if (const Json* const wanted = pod.At({"spec", "nodeSelector"}); wanted && wanted->is_object()) {
    for (const auto& [name, value] : *wanted->AsObject()) {
      const Json* const label = node.At({"metadata", "labels", name});
      if (!label || !(*label == value)) return false;
    }
  }
  const Json* const affinity = pod.At(
      {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  const Json::Array* const terms = affinity ? affinity->AsArray() : nullptr;
  return !terms || std::any_of(terms->begin(), terms->end(), [&](const Json& term) { return TermMatches(term, node); });
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

Amounts AllocatableOf(const Json& node) {
  return AmountsAt(node, {"status", node.At({"status", "allocatable"}) ? "allocatable" : "capacity"});
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

Misfit FitOf(const Json& pod, const Amounts& requests, const Json& node, const Amounts& allocatable,
             const Amounts& used) {
  const Json cordon = Json::MakeObject({{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}});
  if (IsTrueAt(node, {"spec", "unschedulable"}) && !TolerationOf(pod, cordon)) {
    return {{"node(s) were unschedulable"}, true};
  }
  for (const Json& taint : ItemsAt(node, {"spec", "taints"})) {
    if (TextAt(taint, {"effect"}) == "PreferNoSchedule" || TolerationOf(pod, taint)) continue;
    return {{"node(s) had untolerated taint {" + std::string(TextAt(taint, {"key"})) + ": " +
             std::string(TextAt(taint, {"value"})) + "}"},
            true};
  }
  if (!IsSelected(pod, node)) return {{"node(s) didn't match Pod's node affinity/selector"}, true};

  Misfit misfit;
  for (const auto& [name, wanted] : requests) {
    if (wanted == 0) continue;
    const auto whole = allocatable.find(name);
    const auto taken = used.find(name);
    const std::int64_t all = whole == allocatable.end() ? 0 : whole->second;
    if (wanted <= all - (taken == used.end() ? 0 : taken->second)) continue;
    misfit.reasons.push_back(name == "pods" ? "Too many pods" : "Insufficient " + name);
    misfit.is_final = misfit.is_final || wanted > all;
  }
  return misfit;
}

std::string UnschedulableMessage(const std::vector<Misfit>& nodes) {
  if (nodes.empty()) return "no nodes available to schedule pods";
  std::map<std::string, int> counts;
  int final_ones = 0;
  for (const Misfit& node : nodes) {
    for (const std::string& reason : node.reasons) ++counts[reason];
    final_ones += node.is_final ? 1 : 0;
  }
  const auto sentence = [](std::vector<std::string> parts) {
    std::sort(parts.begin(), parts.end());
    std::string text;
    for (const std::string& part : parts) text.append(text.empty() ? "" : ", ").append(part);
    return text + ".";
  };
  std::vector<std::string> reasons, victims;
  for (const auto& [reason, count] : counts) reasons.push_back(std::to_string(count) + " " + reason);
  const int others = static_cast<int>(nodes.size()) - final_ones;
  if (others > 0) victims.push_back(std::to_string(others) + " No preemption victims found for incoming pod");
  if (final_ones > 0) victims.push_back(std::to_string(final_ones) + " Preemption is not helpful for scheduling");
  const std::string head = "0/" + std::to_string(nodes.size()) + " nodes are available: ";
  return head + sentence(reasons) + " preemption: " + head + sentence(victims);
}

}  // namespace kube::testing
