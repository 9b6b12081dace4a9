// SPDX-License-Identifier: Apache-2.0
// The parts of GPUs that containers have, and what they use of them, for Prometheus. A number that is not known is not
// shown: what a container uses while it is not known in which container of its pod a process is, or the GPU is lost. A
// part goes with its pod.
#pragma once

#include <functional>
#include <memory>

#include "clientlib/base/clock.h"
#include "clientlib/runtime/metrics.h"
#include "nodeagent/gpu_probe.h"
#include "nodeagent/sharing/given_parts.h"

namespace grus {

inline constexpr kube::Duration kPartsFresh = std::chrono::seconds(30);

using NewestParts = std::function<std::shared_ptr<const GivenParts>()>;  // Null: not known. Thread-safe.

// Adds the families grus_gpu_part_* and grus_gpu_partless_* to `registry`. All must outlive it.
void AddPartMetrics(kube::Registry& registry, NewestParts newest_parts, PartWatch::NewestLook newest_look,
                    const kube::Clock& clock);

}  // namespace grus
