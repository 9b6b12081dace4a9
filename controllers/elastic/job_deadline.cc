// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_deadline.h"

#include <algorithm>
#include <chrono>

#include "controllers/elastic/elastic_status.h"

namespace grus {
namespace {

using kube::Duration;
using std::chrono::seconds;

// The schema of activeDeadlineSeconds has no maximum, and a Duration holds 292 years.
constexpr seconds kCentury = std::chrono::hours(24 * 365 * 100);

std::optional<seconds> OwnLimit(const View& view) {
  const auto& limit = view.job->spec.run_policy.active_deadline_seconds;
  return limit ? std::optional(seconds(std::min<std::int64_t>(*limit, kCentury.count()))) : std::nullopt;
}

seconds RunUntilLastScale(const api::ElasticHorovodJobStatus& status) {
  return seconds(std::clamp<std::int64_t>(status.usage ? status.usage->run_seconds : 0, 0, kCentury.count()));
}

// Without the present run.
seconds LeftOfQueuesLimit(const View& view, const api::ElasticHorovodJobStatus& status) {
  return seconds(view.runtime_limit->seconds) - RunUntilLastScale(status);
}

}  // namespace

std::optional<Duration> TimeUntilDeadline(const View& view) {
  const api::ElasticHorovodJobStatus& status = view.job->status;
  if (const auto limit = OwnLimit(view)) {
    if (!status.start_time) return std::nullopt;
    return *limit - (view.now.value - status.start_time->value);
  }
  if (!view.runtime_limit) return std::nullopt;
  const bool runs = status.last_scale && status.last_scale->to > 0;
  const Duration present = runs ? view.now.value - status.last_scale->time.value : Duration::zero();
  return LeftOfQueuesLimit(view, status) - std::max(present, Duration::zero());
}

std::string DeadlineMessage(const View& view) {
  if (const auto limit = OwnLimit(view)) {
    return "the job did not end within spec.runPolicy.activeDeadlineSeconds (" + std::to_string(limit->count()) + " s)";
  }
  return "the job has run for the " + std::to_string(view.runtime_limit->seconds) + " s that GpuQueue " +
         view.runtime_limit->queue +
         " allows (spec.maximumRuntimeSeconds); to let it run longer, raise that limit, or set "
         "spec.runPolicy.activeDeadlineSeconds of the job, which then counts instead, and create the job again";
}

std::optional<std::int64_t> LongestRun(const View& view) {
  std::optional<seconds> longest = OwnLimit(view);
  if (!longest && view.runtime_limit) longest = LeftOfQueuesLimit(view, view.job->status);
  if (!longest) return std::nullopt;
  return std::clamp<std::int64_t>(longest->count(), 0, api::kLongestRuntime);
}

std::optional<std::int64_t> LatestEnd(const View& view, const api::ElasticHorovodJobStatus& status) {
  if (HasEnded(status) || status.replicas.granted == 0) return std::nullopt;
  if (const auto limit = OwnLimit(view)) {
    if (!status.start_time) return std::nullopt;
    return UnixSeconds(*status.start_time) + limit->count();
  }
  if (!view.runtime_limit || !status.last_scale || status.last_scale->to == 0) return std::nullopt;
  return UnixSeconds(status.last_scale->time) + LeftOfQueuesLimit(view, status).count();
}

}  // namespace grus
