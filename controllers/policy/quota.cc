// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/quota.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "controllers/policy/pod_needs.h"
#include "controllers/policy/resources.h"

namespace grus {
namespace {

using kube::FindResource;
using kube::Quantity;
using kube::ResourceList;
using kube::Wide;

constexpr std::string_view kRequests = "requests.", kLimits = "limits.", kHugePages = "hugepages-";

// Whether quotas limit both its requests and its limits.
bool IsNative(std::string_view name) { return name == "cpu" || name == "memory" || name == "ephemeral-storage"; }

bool IsDefinedByKubernetes(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}

// Whether a quota on `name` is about pods.
bool IsAboutPods(std::string_view name) {
  if (name == "pods" || name == "count/pods" || name.starts_with(kHugePages)) return true;
  const bool is_request = name.starts_with(kRequests), is_limit = name.starts_with(kLimits);
  const std::string_view bare = name.substr(is_request ? kRequests.size() : is_limit ? kLimits.size() : 0);
  if (IsNative(bare)) return true;
  return is_request &&
         (bare.starts_with(kHugePages) || bare.starts_with(kDeviceClassPrefix) || !IsDefinedByKubernetes(name));
}

using Amounts = decltype(QuotaPod::usage);

bool CountsOfPod(std::string_view name) { return name == "cpu" || name == "memory" || name.starts_with(kHugePages); }

Amounts SumOf(const kube::PodSpec& spec, ResourceList kube::ResourceRequirements::*part) {
  Amounts sum;
  for (const auto& [name, amount] : PodNeeds(spec, part)) sum.emplace_hint(sum.end(), name, amount);
  if (spec.resources) {
    for (const auto& [name, amount] : *spec.resources.*part) {
      if (CountsOfPod(name)) sum[std::string(name)] = amount;
    }
  }
  return sum;
}

Amounts UsageOf(const kube::PodSpec& spec) {
  Amounts usage = {{"pods", 1}, {"count/pods", 1}};
  Amounts requests = SumOf(spec, &kube::ResourceRequirements::requests);
  Amounts limits = SumOf(spec, &kube::ResourceRequirements::limits);
  for (const auto& [name, amount] : spec.overhead) {
    Quantity& request = requests[std::string(name)];
    request = request + amount;
  }
  for (auto& [name, amount] : limits) {
    const Quantity* overhead = FindResource(spec.overhead, name);
    if (overhead && !amount.is_zero()) amount = amount + *overhead;
  }
  for (const auto& [name, amount] : requests) {
    if (IsNative(name) || name.starts_with(kHugePages)) usage[name] = amount;
    else if (IsDefinedByKubernetes(name) && !name.starts_with(kDeviceClassPrefix)) continue;
    usage[std::string(kRequests) + name] = amount;
  }
  for (const auto& [name, amount] : limits) {
    if (IsNative(name)) usage[std::string(kLimits) + name] = amount;
  }
  return usage;
}

bool HasPodResources(const kube::PodSpec& spec) {
  if (!spec.resources) return false;
  const auto counts = [](const auto& item) { return CountsOfPod(item.first); };
  return std::ranges::any_of(spec.resources->requests, counts) || std::ranges::any_of(spec.resources->limits, counts);
}

std::map<std::string, std::string, std::less<>> UnstatedBy(const kube::PodSpec& spec) {
  std::map<std::string, std::string, std::less<>> unstated;
  if (HasPodResources(spec)) return unstated;
  for (const auto* containers : {&spec.containers, &spec.init_containers}) {
    for (const kube::Container& container : *containers) {
      const auto note = [&](const std::string& name) { unstated.try_emplace(name, container.name); };
      for (const std::string name : {"cpu", "memory"}) {
        if (!FindResource(container.resources.requests, name)) {
          note(name);
          note(std::string(kRequests) + name);
        }
        if (!FindResource(container.resources.limits, name)) note(std::string(kLimits) + name);
      }
    }
  }
  return unstated;
}

// The quality of service BestEffort: no request and no limit for cpu or memory.
bool AsksForNothing(const kube::ResourceRequirements& resources) {
  for (const auto* list : {&resources.requests, &resources.limits}) {
    for (const std::string_view name : {"cpu", "memory"}) {
      const Quantity* amount = FindResource(*list, name);
      if (amount && *amount > Quantity(0)) return false;
    }
  }
  return true;
}

bool IsBestEffort(const kube::PodSpec& spec) {
  if (spec.resources) return AsksForNothing(*spec.resources);
  return std::ranges::all_of(spec.containers, AsksForNothing, &kube::Container::resources) &&
         std::ranges::all_of(spec.init_containers, AsksForNothing, &kube::Container::resources);
}

bool NamesNamespaces(const kube::PodSpec& spec) {
  if (!spec.affinity) return false;
  for (const auto* affinity : {&spec.affinity->pod, &spec.affinity->pod_anti}) {
    if (!*affinity) continue;
    for (const kube::PodAffinityTerm& term : (*affinity)->required) {
      if (!term.namespaces.empty() || term.namespace_selector) return true;
    }
  }
  return false;
}

bool IsInScope(const QuotaPod& pod, const kube::ScopeRequirement& scope) {
  const std::string_view name = scope.scope_name, op = scope.op;
  if (name == "Terminating") return pod.has_deadline;
  if (name == "NotTerminating") return !pod.has_deadline;
  if (name == "BestEffort") return pod.is_best_effort;
  if (name == "NotBestEffort") return !pod.is_best_effort;
  if (name == "CrossNamespacePodAffinity") return pod.names_namespaces;
  if (name != "PriorityClass") return false;  // Such scopes are about other objects.
  const bool has_class = !pod.priority_class.empty();
  if (op == "Exists") return has_class;
  if (op == "DoesNotExist") return !has_class;
  const bool is_listed = has_class && std::ranges::find(scope.values, pod.priority_class) != scope.values.end();
  return op == "In" ? is_listed : op == "NotIn" && !is_listed;
}

bool Covers(const kube::ResourceQuota& quota, const QuotaPod& pod) {
  const auto is_in = [&](const kube::ScopeRequirement& scope) { return IsInScope(pod, scope); };
  const auto is_in_named = [&](const std::string& name) { return is_in({name, "Exists", {}}); };
  return std::ranges::all_of(quota.spec.scopes, is_in_named) &&
         (!quota.spec.scope_selector || std::ranges::all_of(quota.spec.scope_selector->match_expressions, is_in));
}

// Cores are counted in thousandths. Rounded up.
Wide AmountOf(std::string_view name, const Quantity& quantity) {
  return name.ends_with("cpu") ? quantity.MilliValue() : quantity.Value();
}

Wide UsageOf(const QuotaPod& pod, std::string_view name) {
  const auto usage = pod.usage.find(name);
  return usage == pod.usage.end() ? 0 : AmountOf(name, usage->second);
}

std::string TextOf(std::string_view name, Wide amount) {
  const auto value = static_cast<std::int64_t>(std::min<Wide>(amount, INT64_MAX));
  return ToText(name.ends_with("cpu") ? Quantity::OfMilli(value) : Quantity(value, Quantity::Format::kBinarySi));
}

// Zero copies if the quota admits no such pod, however much is left; nullopt: it may.
std::optional<QuotaRoom> TakesNone(const kube::ResourceQuota& quota, const QuotaPod& pod) {
  for (const auto& [name, hard] : quota.status.hard) {
    if (const auto unstated = pod.unstated.find(name.view()); unstated != pod.unstated.end()) {
      const auto& [what, container] = *unstated;
      return QuotaRoom{0, quota.metadata.name, what, "container " + container + " must state " + what, true};
    }
  }
  for (const auto& [name, hard] : quota.status.hard) {
    if (!IsAboutPods(name) || FindResource(quota.status.used, name)) continue;
    const std::string what(name);
    return QuotaRoom{0, quota.metadata.name, what, what + ": the quota controller has not counted its use yet"};
  }
  return std::nullopt;
}

void LimitBy(const kube::ResourceQuota& quota, const QuotaPod& pod, const std::vector<PodsToCome>& to_come,
             QuotaRoom& room) {
  if (room.copies <= 0) return;  // The first quota that admits none is named.
  if (std::ranges::none_of(quota.status.hard, [](const auto& item) { return IsAboutPods(item.first); })) return;
  if (auto none = TakesNone(quota, pod)) {
    room = *std::move(none);
    return;
  }
  for (const auto& [name, hard] : quota.status.hard) {
    const Wide each = UsageOf(pod, name);
    const Quantity* used = FindResource(quota.status.used, name);
    if (each <= 0 || used == nullptr) continue;
    Wide first = 0;
    for (const PodsToCome& other : to_come) {
      if (Covers(quota, *other.pod)) first += UsageOf(*other.pod, name) * other.count;
    }
    const Wide left = std::max<Wide>(AmountOf(name, hard) - AmountOf(name, *used) - first, 0);
    if (left / each >= room.copies) continue;
    std::string why = std::string(name) + ": " + ToText(*used) + " of " + ToText(hard) + " used";
    if (first > 0) why += ", " + TextOf(name, first) + " for other pods on their way";
    room = {static_cast<int>(left / each), quota.metadata.name, std::string(name), std::move(why)};
  }
}

}  // namespace

QuotaPod QuotaPodOf(const kube::Pod& pod) {
  QuotaPod seen;
  seen.priority_class = std::string(pod.spec.priority_class_name);
  seen.is_best_effort = IsBestEffort(pod.spec);
  seen.has_deadline = pod.spec.active_deadline_seconds.has_value();
  seen.names_namespaces = NamesNamespaces(pod.spec);
  seen.usage = UsageOf(pod.spec);
  seen.unstated = UnstatedBy(pod.spec);
  return seen;
}

QuotaRoom QuotaRoomFor(const QuotaList& quotas, const QuotaPod& pod, const std::vector<PodsToCome>& to_come,
                       int at_most) {
  QuotaRoom room;
  room.copies = at_most;
  for (const auto& quota : quotas) {
    if (Covers(*quota, pod)) LimitBy(*quota, pod, to_come, room);
  }
  return room;
}

bool MayAdmitMore(const kube::ResourceQuota* before, const kube::ResourceQuota* after) {
  if (before == nullptr) return false;
  if (after == nullptr || before->spec.scopes != after->spec.scopes ||
      before->spec.scope_selector != after->spec.scope_selector) {
    return true;
  }
  for (const auto& [name, was] : before->status.hard) {
    const Quantity* is = FindResource(after->status.hard, name);
    if (is == nullptr || *is > was) return true;
  }
  for (const auto& [name, is] : after->status.used) {
    const Quantity* was = FindResource(before->status.used, name);
    if (was == nullptr || is < *was) return true;
  }
  return false;
}

}  // namespace grus
