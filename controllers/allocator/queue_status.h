// SPDX-License-Identifier: Apache-2.0
// The statuses of GpuQueues and NodePools, from what the account reports. Pure functions.
//
// Ready says whether jobs can start. Faults that leave a queue out or close it make it "False" and Stalled. A queue or
// pool with warnings is Ready, with the reason of the first of them. The message of Ready names all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/allocator/queue_objects.h"

namespace grus {

// What the statuses of one pass are made of.
struct QueuesView {
  std::map<std::string_view, const api::GpuQueue*> queues = {};  // By name. They outlive the view.
  QueuesReport report = {};                                      // Also with the faults of DeclaredQueues.
  kube::Time now = {};
  bool sees_all_pods = true;                                // False: grus manages some namespaces only.
  bool sees_namespaces = true;                              // False: grus may not list them.
  std::function<bool(const kube::ObjectKey&)> is_job = {};  // Whether there is such an ElasticHorovodJob.
};

// What is wrong with an object, as users hear of it.
struct ObjectFault {
  std::string_view reason;  // Of the condition and of the event.
  std::string field;        // "spec.quotas[1].limit"; empty: the object is as it should be, and grus is not.
  std::string message;
  bool is_warning = false;
};

std::string TextOf(const ObjectFault& fault);  // With the field.

template <typename T>
struct StatusPlan {
  decltype(T::status) status;
  std::vector<ObjectFault> faults;  // The worst first.
};

StatusPlan<api::GpuQueue> PlanStatus(const api::GpuQueue& queue, const QueuesView& view);
StatusPlan<api::NodePool> PlanStatus(const api::NodePool& pool, const QueuesView& view);

api::GpuQueueReason ReasonOf(QueueFaultKind kind);

}  // namespace grus
