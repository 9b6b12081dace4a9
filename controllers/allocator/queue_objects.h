// SPDX-License-Identifier: Apache-2.0
// What users declared of queues and pools, read from their objects. Pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "clientlib/model/core_v1.h"
#include "controllers/queues/queue_setup.h"
#include "crds/types/gpu_queue.h"
#include "crds/types/node_pool.h"

namespace grus {

template <typename T>
using Objects = std::vector<std::shared_ptr<const T>>;

struct DeclaredQueues {
  QueueSetup setup;
  std::vector<QueueFault> faults = {};  // Selectors that cannot be evaluated. The setup cannot say them.
};

// The same objects give the same value, in whatever order they come. One that is being deleted counts until it is gone.
DeclaredQueues ReadQueues(const Objects<api::GpuQueue>& queues, const Objects<api::NodePool>& pools,
                          const Objects<kube::Namespace>& namespaces);

// Why a selector cannot be evaluated, and what to change; both empty: it can.
struct SelectorProblem {
  std::string field, message;  // The field within the selector: "matchExpressions[0]".
  friend bool operator==(const SelectorProblem&, const SelectorProblem&) = default;
};
SelectorProblem ProblemOf(const kube::LabelSelector& selector);

}  // namespace grus
