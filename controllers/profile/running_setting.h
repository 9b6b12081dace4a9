// SPDX-License-Identifier: Apache-2.0
// The configuration that a running job's speed is a measurement of. Pure functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"
#include "controllers/profile/gpu_neighbours.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/measurement.h"

namespace grus {

struct RunningSetting {
  // The batch size is 0, the workload's own: another batch size means another command or environment, so another
  // workload.
  api::TrialConfig config;
  std::string launcher, launcher_uid;  // The pod whose log tells the speed.
  GpuNeighbours neighbours;            // SettingOf() does not look for them.
  friend bool operator==(const RunningSetting&, const RunningSetting&) = default;
};

// Whether the speed of `job` can be compared with a WorkloadProfile: it runs, and its status names the profile. Trials
// have spec.profile Off.
bool IsProfiled(const api::ElasticHorovodJob& job);

// None while workers of the job come or go, or if they are on GPUs of more than one type. `pods` are those of the job;
// `type_of` is the GPU type of a node.
std::optional<RunningSetting> SettingOf(const api::ElasticHorovodJob& job,
                                        const std::vector<std::shared_ptr<const kube::Pod>>& pods,
                                        const std::function<std::string(const std::string& node)>& type_of);

}  // namespace grus
