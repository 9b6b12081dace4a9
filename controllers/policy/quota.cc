// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/quota.h"

#include <algorithm>
#include <string_view>

namespace grus {
namespace {

using kube::FindResource;
using kube::Quantity;
using kube::ResourceList;
using kube::Wide;

constexpr std::string_view kRequests = "requests.", kLimits = "limits.", kHugePages = "hugepages-";
constexpr std::string_view kDeviceClass = "deviceclass.resource.kubernetes.io/";
constexpr std::string_view kNative[] = {"cpu", "memory", "ephemeral-storage"};  // With requests, and with limits.

bool IsDefinedByKubernetes(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}

// Whether a quota on `name` is about pods.
bool IsAboutPods(std::string_view name) {
  if (name == "pods" || name == "count/pods" || name.starts_with(kHugePages)) return true;
  std::string_view bare = name;
  const bool is_request = name.starts_with(kRequests), is_limit = name.starts_with(kLimits);
  if (is_request) bare.remove_prefix(kRequests.size());
  if (is_limit) bare.remove_prefix(kLimits.size());
  if (std::find(std::begin(kNative), std::end(kNative), bare) != std::end(kNative)) return true;
  return is_request && (bare.starts_with(kHugePages) || bare.starts_with(kDeviceClass) || !IsDefinedByKubernetes(name));
}

void Put(ResourceList& list, std::string_view name, const Quantity& amount) {
  for (auto& [key, value] : list) {
    if (key == name) {
      value = amount;
      return;
    }
  }
  list.emplace_back(name, amount);
}

void Add(ResourceList& list, const ResourceList& more) {
  for (const auto& [name, amount] : more) {
    const Quantity* had = FindResource(list, name);
    Put(list, name, had ? *had + amount : amount);
  }
}

void Raise(ResourceList& list, const ResourceList& other) {
  for (const auto& [name, amount] : other) {
    const Quantity* had = FindResource(list, name);
    if (had == nullptr || *had < amount) Put(list, name, amount);
  }
}

using Amounts = ResourceList kube::ResourceRequirements::*;

bool CountsOfPod(std::string_view name) { return name == "cpu" || name == "memory" || name.starts_with(kHugePages); }

// Requests or limits of a pod. Init containers run before the others, except those that stay (KEP-753).
ResourceList SumOf(const kube::PodSpec& spec, Amounts amounts) {
  ResourceList sum, staying, start;
  for (const kube::Container& container : spec.containers) Add(sum, container.resources.*amounts);
  for (const kube::Container& container : spec.init_containers) {
    ResourceList peak = staying;
    Add(peak, container.resources.*amounts);
    Raise(start, peak);
    if (container.restart_policy == "Always") staying = std::move(peak);
  }
  Add(sum, staying);
  Raise(sum, start);
  if (spec.resources) {
    for (const auto& [name, amount] : *spec.resources.*amounts) {
      if (CountsOfPod(name)) Put(sum, name, amount);
    }
  }
  return sum;
}

ResourceList UsageOf(const kube::PodSpec& spec) {
  ResourceList usage = {{"pods", 1}, {"count/pods", 1}};
  ResourceList requests = SumOf(spec, &kube::ResourceRequirements::requests);
  ResourceList limits = SumOf(spec, &kube::ResourceRequirements::limits);
  Add(requests, spec.overhead);
  for (auto& [name, amount] : limits) {
    const Quantity* overhead = FindResource(spec.overhead, name);
    if (overhead && !amount.is_zero()) amount = amount + *overhead;
  }
  for (const auto& [name, amount] : requests) {
    const std::string_view text = name;
    const bool is_native = std::find(std::begin(kNative), std::end(kNative), text) != std::end(kNative);
    if (is_native || text.starts_with(kHugePages)) Put(usage, text, amount);
    else if (IsDefinedByKubernetes(text) && !text.starts_with(kDeviceClass)) continue;
    Put(usage, std::string(kRequests).append(text), amount);
  }
  for (const std::string_view name : kNative) {
    if (const Quantity* limit = FindResource(limits, name)) Put(usage, std::string(kLimits).append(name), *limit);
  }
  return usage;
}

bool HasPodResources(const kube::PodSpec& spec) {
  if (!spec.resources) return false;
  const auto counts = [](const auto& item) { return CountsOfPod(item.first); };
  return std::any_of(spec.resources->requests.begin(), spec.resources->requests.end(), counts) ||
         std::any_of(spec.resources->limits.begin(), spec.resources->limits.end(), counts);
}

std::vector<std::pair<std::string, std::string>> UnstatedBy(const kube::PodSpec& spec) {
  std::vector<std::pair<std::string, std::string>> unstated;
  if (HasPodResources(spec)) return unstated;
  for (const std::string_view name : {"cpu", "memory"}) {
    bool has_request = true, has_limit = true;
    for (const auto* containers : {&spec.containers, &spec.init_containers}) {
      for (const kube::Container& container : *containers) {
        const std::string by(container.name);
        if (has_request && !FindResource(container.resources.requests, name)) {
          has_request = false;
          unstated.emplace_back(name, by);
          unstated.emplace_back(std::string(kRequests).append(name), by);
        }
        if (has_limit && !FindResource(container.resources.limits, name)) {
          has_limit = false;
          unstated.emplace_back(std::string(kLimits).append(name), by);
        }
      }
    }
  }
  return unstated;
}

// The quality of service BestEffort: nothing of cpu or memory is asked for or limited.
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
  const auto asks_for_nothing = [](const kube::Container& container) { return AsksForNothing(container.resources); };
  return std::all_of(spec.containers.begin(), spec.containers.end(), asks_for_nothing) &&
         std::all_of(spec.init_containers.begin(), spec.init_containers.end(), asks_for_nothing);
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
  if (name != "PriorityClass") return false;  // Of other objects.
  const bool has_class = !pod.priority_class.empty();
  if (op == "Exists") return has_class;
  if (op == "DoesNotExist") return !has_class;
  const bool is_listed =
      has_class && std::find(scope.values.begin(), scope.values.end(), pod.priority_class) != scope.values.end();
  return op == "In" ? is_listed : op == "NotIn" && !is_listed;
}

bool Covers(const kube::ResourceQuota& quota, const QuotaPod& pod) {
  const auto& names = quota.spec.scopes;
  if (!std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return IsInScope(pod, {name, "Exists", {}});
      })) {
    return false;
  }
  if (!quota.spec.scope_selector) return true;
  const auto& more = quota.spec.scope_selector->match_expressions;
  return std::all_of(more.begin(), more.end(),
                     [&](const kube::ScopeRequirement& scope) { return IsInScope(pod, scope); });
}

// Cores are counted in thousandths. Rounded up.
Wide AmountOf(std::string_view name, const Quantity& quantity) {
  return name.ends_with("cpu") ? quantity.MilliValue() : quantity.Value();
}

std::string TextOf(std::string_view name, Wide amount) {
  const auto value = static_cast<std::int64_t>(std::min<Wide>(amount, INT64_MAX));
  return ToText(name.ends_with("cpu") ? Quantity::OfMilli(value) : Quantity(value, Quantity::Format::kBinarySi));
}

// Why the quota takes no such pod at all, whatever is left of it; empty: it does.
std::string WhyNone(const kube::ResourceQuota& quota, const QuotaPod& pod, std::string& resource, bool& is_unstated) {
  for (const auto& [name, hard] : quota.status.hard) {
    for (const auto& [what, container] : pod.unstated) {
      if (what != std::string_view(name)) continue;
      is_unstated = true;
      resource = what;
      return "container " + container + " must state " + what;
    }
  }
  for (const auto& [name, hard] : quota.status.hard) {
    if (IsAboutPods(name) && !FindResource(quota.status.used, name)) {
      resource = std::string(name);
      return std::string(name) + ": how much is used is not counted yet";
    }
  }
  return {};
}

void LimitBy(const kube::ResourceQuota& quota, const QuotaPod& pod, const std::vector<PodsToCome>& to_come,
             QuotaRoom& room) {
  const auto set = [&](int copies, std::string resource, std::string why) {
    room.copies = copies;
    room.quota = quota.metadata.name;
    room.resource = std::move(resource);
    room.why = std::move(why);
  };
  if (std::none_of(quota.status.hard.begin(), quota.status.hard.end(),
                   [](const auto& item) { return IsAboutPods(item.first); })) {
    return;
  }
  bool is_unstated = false;
  std::string resource;
  if (std::string why = WhyNone(quota, pod, resource, is_unstated); !why.empty()) {
    if (room.copies > 0) room.is_unstated = is_unstated;
    if (room.copies > 0) set(0, std::move(resource), std::move(why));
    return;
  }
  for (const auto& [name, hard] : quota.status.hard) {
    const Quantity* usage = FindResource(pod.usage, name);
    const Wide each = usage ? AmountOf(name, *usage) : 0;
    const Quantity* used = FindResource(quota.status.used, name);
    if (each <= 0 || used == nullptr) continue;
    Wide first = 0;
    for (const PodsToCome& other : to_come) {
      const Quantity* needed = Covers(quota, *other.pod) ? FindResource(other.pod->usage, name) : nullptr;
      if (needed) first += AmountOf(name, *needed) * other.count;
    }
    const Wide left = std::max<Wide>(AmountOf(name, hard) - AmountOf(name, *used) - first, 0);
    if (left / each >= room.copies) continue;
    std::string why = std::string(name) + ": " + ToText(*used) + " of " + ToText(hard) + " used";
    if (first > 0) why += ", " + TextOf(name, first) + " for other pods on their way";
    set(static_cast<int>(left / each), std::string(name), std::move(why));
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
