// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/co_runs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "controllers/cluster/gpu_residents.h"
#include "controllers/interference/shared_job.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/telemetry/speed_ratio.h"

namespace grus {
namespace {

using api::CoRun;

// An old mean counts as so many samples at most: it may be of another driver, or against a wrong speed alone.
constexpr std::int32_t kMostWeight = 19;
constexpr std::size_t kLongestName = 63;  // Of partners and GPU types, as the CRD has it.
constexpr double kHalfIn90 = 1.645;       // Half of a 90 % interval, in standard deviations.

// A missing end of the interval is the mean. None: nobody can have measured it.
std::optional<Interval> SpeedOf(const CoRun& run) {
  const std::optional<double> mean = ParseDecimal(run.speed);
  if (!mean || WhyNoSpeed(*mean) || run.count <= 0) return std::nullopt;
  return Interval{*mean, std::min(*mean, ParseDecimal(run.low).value_or(*mean)),
                  std::max(*mean, ParseDecimal(run.high).value_or(*mean))};
}

bool IsLegal(const CoRun& run) {
  return IsWorkloadName(run.partner) && run.gpu_type.size() <= kLongestName && SpeedOf(run).has_value();
}

void SetSpeed(CoRun& run, const Interval& speed) {
  run.speed = ToDecimal(speed.mean);
  run.low = ToDecimal(std::max(speed.low, 0.0));
  run.high = ToDecimal(speed.high);
}

// Of all samples of both. What the samples within each of them differ by is in its interval; the last term is what the
// two differ by from each other, as in the variance of a mean that is made of groups.
Interval MeanOf(const Interval& a, double a_count, const Interval& b, double b_count) {
  const double count = a_count + b_count, a_weight = a_count / count, b_weight = b_count / count;
  const double between = kHalfIn90 * (a.mean - b.mean) * std::sqrt(a_weight * b_weight / (count - 1));
  const auto half = [&](double a_half, double b_half) {
    return std::hypot(a_weight * a_half, b_weight * b_half, between);
  };
  const double mean = a_weight * a.mean + b_weight * b.mean;
  return {mean, mean - half(a.mean - a.low, b.mean - b.low), mean + half(a.high - a.mean, b.high - b.mean)};
}

CoRun Merged(const CoRun& known, CoRun added) {
  const auto before = SpeedOf(known), sample = SpeedOf(added);
  if (!before) return added;
  if (known.time == added.time) return known;
  SetSpeed(added, MeanOf(*before, std::min(known.count, kMostWeight), *sample, added.count));
  added.count = static_cast<std::int32_t>(
      std::min<std::int64_t>(std::int64_t{known.count} + added.count, std::numeric_limits<std::int32_t>::max()));
  added.time = std::max(known.time, added.time);
  return added;
}

}  // namespace

std::string CoRunName(std::string_view partner, std::string_view gpu_type) {
  return std::string(partner) + '@' + std::string(gpu_type);
}

kube::Result<CoRun> CoRunOf(const api::Measurement& beside, const api::Measurement& alone, const std::string& partner,
                            const std::string& gpu_type, kube::Time time) {
  const auto invalid = [](std::string why) { return kube::Error(kube::ErrorCode::kInvalidArgument, std::move(why)); };
  const auto shared = ThroughputOf(beside), solo = ThroughputOf(alone);
  if (!shared || !solo) return invalid("a throughput is not known");
  if (beside.is_scope_unknown || alone.is_scope_unknown) return invalid("a throughput may be of one GPU only");
  const SpeedRatio share = RatioBetween({.speed = solo->mean, .low = solo->low, .high = solo->high},
                                        {.speed = shared->mean, .low = shared->low, .high = shared->high});
  if (const auto why = WhyNoSpeed(share.usual)) return invalid("speed " + ToDecimal(share.usual) + " " + *why);
  CoRun run{.name = CoRunName(partner, gpu_type), .partner = partner, .gpu_type = gpu_type, .count = 1, .time = time};
  SetSpeed(run, {share.usual, share.least, share.most});
  return run;
}

std::vector<CoRun> MergeCoRuns(std::vector<CoRun> known, const std::vector<CoRun>& added, std::size_t limit) {
  for (CoRun sample : added) {
    if (!IsLegal(sample)) continue;
    sample.name = CoRunName(sample.partner, sample.gpu_type);
    sample.time.value = std::chrono::floor<std::chrono::seconds>(sample.time.value);
    const auto is_same = [&](const CoRun& other) {
      return other.name == sample.name || (other.partner == sample.partner && other.gpu_type == sample.gpu_type);
    };
    const auto same = std::ranges::find_if(known, is_same);
    if (same == known.end()) {
      known.push_back(std::move(sample));
      continue;
    }
    // Names that somebody else has given may be others.
    const bool is_about_it = same->partner == sample.partner && same->gpu_type == sample.gpu_type;
    CoRun kept = is_about_it ? Merged(*same, sample) : sample;
    kept.name = sample.name;
    known.erase(std::remove_if(same + 1, known.end(), is_same), known.end());
    *same = std::move(kept);
  }
  while (known.size() > limit) {
    known.erase(std::ranges::min_element(
        known, [](const CoRun& a, const CoRun& b) { return std::tie(a.time, a.name) < std::tie(b.time, b.name); }));
  }
  return known;
}

}  // namespace grus
