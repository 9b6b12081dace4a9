// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_children.h"

#include <algorithm>
#include <cassert>

#include "clientlib/model/quantity.h"
#include "clientlib/auth/tls_material.h"
#include "clientlib/runtime/ownership.h"
#include "controllers/elastic/pod_templates.h"
#include "controllers/elastic/scripts.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Json;

// FNV-1a: the same in every build, as it is kept in the cluster.
std::string HashOf(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return std::to_string(hash);
}

Json Labels(const ElasticHorovodJob& job, const char* role) {
  Json labels = Json::MakeObject({{kManagedByLabel, kManagedBy}, {kJobNameLabel, job.metadata.name}});
  if (role != nullptr) labels[kRoleLabel] = role;
  return labels;
}

Json Selector(const ElasticHorovodJob& job, const char* role) {
  return Json::MakeObject({{kJobNameLabel, job.metadata.name}, {kRoleLabel, role}});
}

Json Head(const ElasticHorovodJob& job, const char* api_version, const char* kind, const std::string& name,
          const char* role) {
  Json head = Json::MakeObject({{"apiVersion", api_version},
                                {"kind", kind},
                                {"metadata", Json::MakeObject({{"name", name},
                                                               {"namespace", job.metadata.ns},
                                                               {"labels", Labels(job, role)}})}});
  // A job out of the cache has a UID, and the child is new and in its namespace.
  [[maybe_unused]] const kube::Status owned =
      kube::SetControllerReference(ElasticHorovodJob::ResourceKind(), job.metadata, head);
  assert(owned);
  return head;
}

Json SshVolume(const ElasticHorovodJob& job) {
  // 0440 so that a user other than root can read it through fsGroup; the scripts make private copies.
  return Json::MakeObject({{"name", "grus-ssh"},
                           {"secret", Json::MakeObject({{"secretName", SecretName(job)}, {"defaultMode", 0440}})}});
}

Json Mount(const char* name, const char* path) {
  return Json::MakeObject({{"name", name}, {"mountPath", path}, {"readOnly", true}});
}

// Volume mounts of the original's spec.containers, for every pod.
void AddOriginalMounts(const ElasticHorovodJob& job, Json& mounts) {
  for (const Json& container : job.spec.containers) {
    const Json* list = container.Find("volumeMounts");
    if (list == nullptr || list->AsArray() == nullptr) continue;
    for (const Json& mount : *list->AsArray()) mounts.Append(mount);
  }
}

void AddOriginalVolumes(const ElasticHorovodJob& job, Json& volumes) {
  for (const Json& volume : job.spec.volumes) volumes.Append(volume);
}

Json WorkerTemplate(const ElasticHorovodJob& job) {
  OurContainer worker;
  worker.name = "worker";
  worker.image = job.spec.workers.image;
  worker.command = {"/bin/sh", "-c", WorkerScript()};
  worker.gpus = job.spec.workers.gpus_per_worker;
  AddOriginalMounts(job, worker.volume_mounts);
  AddOriginalVolumes(job, worker.volumes);
  worker.volume_mounts.Append(Mount("grus-ssh", kSshFolder));
  worker.volumes.Append(SshVolume(job));
  return OverlayTemplate(job.spec.workers.pod_template, worker, Labels(job, "worker"), job.spec.priority_class_name);
}

std::int64_t Amount(const Json& amounts, std::string_view name, bool is_milli) {
  const Json* value = amounts.Find(name);
  if (value == nullptr) return 0;
  const std::string text = value->AsString() ? *value->AsString() : value->AsInt() ? std::to_string(*value->AsInt()) : "";
  const kube::Result<kube::Quantity> quantity = kube::ParseQuantity(text);
  if (!quantity) return 0;
  return is_milli ? quantity->MilliValue() : quantity->Value();
}

// What a container asks for: its requests, and its limits where it names no request.
Resources RequestOf(const Json& container) {
  Resources request;
  Json amounts = Json::MakeObject();
  for (const char* list : {"limits", "requests"}) {
    const Json* found = container.At({"resources", list});
    if (found == nullptr || found->AsObject() == nullptr) continue;
    for (const auto& [name, value] : *found->AsObject()) amounts[name] = value;
  }
  for (const auto& [name, value] : *amounts.AsObject()) {
    if (name == "cpu") request.milli_cpu = Amount(amounts, name, true);
    else if (name == "memory") request.memory_bytes = Amount(amounts, name, false);
    else if (name.find('/') != std::string::npos) request.AddExtended(name, Amount(amounts, name, false));
  }
  return request;
}

std::string TextAt(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  return value && value->AsString() ? *value->AsString() : std::string();
}

}  // namespace

Json MakeService(const ElasticHorovodJob& job) {
  Json service = Head(job, "v1", "Service", ServiceName(job), nullptr);
  service["spec"] = Json::MakeObject({{"clusterIP", "None"}, {"selector", Selector(job, "worker")}});
  return service;
}

Json MakeSecret(const ElasticHorovodJob& job, const SshKey& key) {
  Json secret = Head(job, "v1", "Secret", SecretName(job), nullptr);
  secret["immutable"] = true;
  secret["data"] = Json::MakeObject({{"id_ed25519", kube::EncodeBase64(key.private_key)},
                                     {"authorized_keys", kube::EncodeBase64(key.public_key + "\n")}});
  return secret;
}

Json MakeHosts(const ElasticHorovodJob& job, const HostList& list) {
  Json config_map = Head(job, "v1", "ConfigMap", HostsName(job), nullptr);
  config_map["metadata"]["annotations"] = Json::MakeObject({{kPublishedAnnotation, kube::ToText(list.published)}});
  config_map["data"] = Json::MakeObject({{"hosts", HostListText(list, ServiceName(job))},
                                         {"discover_hosts.sh", DiscoveryScript()}});
  return config_map;
}

Json MakeWorkers(const ElasticHorovodJob& job, const WorkersState& size) {
  Json set = Head(job, "apps/v1", "StatefulSet", WorkersName(job), "worker");
  Json pod = WorkerTemplate(job);
  set["metadata"]["annotations"] = Json::MakeObject(
      {{kGrantedAnnotation, std::to_string(size.granted)}, {kTemplateAnnotation, HashOf(kube::ToText(pod))}});
  if (size.is_gated && pod.is_object()) {
    MergeNamed(pod["spec"], "schedulingGates", Json::MakeArray({Json::MakeObject({{"name", kParkGate}})}), "name");
  }
  // OnDelete: a changed template never touches a worker that runs (worker_plan.h).
  set["spec"] = Json::MakeObject({{"replicas", size.replicas},
                                  {"serviceName", ServiceName(job)},
                                  {"podManagementPolicy", "Parallel"},
                                  {"updateStrategy", Json::MakeObject({{"type", "OnDelete"}})},
                                  {"selector", Json::MakeObject({{"matchLabels", Selector(job, "worker")}})},
                                  {"template", std::move(pod)}});
  return set;
}

Json MakeLauncher(const ElasticHorovodJob& job) {
  OurContainer launcher;
  launcher.name = "launcher";
  launcher.image = job.spec.launcher.image;
  launcher.command = {"/bin/sh", "-c", LauncherScript(job.spec, SizesOf(job.spec.workers))};
  AddOriginalMounts(job, launcher.volume_mounts);
  AddOriginalVolumes(job, launcher.volumes);
  launcher.volume_mounts.Append(Mount("grus-ssh", kSshFolder));
  launcher.volume_mounts.Append(Mount("grus-hosts", kHostsFolder));
  launcher.volumes.Append(SshVolume(job));
  // The host list comes twice: mounted, and with the pod's own annotation, which the kubelet delivers at once.
  const Json pushed = Json::MakeObject(
      {{"path", "pushed"},
       {"fieldRef", Json::MakeObject({{"fieldPath", std::string("metadata.annotations['") + kHostsAnnotation + "']"}})}});
  launcher.volumes.Append(Json::MakeObject(
      {{"name", "grus-hosts"},
       {"projected",
        Json::MakeObject(
            {{"defaultMode", 0555},
             {"sources",
              Json::MakeArray({Json::MakeObject({{"configMap", Json::MakeObject({{"name", HostsName(job)}})}}),
                               Json::MakeObject({{"downwardAPI",
                                                  Json::MakeObject({{"items", Json::MakeArray({pushed})}})}})})}})}}));
  Json pod = OverlayTemplate(job.spec.launcher.pod_template, launcher, Labels(job, "launcher"),
                             job.spec.priority_class_name);
  if (pod.is_object() && (pod["spec"].is_null() || pod["spec"].is_object())) pod["spec"]["restartPolicy"] = "Never";

  Json launcher_job = Head(job, "batch/v1", "Job", LauncherName(job), "launcher");
  // A launcher that was evicted, preempted or lost with its node did not fail.
  const Json disrupted = Json::MakeObject({{"type", "DisruptionTarget"}, {"status", "True"}});
  const Json ignore = Json::MakeObject({{"action", "Ignore"}, {"onPodConditions", Json::MakeArray({disrupted})}});
  launcher_job["spec"] =
      Json::MakeObject({{"backoffLimit", job.spec.run_policy.backoff_limit},
                        {"podFailurePolicy", Json::MakeObject({{"rules", Json::MakeArray({ignore})}})},
                        {"template", std::move(pod)}});
  return launcher_job;
}

PodShape WorkerShape(const ElasticHorovodJob& job) {
  PodShape shape;
  const Json pod = WorkerTemplate(job);
  const Json* spec = pod.Find("spec");
  if (spec == nullptr) return shape;
  const Json* containers = spec->Find("containers");
  if (containers && containers->AsArray()) {
    for (const Json& container : *containers->AsArray()) shape.request += RequestOf(container);
  }
  const Json* init = spec->Find("initContainers");
  if (init && init->AsArray()) {
    // As the scheduler counts (KEP-753): one that runs to its end needs its own beside the sidecars before it.
    Resources sidecars, start;
    for (const Json& container : *init->AsArray()) {
      Resources peak = RequestOf(container);
      peak += sidecars;
      start.RaiseTo(peak);
      if (TextAt(container, "restartPolicy") == "Always") sidecars = std::move(peak);
    }
    shape.request += sidecars;
    shape.request.RaiseTo(start);
  }
  shape.request.pods = 1;
  const Json* node_selector = spec->Find("nodeSelector");
  if (node_selector && node_selector->AsObject()) {
    for (const auto& [key, value] : *node_selector->AsObject()) {
      if (value.AsString()) shape.node_selector[key] = *value.AsString();
    }
  }
  const Json* tolerations = spec->Find("tolerations");
  if (tolerations && tolerations->AsArray()) {
    for (const Json& t : *tolerations->AsArray()) {
      shape.tolerations.push_back({TextAt(t, "key"), TextAt(t, "operator"), TextAt(t, "value"), TextAt(t, "effect")});
    }
  }
  return shape;
}

}  // namespace grus
