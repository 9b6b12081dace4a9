// SPDX-License-Identifier: Apache-2.0
// When a job must have ended: spec.runPolicy.activeDeadlineSeconds after its start; or, if it sets none, once it has
// run for the spec.maximumRuntimeSeconds of its queue. It runs while it has workers, and all its runs count. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controllers/elastic/elastic_view.h"

namespace grus {

// nullopt: it may take any time. Zero or less: it must end now.
std::optional<kube::Duration> TimeUntilDeadline(const View& view);
// Why it has ended, and what helps. REQUIRES: it has a deadline.
std::string DeadlineMessage(const View& view);
// How many seconds it can run at most if it starts now. The same while it waits.
std::optional<std::int64_t> LongestRun(const View& view);
// When it ends at the latest if this becomes its status, in Unix seconds; nullopt: it has no workers, or may take any
// time.
std::optional<std::int64_t> LatestEnd(const View& view, const api::ElasticHorovodJobStatus& status);

}  // namespace grus
