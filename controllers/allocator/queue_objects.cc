// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_objects.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace grus {
namespace {

constexpr std::size_t kMaxLabel = 63, kMaxLabelPrefix = 253;

bool IsAlphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Letters and digits, and within them '-', '_' and '.'.
bool IsLabelWord(std::string_view text, std::size_t most) {
  const auto is_inner = [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= most && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::ranges::all_of(text, is_inner);
}

bool IsLabelValue(std::string_view text) { return text.empty() || IsLabelWord(text, kMaxLabel); }

bool IsLabelKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsLabelWord(text, kMaxLabel);
  return IsLabelWord(text.substr(0, slash), kMaxLabelPrefix) && IsLabelWord(text.substr(slash + 1), kMaxLabel);
}

std::string NoLabelKey(const std::string& key) { return "no label can have the key \"" + key + "\": correct it"; }
std::string NoLabelValue(const std::string& value) {
  return "no label can have the value \"" + value + "\": correct it";
}

// Empty: none.
std::string ProblemOf(const kube::LabelRequirement& requirement) {
  const bool takes_values =
      requirement.op == kube::SelectorOperator::kIn || requirement.op == kube::SelectorOperator::kNotIn;
  const std::string op(EnumNames(requirement.op)[static_cast<std::size_t>(requirement.op)]);
  if (!IsLabelKey(requirement.key)) return NoLabelKey(requirement.key);
  if (takes_values && requirement.values.empty()) return "operator " + op + " needs values: add them";
  if (!takes_values && !requirement.values.empty()) return "operator " + op + " takes no values: remove them";
  const auto wrong = std::ranges::find_if_not(requirement.values, IsLabelValue);
  return wrong == requirement.values.end() ? std::string() : NoLabelValue(*wrong);
}

std::optional<std::int64_t> MilliOf(const std::optional<std::int32_t>& gpus) {
  return gpus ? std::optional(*gpus * kOneGpu) : std::nullopt;
}

QueueOrder Of(api::QueueOrder order) {
  return order == api::QueueOrder::kStrictFifo ? QueueOrder::kStrictFifo : QueueOrder::kBestEffortFifo;
}
ReclaimPolicy Of(api::ReclaimPolicy policy) {
  switch (policy) {
    case api::ReclaimPolicy::kAny: return ReclaimPolicy::kAny;
    case api::ReclaimPolicy::kLowerPriority: return ReclaimPolicy::kLowerPriority;
    case api::ReclaimPolicy::kNever: return ReclaimPolicy::kNever;
  }
  return ReclaimPolicy::kAny;
}
QueueStop Of(api::QueueStop stop) {
  switch (stop) {
    case api::QueueStop::kNone: return QueueStop::kNone;
    case api::QueueStop::kHold: return QueueStop::kHold;
    case api::QueueStop::kDrain: return QueueStop::kDrain;
  }
  return QueueStop::kNone;
}

PoolPlacement Of(api::PoolPlacement placement) {
  switch (placement) {
    case api::PoolPlacement::kBinPack: return PoolPlacement::kBinPack;
    case api::PoolPlacement::kSpread: return PoolPlacement::kSpread;
    case api::PoolPlacement::kUtilSched: return PoolPlacement::kUtilSched;
    case api::PoolPlacement::kInterference: return PoolPlacement::kInterference;
  }
  return PoolPlacement::kBinPack;
}

QueueSpec SpecOf(const api::GpuQueue& queue) {
  const api::GpuQueueSpec& from = queue.spec;
  QueueSpec spec{.name = queue.metadata.name, .parent = from.parent};
  for (const api::PoolQuota& quota : from.quotas) {
    spec.quotas.push_back({.pool = quota.pool,
                           .guaranteed_milli = MilliOf(quota.guaranteed),
                           .limit_milli = MilliOf(quota.limit),
                           .lendable_milli = MilliOf(quota.lendable),
                           .weight = quota.weight});
  }
  // One that cannot be evaluated opens the queue to nobody.
  spec.selects_namespaces = !from.namespace_selector.empty();
  spec.order = Of(from.order);
  spec.reclaim = Of(from.reclaim);
  spec.stop = Of(from.stop);
  spec.minimum_runtime_seconds = from.minimum_runtime_seconds;
  spec.maximum_runtime_seconds = from.maximum_runtime_seconds;
  spec.preemption_notice_seconds = from.preemption_notice_seconds;
  spec.preemption_delay_seconds = from.preemption_delay_seconds;
  return spec;
}

}  // namespace

SelectorProblem ProblemOf(const kube::LabelSelector& selector) {
  for (const auto& [key, value] : selector.match_labels) {
    const std::string name(key), text(value);
    if (!IsLabelKey(name)) return {"matchLabels", NoLabelKey(name)};
    if (!IsLabelValue(text)) return {"matchLabels", NoLabelValue(text)};
  }
  for (std::size_t i = 0; i < selector.match_expressions.size(); ++i) {
    std::string problem = ProblemOf(selector.match_expressions[i]);
    if (!problem.empty()) return {"matchExpressions[" + std::to_string(i) + "]", std::move(problem)};
  }
  return {};
}

DeclaredQueues ReadQueues(const Objects<api::GpuQueue>& queues, const Objects<api::NodePool>& pools,
                          const Objects<kube::Namespace>& namespaces) {
  DeclaredQueues declared;
  Objects<api::NodePool> by_age = pools;
  std::ranges::sort(by_age, {},
                    [](const auto& pool) { return std::tie(pool->metadata.creation_timestamp, pool->metadata.name); });
  for (const auto& pool : by_age) {
    declared.setup.pools.push_back({std::string(pool->metadata.name), pool->spec.node_selector,
                                    std::string(pool->spec.resource), Of(pool->spec.placement),
                                    pool->spec.least_speed_percent});
  }
  Objects<api::GpuQueue> by_name = queues;
  std::ranges::sort(by_name, {}, [](const auto& queue) { return std::string_view(queue->metadata.name); });
  std::vector<const api::GpuQueue*> selecting;
  for (const auto& queue : by_name) {
    declared.setup.queues.push_back(SpecOf(*queue));
    const SelectorProblem problem = ProblemOf(queue->spec.namespace_selector);
    if (!problem.message.empty()) {
      declared.faults.push_back({queue->metadata.name, "spec.namespaceSelector." + problem.field,
                                 QueueFaultKind::kInvalidSelector,
                                 problem.message + "; until then the queue selects no namespace, and no job is in it"});
    } else if (!queue->spec.namespace_selector.empty()) {
      selecting.push_back(queue.get());
    }
  }
  for (const auto& ns : namespaces) {
    SelectedNamespace selected{std::string(ns->metadata.name), {}};
    for (const api::GpuQueue* queue : selecting) {
      if (queue->spec.namespace_selector.Matches(ns->metadata.labels)) {
        selected.selected_by.emplace_back(queue->metadata.name);
      }
    }
    if (!selected.selected_by.empty()) declared.setup.namespaces.push_back(std::move(selected));
  }
  std::ranges::sort(declared.setup.namespaces, {}, &SelectedNamespace::ns);
  return declared;
}

}  // namespace grus
