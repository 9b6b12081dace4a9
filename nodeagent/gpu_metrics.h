// SPDX-License-Identifier: Apache-2.0
// The newest look at the GPUs, for Prometheus. A number that is not known is not shown, and neither is a look that is
// older than kFresh.
#pragma once

#include <string>

#include "clientlib/base/clock.h"
#include "clientlib/runtime/metrics.h"
#include "nodeagent/gpu_probe.h"

namespace grus {

inline constexpr kube::Duration kFresh = std::chrono::seconds(10);

// Adds the families grus_gpu_* to `registry`. All must outlive it.
void AddGpuMetrics(kube::Registry& registry, const GpuProbe& probe, const kube::Clock& clock);

// The families of the original Alnair's exporter, in percent: alnair_gpu_util and alnair_gpu_mem_util.
void AddAlnairMetrics(kube::Registry& registry, const GpuProbe& probe, const kube::Clock& clock,
                      const std::string& node);

}  // namespace grus
