// SPDX-License-Identifier: Apache-2.0
// What is wrong with a queue, for its status.
#pragma once

#include <string>
#include <string_view>

namespace grus {

enum class QueueFaultKind {
  // The queue is left out, with all queues below it: its place in the tree is not known, so nothing new starts in it
  // and nothing is guaranteed to it. What runs goes on, and is not reclaimed because of a typing error.
  kDuplicateName,
  kParentMissing,
  kParentCycle,
  // The queue is closed in one pool, with all queues below it: nothing new starts there. What the quota says and is not
  // at fault still holds.
  kTwoQuotas,
  kNegativeNumber,
  kWeightTooSmall,
  kLimitBelowGuarantee,
  // A queue above it is left out, or closed in one pool.
  kParentFaulty,
  // No job can be in the queue.
  kInvalidSelector,
  // Warnings: the queue goes on.
  kPoolMissing,             // The quota counts nowhere.
  kGuaranteesExceedParent,  // The guarantees of siblings are lowered in proportion, until they fit into the parent's.
  kGuaranteesExceedPool,    // The same for queues without parent.
  kLimitBelowUse,           // Nothing is stopped for it; nothing new starts.
  kNamespaceInTwoQueues,    // Jobs of that namespace that name no queue wait.
};
std::string_view ToString(QueueFaultKind kind);
bool IsWarning(QueueFaultKind kind);

struct QueueFault {
  std::string queue;
  std::string field;  // "spec.quotas[1].limit".
  QueueFaultKind kind = QueueFaultKind::kParentMissing;
  std::string message;  // With numbers, what it means, and the remedy.
  friend bool operator==(const QueueFault&, const QueueFault&) = default;
};

// "spec.quotas[1].limit"; "spec.quotas" if the spec has none for the pool: `quota` is negative.
std::string QuotaField(int quota, std::string_view name);

}  // namespace grus
