// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/top.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "controllers/kubectl/table.h"
#include "controllers/policy/run_job.h"

namespace grus {
namespace {

std::string Percent(const std::optional<std::int32_t>& percent) {
  return percent ? std::to_string(*percent) + "%" : "-";
}

std::string Bytes(const std::optional<std::int64_t>& bytes) {
  return bytes ? BytesText(static_cast<double>(*bytes)) : "-";
}

std::string Known(const std::optional<api::RunCharacter>& character, std::string api::RunCharacter::*field) {
  return character && (*character).*field != "Unknown" ? (*character).*field : "-";
}

// GPUs' worth of time that it did not use.
double Idle(const api::WorkloadRun& run) {
  return run.gpus * (100.0 - run.usage.gpu_utilization_percent.value_or(100));
}

}  // namespace

std::string TopText(const std::vector<std::shared_ptr<const api::WorkloadProfile>>& profiles,
                    const std::vector<std::shared_ptr<const api::ElasticHorovodJob>>& jobs, const TopOptions& options) {
  std::map<std::string, std::string> eta;
  for (const auto& job : jobs) {
    if (job->status.progress && job->status.progress->eta) {
      eta[job->metadata.uid] = kube::ToText(*job->status.progress->eta);
    }
  }
  std::vector<const api::WorkloadRun*> runs;
  for (const auto& profile : profiles) {
    for (const api::WorkloadRun& run : profile->spec.runs) {
      if (run.end && !options.shows_ended) continue;
      if (options.ns.empty() || RunJobOf(run.job).key.ns == options.ns) runs.push_back(&run);
    }
  }
  std::ranges::sort(runs, {}, [](const api::WorkloadRun* run) { return std::tuple(-Idle(*run), run->job, run->uid); });
  if (runs.empty()) {
    return "nothing is recorded" + (options.ns.empty() ? std::string() : " in namespace " + options.ns) +
           "; the profiler records runs of jobs with GPUs after a minute, if grus-manager has --usage-prometheus\n";
  }
  std::vector<std::vector<std::string>> rows{{"NAMESPACE", "KIND", "NAME", "GPUS", "UTIL", "BUSIEST", "GPU MEMORY",
                                              "CPU", "TYPE", "WORK", "BOTTLENECK", "ETA"}};
  for (const api::WorkloadRun* run : runs) {
    const RunJob job = RunJobOf(run->job);
    const std::string end = run->end ? "ended " + kube::ToText(*run->end) : eta[run->uid];
    rows.push_back({job.key.ns, job.kind, job.key.name, std::to_string(run->gpus),
                    Percent(run->usage.gpu_utilization_percent), Percent(run->usage.max_gpu_utilization_percent),
                    Bytes(run->usage.max_gpu_memory_bytes), run->usage.cpu_cores.empty() ? "-" : run->usage.cpu_cores,
                    run->gpu_type.empty() ? "-" : run->gpu_type, Known(run->character, &api::RunCharacter::kind),
                    Known(run->character, &api::RunCharacter::bottleneck), end.empty() ? "-" : end});
  }
  return TableText(rows);
}

}  // namespace grus
