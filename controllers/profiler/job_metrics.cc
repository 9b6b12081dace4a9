// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/job_metrics.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "controllers/profiler/progress_watch.h"
#include "controllers/profiler/usage_watch.h"

namespace grus {
namespace {

using kube::Registry;

// Two objects of one name may have pods at a time: one that was made again, and the one before it.
std::map<Registry::LabelValues, GpuInterval> ByName(const std::vector<JobNow>& jobs) {
  std::map<Registry::LabelValues, GpuInterval> found;
  for (const JobNow& job : jobs) {
    GpuInterval& use = found[{job.ref.key.ns, job.ref.kind, job.ref.key.name}];
    const std::int32_t gpus = use.gpus + job.use.gpus;
    if (job.use.utilization && gpus > 0) {
      use.utilization =
          (use.utilization.value_or(*job.use.utilization) * use.gpus + *job.use.utilization * job.use.gpus) / gpus;
    }
    if (job.use.max_memory) use.max_memory = std::max(use.max_memory.value_or(0), *job.use.max_memory);
    use.memory = use.gpus == 0 || use.memory == job.use.memory ? job.use.memory : 0;
    use.gpus = gpus;
  }
  return found;
}

}  // namespace

void AddUsageMetrics(Registry& registry, const UsageWatch& watch) {
  const auto add = [&](const char* name, const char* help,
                       std::function<std::optional<double>(const GpuInterval&)> value) {
    registry.AddGaugeFamily(name, help, {"job_namespace", "job_kind", "job_name"}, [&watch, value = std::move(value)] {
      Registry::Samples samples;
      for (const auto& [labels, use] : ByName(watch.RunningJobs())) {
        if (const auto number = value(use)) samples.emplace_back(labels, *number);
      }
      return samples;
    });
  };
  add("grus_job_gpus", "GPUs of the pods of a job that run.",
      [](const GpuInterval& use) { return std::optional<double>(use.gpus); });
  add("grus_job_gpu_utilization_ratio", "Part of the last minute in which a kernel ran, the mean of a job's GPUs.",
      [](const GpuInterval& use) { return use.utilization; });
  add("grus_job_gpu_memory_used_bytes", "Most memory in use on any GPU of a job in the last minute.",
      [](const GpuInterval& use) { return use.max_memory; });
  add("grus_job_gpu_memory_bytes", "Memory of each GPU of a job, where all its nodes are labelled with the same.",
      [](const GpuInterval& use) { return use.memory > 0 ? std::optional(use.memory) : std::nullopt; });
}

void AddProgressMetrics(Registry& registry, const ProgressWatch& watch) {
  registry.AddGaugeFamily("grus_job_step", "The step that the training of an ElasticHorovodJob has reached.",
                          {"job_namespace", "job_name"}, [&watch] {
                            Registry::Samples samples;
                            for (const auto& [job, step] : watch.Steps()) samples.push_back({{job.ns, job.name}, step});
                            return samples;
                          });
}

}  // namespace grus
