// SPDX-License-Identifier: Apache-2.0
// States of a pod's life, for the observers of tests and benches.
#pragma once

#include "clientlib/model/pod.h"

namespace kit {

inline bool IsBound(const kube::Pod& pod) { return !pod.spec.node_name.empty(); }
inline bool IsGated(const kube::Pod& pod) { return !pod.spec.scheduling_gates.empty(); }
inline bool IsReady(const kube::Pod& pod) { return kube::IsConditionTrue(pod.status.conditions, "Ready"); }
inline bool IsUnschedulable(const kube::Pod& pod) {
  const kube::CoreCondition* const scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
  return scheduled && !scheduled->is_true() && scheduled->reason == "Unschedulable";
}

}  // namespace kit
