// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/quota.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

using Amounts = std::map<std::string, Quantity, std::less<>>;

constexpr std::string_view kPlain[] = {"cpu", "memory", "ephemeral-storage"};

bool IsPlain(std::string_view name) {
  return std::find(std::begin(kPlain), std::end(kPlain), name) != std::end(kPlain);
}
bool IsExtended(std::string_view name) {
  return name.find('/') != std::string_view::npos && name.find("kubernetes.io/") == std::string_view::npos;
}

Amounts Read(const Json* amounts) {
  Amounts read;
  if (!amounts || !amounts->AsObject()) return read;
  for (const auto& [name, value] : *amounts->AsObject()) {
    const Result<Quantity> quantity = ParseQuantity(value.AsString() ? *value.AsString() : ToText(value));
    if (quantity) read[name] = *quantity;
  }
  return read;
}

// `kind`: requests or limits. Overhead adds to limits only where there are limits.
Amounts WithOverhead(const Json& pod, std::string_view kind) {
  const ResourceList total = TotalOf(pod, kind);
  Amounts sum(total.begin(), total.end());
  for (const auto& [name, amount] : Read(pod.At({"spec", "overhead"}))) {
    if (kind == "requests" || sum.contains(name)) sum[name] = SumOf(sum[name], amount);
  }
  return sum;
}

bool HasScope(const Json& pod, std::string_view scope, std::string_view op, const Json* values) {
  const bool has_deadline = pod.At({"spec", "activeDeadlineSeconds"}) != nullptr;
  const bool is_best_effort = TextAt(pod, {"status", "qosClass"}) == "BestEffort";
  if (scope == "Terminating") return has_deadline;
  if (scope == "NotTerminating") return !has_deadline;
  if (scope == "BestEffort") return is_best_effort;
  if (scope == "NotBestEffort") return !is_best_effort;
  if (scope != "PriorityClass") return false;
  const std::string_view name = TextAt(pod, {"spec", "priorityClassName"});
  if (op == "Exists" || op == "DoesNotExist") return name.empty() == (op == "DoesNotExist");
  const bool is_listed =
      values && values->AsArray() && !name.empty() &&
      std::find(values->AsArray()->begin(), values->AsArray()->end(), Json(name)) != values->AsArray()->end();
  return op == "In" ? is_listed : op == "NotIn" && !is_listed;
}

// "a=1,b=2": the amounts in `names`.
std::string TextOf(const std::set<std::string>& names, const Amounts& amounts) {
  std::string text;
  for (const std::string& name : names) {
    const auto found = amounts.find(name);
    if (found != amounts.end()) text += (text.empty() ? "" : ",") + name + "=" + ToText(found->second);
  }
  return text;
}

// What containers must state but do not: "limits.cpu for: c; memory for: c,d".
std::string Unstated(const Amounts& hard, const Json& pod) {
  std::string text;
  for (const auto& [name, amount] : hard) {
    std::string_view bare = name, kind = "requests";
    if (bare.starts_with("requests.")) bare.remove_prefix(9);
    if (bare.starts_with("limits.")) {
      bare.remove_prefix(7);
      kind = "limits";
    }
    if (bare != "cpu" && bare != "memory") continue;
    std::set<std::string> without;
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Json& container : ItemsAt(pod, {"spec", list})) {
        if (!container.At({"resources", kind, bare}))
          without.emplace(NameOf(Json::MakeObject({{"metadata", container}})));
      }
    }
    if (without.empty()) continue;
    text += (text.empty() ? "" : "; ") + name + " for: ";
    for (auto it = without.begin(); it != without.end(); ++it) text += (it == without.begin() ? "" : ",") + *it;
  }
  return text;
}

// The quota with the pod counted; nothing if the quota does not cover the pod.
Outcome<Json> Charge(const ResourceInfo& info, const Json& pod, const Json& quota) {
  const Amounts hard = Read(quota.At({"status", "hard"}));
  Amounts used = Read(quota.At({"status", "used"}));
  std::set<std::string> about_pods;
  for (const auto& [name, amount] : hard) {
    if (IsQuotaOnPods(name)) about_pods.insert(name);
  }
  if (about_pods.empty() || !IsCoveredBy(quota, pod)) return Json();
  const std::string quota_name(NameOf(quota)), pod_name(NameOf(pod));
  if (const std::string unstated = Unstated(hard, pod); !unstated.empty()) {
    return Forbidden(info, pod_name, "failed quota: " + quota_name + ": must specify " + unstated);
  }
  std::string names;
  bool is_counted = true;
  for (const std::string& name : about_pods) {
    names += (names.empty() ? "" : ",") + name;
    is_counted = is_counted && used.contains(name);
  }
  if (!is_counted)
    return Forbidden(info, pod_name, "status unknown for quota: " + quota_name + ", resources: " + names);
  Amounts usage;
  for (const auto& [name, amount] : QuotaUsageOf(pod)) {
    if (hard.contains(std::string_view(name)) && !amount.is_zero()) usage[std::string(name)] = amount;
  }
  std::set<std::string> exceeded;
  const Amounts before = used;
  for (const auto& [name, amount] : usage) {
    used[name] = SumOf(used[name], amount);
    if (used[name] > hard.find(name)->second) exceeded.insert(name);
  }
  if (!exceeded.empty()) {
    return Forbidden(info, pod_name,
                     "exceeded quota: " + quota_name + ", requested: " + TextOf(exceeded, usage) +
                         ", used: " + TextOf(exceeded, before) + ", limited: " + TextOf(exceeded, hard));
  }
  Json charged = quota;
  charged["status"]["used"] = WriteAmounts({used.begin(), used.end()});
  return charged;
}

}  // namespace

bool IsQuotaOnPods(std::string_view resource) {
  if (resource == "pods" || resource == "count/pods" || resource.starts_with("hugepages-") || IsPlain(resource)) {
    return true;
  }
  if (resource.starts_with("limits.")) return IsPlain(resource.substr(7));
  if (!resource.starts_with("requests.")) return false;
  const std::string_view bare = resource.substr(9);
  return IsPlain(bare) || bare.starts_with("hugepages-") || IsExtended(resource);
}

ResourceList TotalOf(const Json& pod, std::string_view kind) {
  Amounts sum;
  for (const Json& container : ItemsAt(pod, {"spec", "containers"})) {
    for (const auto& [name, amount] : Read(container.At({"resources", kind}))) sum[name] = SumOf(sum[name], amount);
  }
  for (const Json& container : ItemsAt(pod, {"spec", "initContainers"})) {
    for (const auto& [name, amount] : Read(container.At({"resources", kind}))) sum[name] = std::max(sum[name], amount);
  }
  return {sum.begin(), sum.end()};
}

ResourceList QuotaUsageOf(const Json& pod) {
  ResourceList usage = {{"count/pods", 1}};
  const std::string_view phase = TextAt(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return usage;
  usage.emplace_back("pods", 1);
  for (const auto& [name, amount] : WithOverhead(pod, "requests")) {
    if (IsPlain(name) || name.starts_with("hugepages-")) usage.emplace_back(name, amount);
    else if (!IsExtended(name)) continue;
    usage.emplace_back("requests." + name, amount);
  }
  for (const auto& [name, amount] : WithOverhead(pod, "limits")) {
    if (IsPlain(name)) usage.emplace_back("limits." + name, amount);
  }
  return usage;
}

bool IsCoveredBy(const Json& quota, const Json& pod) {
  if (const Json* const scopes = quota.At({"spec", "scopes"}); scopes && scopes->AsArray()) {
    for (const Json& scope : *scopes->AsArray()) {
      if (scope.AsString() && !HasScope(pod, *scope.AsString(), "Exists", nullptr)) return false;
    }
  }
  const Json* const more = quota.At({"spec", "scopeSelector", "matchExpressions"});
  if (!more || !more->AsArray()) return true;
  return std::all_of(more->AsArray()->begin(), more->AsArray()->end(), [&](const Json& scope) {
    return HasScope(pod, TextAt(scope, {"scopeName"}), TextAt(scope, {"operator"}), scope.Find("values"));
  });
}

Quantity SumOf(const Quantity& a, const Quantity& b) { return a.is_zero() ? b : a + b; }

ResourceList ReadAmounts(const Json* amounts) {
  const Amounts read = Read(amounts);
  return {read.begin(), read.end()};
}

Json WriteAmounts(const ResourceList& amounts) {
  Json written = Json::MakeObject();
  for (const auto& [name, amount] : amounts) written[name] = ToText(amount);
  return written;
}

Outcome<std::vector<Json>> AdmitByQuotas(const ResourceInfo& info, const Json& pod, Storage& storage) {
  std::vector<Json> charged;
  const std::string ns = KeyOf(pod).ns;
  for (const auto& [key, revision] : storage.Find("resourcequotas")->objects) {
    if (key.ns != ns) continue;
    Outcome<Json> quota = Charge(info, pod, revision->object());
    if (!quota) return quota.error();
    if (!quota->is_null()) charged.push_back(*std::move(quota));
  }
  return charged;
}

}  // namespace kube::testing
