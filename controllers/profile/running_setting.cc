// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/running_setting.h"

#include <algorithm>
#include <set>

#include "controllers/cluster/owners.h"
#include "controllers/policy/worker_devices.h"

namespace grus {
namespace {

bool IsLauncherRunning(const kube::Pod& pod) {
  const auto& statuses = pod.status.container_statuses;
  return std::any_of(statuses.begin(), statuses.end(), [](const kube::ContainerStatus& status) {
    return status.name.view() == "launcher" && status.state.running;
  });
}

}  // namespace

bool IsProfiled(const api::ElasticHorovodJob& job) {
  return job.status.profile && !job.status.profile->name.empty() && job.spec.profile != "Off" &&
         job.status.phase == "Running" && !job.spec.run_policy.suspend && !job.metadata.is_being_deleted();
}

std::optional<RunningSetting> SettingOf(const api::ElasticHorovodJob& job,
                                        const std::vector<std::shared_ptr<const kube::Pod>>& pods,
                                        const std::function<std::string(const std::string& node)>& type_of) {
  RunningSetting setting;
  std::set<std::string> nodes, types;
  int workers = 0;
  for (const auto& pod : pods) {
    const std::string_view role = pod->metadata.Label(kRoleLabel);
    if (role != "worker" && role != "launcher") continue;
    // A worker that joins or leaves changes the speed.
    if (pod->metadata.is_being_deleted()) return std::nullopt;
    if (role == "launcher") {
      if (!IsLauncherRunning(*pod)) continue;  // An earlier try.
      setting.launcher = pod->metadata.name;
      setting.launcher_uid = pod->metadata.uid;
      continue;
    }
    if (pod->status.phase.view() != "Running") return std::nullopt;
    nodes.insert(pod->spec.node_name.str());
    types.insert(type_of(pod->spec.node_name.str()));
    ++workers;
  }
  const api::ReplicaStatus& replicas = job.status.replicas;
  const bool is_settled = workers == replicas.granted && workers == replicas.ready;
  setting.config.gpus = workers * DevicesOf(job.spec.workers).count;
  if (!is_settled || setting.config.gpus <= 0 || types.size() != 1 || setting.launcher.empty()) return std::nullopt;
  setting.config.gpu_type = *types.begin();
  setting.config.nodes = static_cast<std::int32_t>(nodes.size());
  return setting;
}

}  // namespace grus
