// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_children.h"

#include <cassert>

#include "clientlib/runtime/ownership.h"
#include "controllers/trial/trial_space.h"

namespace grus {
namespace {

using kube::Json;

// The container of that name in a pod template, which is made if there is room for it; null: the template is none,
// and the API server says why.
Json* ContainerOf(Json& pod, const char* name) {
  if (!pod.is_null() && !pod.is_object()) return nullptr;
  Json& spec = pod["spec"];
  if (!spec.is_null() && !spec.is_object()) return nullptr;
  Json& containers = spec["containers"];
  if (containers.is_null()) containers = Json::MakeArray();
  if (!containers.is_array()) return nullptr;
  for (Json& container : *containers.AsArray()) {
    const Json* found = container.Find("name");
    if (found != nullptr && found->AsString() != nullptr && *found->AsString() == name) return &container;
  }
  Json::Array& list = *containers.AsArray();
  return &*list.insert(list.begin(), Json::MakeObject({{"name", name}}));
}

void SetEnv(Json& pod, const char* container_name, const std::string& name, const std::string& value) {
  Json* container = ContainerOf(pod, container_name);
  if (container == nullptr) return;
  Json& env = (*container)["env"];
  if (env.is_null()) env = Json::MakeArray();
  if (!env.is_array()) return;
  std::erase_if(*env.AsArray(), [&](const Json& item) {
    const Json* found = item.Find("name");
    return found != nullptr && found->AsString() != nullptr && *found->AsString() == name;
  });
  env.Append(Json::MakeObject({{"name", name}, {"value", value}}));
}

void SelectNodes(Json& pod, const std::map<std::string, std::string>& labels) {
  if (labels.empty() || (!pod.is_null() && !pod.is_object())) return;
  Json& spec = pod["spec"];
  if (!spec.is_null() && !spec.is_object()) return;
  Json& selector = spec["nodeSelector"];
  if (!selector.is_null() && !selector.is_object()) return;
  for (const auto& [key, value] : labels) selector[key] = value;
}

void EndQuickly(Json& pod) {
  if (!pod.is_null() && !pod.is_object()) return;
  Json& spec = pod["spec"];
  if (spec.is_null() || spec.is_object()) spec["terminationGracePeriodSeconds"] = kTrialGraceSeconds;
}

void SetBatchSize(const api::TrialSpace& space, int batch_size, api::ElasticHorovodJobSpec& spec) {
  if (batch_size == 0) return;
  const std::string size = std::to_string(batch_size);
  if (!space.batch_size_env.empty()) {
    SetEnv(spec.launcher.pod_template, "launcher", space.batch_size_env, size);
    SetEnv(spec.workers.pod_template, "worker", space.batch_size_env, size);
  }
  if (!space.batch_size_option.empty()) {
    std::vector<std::string>& command = spec.launcher.python_command;
    if (space.batch_size_option.ends_with('=')) {
      command.push_back(space.batch_size_option + size);
    } else {
      command.push_back(space.batch_size_option);
      command.push_back(size);
    }
  }
}

}  // namespace

Json MakeTrial(const api::TrialJob& job, const api::ElasticHorovodJobSpec& workload, const TrialStart& trial) {
  api::ElasticHorovodJob child;
  api::ElasticHorovodJobSpec& spec = child.spec;
  spec = workload;
  const std::int32_t workers = trial.config.gpus / std::max(1, spec.workers.gpus_per_worker);
  spec.workers.min_replicas = spec.workers.max_replicas = spec.workers.target_replicas = workers;
  spec.run_policy = {};
  spec.run_policy.backoff_limit = 0;
  // The launcher that has ended stays until the trial is judged: why it ended stands in its log.
  spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kRunning;
  spec.run_policy.active_deadline_seconds = trial.slice_seconds + kStartAllowanceSeconds;
  spec.profile = "Off";
  SelectNodes(spec.workers.pod_template, NodesOf(job.spec.space, trial.config.gpu_type));
  EndQuickly(spec.workers.pod_template);
  EndQuickly(spec.launcher.pod_template);
  SetBatchSize(job.spec.space, trial.config.batch_size, spec);

  const kube::Kind& kind = api::ElasticHorovodJob::ResourceKind();
  const kube::Result<Json> encoded = kube::ParseJson(kube::EncodeObject(kind, child));
  Json made = Json::MakeObject(
      {{"apiVersion", "ai.centauruscloud.io/v1alpha1"},
       {"kind", "ElasticHorovodJob"},
       {"metadata",
        Json::MakeObject({{"name", trial.name},
                          {"namespace", job.metadata.ns},
                          {"labels", Json::MakeObject({{kTrialJobLabel, job.metadata.name}})},
                          {"annotations",
                           Json::MakeObject({{kSliceAnnotation, std::to_string(trial.slice_seconds)},
                                             {kSpentAnnotation, std::to_string(trial.spent_before)}})}})}});
  if (encoded && encoded->Find("spec") != nullptr) made["spec"] = *encoded->Find("spec");
  // A TrialJob out of the cache has a UID, and the child is new and in its namespace.
  [[maybe_unused]] const kube::Status owned =
      kube::SetControllerReference(api::TrialJob::ResourceKind(), job.metadata, made);
  assert(owned);
  return made;
}

}  // namespace grus
