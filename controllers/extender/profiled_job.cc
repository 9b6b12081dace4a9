// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/profiled_job.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "controllers/policy/decimal.h"

namespace grus {
namespace {

// Each run of a workload uses a little more or less: one number for all of them, so that predictions can be kept.
constexpr double kMemoryStepMebibytes = 64;

double RoundedMemory(std::int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return std::max(std::round(mebibytes / kMemoryStepMebibytes), 1.0) * kMemoryStepMebibytes;
}

// On the fewest GPUs that were measured: a step there has the least communication in it.
const api::ProfilePoint* SmallestPoint(const api::WorkloadProfile& profile, const std::string& gpu_type) {
  const api::ProfilePoint* smallest = nullptr;
  for (const api::ProfilePoint& point : profile.spec.points) {
    if (point.config.gpu_type != gpu_type || point.measured.step_milliseconds.empty()) continue;
    if (smallest == nullptr || point.config.gpus < smallest->config.gpus) smallest = &point;
  }
  return smallest;
}

}  // namespace

SharedJob SharedJobOf(const api::WorkloadProfile& profile, const std::string& gpu_type) {
  // Numbers in a fingerprint, or in "efficientnet-b7", are no batch size.
  const std::string& model = profile.spec.workload.model;
  const bool is_plain = !model.empty() && FamilyOf({.family = model}).name == model;
  const std::string& ns = profile.spec.workload.ns;  // What others call their models is nothing to it.
  SharedJob job{.fingerprint = profile.spec.fingerprint,
                .family = is_plain ? ns + "/" + model : profile.spec.fingerprint};
  const auto features = std::ranges::find(profile.spec.features, gpu_type, &api::GpuTypeFeatures::gpu_type);
  if (features != profile.spec.features.end()) {
    const api::ResourceUsage& usage = features->usage;
    if (usage.gpu_utilization_percent) job.solo.gpu_utilization = *usage.gpu_utilization_percent;
    if (usage.memory_bandwidth_percent) job.solo.memory_bandwidth = *usage.memory_bandwidth_percent;
    if (usage.max_gpu_memory_bytes) job.solo.memory_mebibytes = RoundedMemory(*usage.max_gpu_memory_bytes);
  }
  if (const api::ProfilePoint* const point = SmallestPoint(profile, gpu_type)) {
    job.solo.step_milliseconds = ParseDecimal(point->measured.step_milliseconds);
    if (point->config.batch_size > 0) job.solo.batch_size = point->config.batch_size;
  }
  return WithPossibleFeatures(std::move(job));
}

std::vector<CoRunSample> CoRunSamplesOf(std::span<const std::shared_ptr<const api::WorkloadProfile>> profiles) {
  std::map<std::string_view, const api::WorkloadProfile*> by_fingerprint;
  for (const auto& profile : profiles) by_fingerprint.emplace(profile->spec.fingerprint, profile.get());
  std::vector<CoRunSample> samples;
  for (const auto& profile : profiles) {
    for (const api::CoRun& run : profile->spec.co_runs) {
      const std::optional<double> speed = ParseDecimal(run.speed);
      if (!speed || WhyNoSpeed(*speed) || run.count <= 0) continue;
      const auto partner = by_fingerprint.find(run.partner);
      samples.push_back({.job = SharedJobOf(*profile, run.gpu_type),
                         .partner = partner == by_fingerprint.end()
                                        ? SharedJob{.fingerprint = run.partner, .family = run.partner}
                                        : SharedJobOf(*partner->second, run.gpu_type),
                         .gpu_type = run.gpu_type,
                         .speed = *speed,
                         .count = static_cast<double>(run.count)});
    }
  }
  return samples;
}

}  // namespace grus
