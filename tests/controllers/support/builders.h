// SPDX-License-Identifier: Apache-2.0
// Values that the tests of all reconcilers put together alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/time.h"
#include "controllers/policy/pod_shape.h"

namespace grus::testing {

// So many seconds after the moment that tests begin at.
inline kube::Time At(std::int64_t seconds) {
  return kube::Time{kube::WallTime(std::chrono::seconds(1'800'000'000 + seconds))};
}

// Of a pod that wants so many GPUs and nothing else.
inline ShapePtr GpuShape(int gpus) {
  PodShape shape;
  shape.request.AddExtended(kGpuResource, gpus);
  shape.request.pods = 1;
  return std::make_shared<const PodShape>(std::move(shape));
}

// Of the condition Ready; empty if there is none.
template <typename C>
std::string ReadyReason(const std::vector<C>& conditions) {
  const C* const ready = kube::FindCondition(conditions, "Ready");
  return ready ? ready->reason : "";
}
template <typename C>
std::string ReadyMessage(const std::vector<C>& conditions) {
  const C* const ready = kube::FindCondition(conditions, "Ready");
  return ready ? ready->message : "";
}

}  // namespace grus::testing
