// SPDX-License-Identifier: Apache-2.0
// Which queue a job is in: the one that it names; else the one that selects its namespace; else the default queue. Pure
// functions: the caller evaluates selectors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/queues/queue_tree.h"

namespace grus {

struct QueueWish {
  std::string_view queue_name = {};  // Empty: the job names none.
  std::string_view ns = {};
  std::vector<std::string> selected_by = {};  // The queues whose selectors match the namespace, in any order.
};

// Where a parent and a queue below it select the same namespace, the one below has it. The error says why the job
// waits, and what to change: the queue does not exist or is not for this namespace, or several queues select it.
kube::Result<QueueIndex> QueueOf(const QueueTree& tree, const QueueWish& wish);

struct SelectedNamespace {
  std::string ns;
  std::vector<std::string> selected_by;
  friend bool operator==(const SelectedNamespace&, const SelectedNamespace&) = default;
};

// Namespaces that more than one queue selects, as faults of each of these.
std::vector<QueueFault> NamespacesInTwoQueues(const QueueTree& tree, const std::vector<SelectedNamespace>& namespaces);

}  // namespace grus
