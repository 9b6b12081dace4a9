// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_children.h"

#include <algorithm>
#include <cassert>

#include "clientlib/auth/tls_material.h"
#include "clientlib/runtime/ownership.h"
#include "controllers/elastic/horovod_patch.h"
#include "controllers/elastic/pod_templates.h"
#include "controllers/elastic/scripts.h"
#include "controllers/policy/resources.h"
#include "controllers/policy/worker_devices.h"
#include "crds/types/pod_group.h"

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
  Json head = Json::MakeObject(
      {{"apiVersion", api_version},
       {"kind", kind},
       {"metadata",
        Json::MakeObject({{"name", name}, {"namespace", job.metadata.ns}, {"labels", Labels(job, role)}})}});
  // A job out of the cache has a UID, and the child is new and in its namespace.
  [[maybe_unused]] const kube::Status owned =
      kube::SetControllerReference(ElasticHorovodJob::ResourceKind(), job.metadata, head);
  assert(owned);
  return head;
}

Json JobVolume(const ElasticHorovodJob& job) {
  // 0440 so that a user other than root can read it through fsGroup; the scripts make private copies of the key.
  return Json::MakeObject(
      {{"name", kJobVolume}, {"secret", Json::MakeObject({{"secretName", SecretName(job)}, {"defaultMode", 0440}})}});
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

Json EmptyDir(const char* name, const char* medium = "") {
  return Json::MakeObject(
      {{"name", name}, {"emptyDir", *medium == 0 ? Json::MakeObject() : Json::MakeObject({{"medium", medium}})}});
}

Json WritableMount(const char* name, const char* path) {
  return Json::MakeObject({{"name", name}, {"mountPath", path}});
}

constexpr char kPrivateKeyFile[] = "id_ed25519", kPublicKeyFile[] = "authorized_keys";
constexpr char kWorkerFile[] = "/etc/grus/job/worker.sh";
constexpr char kPreStopFile[] = "/etc/grus/job/pre_stop.sh";

// What the launcher and the workers have in common.
OurContainer MakeContainer(const ElasticHorovodJob& job, const char* name, const std::string& image,
                           std::vector<std::string> command) {
  OurContainer container;
  container.name = name;
  container.image = image;
  container.command = std::move(command);
  AddOriginalMounts(job, container.volume_mounts);
  AddOriginalVolumes(job, container.volumes);
  container.volume_mounts.Append(Mount(kJobVolume, kJobFolder));
  container.volume_mounts.Append(WritableMount("grus-scratch", kScratchFolder));
  container.volumes.Append(JobVolume(job));
  container.volumes.Append(EmptyDir("grus-scratch"));
  // Why it ended, for the job's message.
  container.defaults.emplace_back(std::vector<std::string>{"terminationMessagePolicy"}, "FallbackToLogsOnError");
  return container;
}

// The preStop hook counts within the grace period: what is left is for the ssh server to end.
int PreStopSeconds(const ElasticHorovodJob& job) {
  const Json* grace = job.spec.workers.pod_template.At({"spec", "terminationGracePeriodSeconds"});
  constexpr std::int64_t kDefault = 30, kLongest = 24 * 3600, kRest = 5;
  const std::int64_t seconds = grace && grace->AsInt() ? *grace->AsInt() : kDefault;
  return static_cast<int>(std::clamp<std::int64_t>(seconds - kRest, 0, kLongest));
}

Json WorkerTemplate(const ElasticHorovodJob& job) {
  OurContainer worker = MakeContainer(job, "worker", job.spec.workers.image, {"/bin/sh", kWorkerFile});
  WorkerDevices devices = DevicesOf(job.spec.workers);
  worker.device = std::move(devices.resource);
  worker.devices = devices.count;
  worker.is_device_stated = devices.is_stated;
  worker.port = kSshPort;
  // Python's data loaders and NCCL share memory, of which the default of 64 MiB is too little.
  worker.default_mounts.Append(WritableMount("grus-shm", "/dev/shm"));
  worker.volumes.Append(EmptyDir("grus-shm", "Memory"));
  // sshd wants this folder; the root file system may be read-only.
  worker.default_mounts.Append(WritableMount("grus-sshd", "/run/sshd"));
  worker.volumes.Append(EmptyDir("grus-sshd"));
  // Ready when the ssh server answers; asked until then only, as sshd logs each connection.
  worker.defaults.emplace_back(
      std::vector<std::string>{"startupProbe"},
      Json::MakeObject(
          {{"tcpSocket", Json::MakeObject({{"port", kSshPort}})}, {"periodSeconds", 1}, {"failureThreshold", 60}}));
  // A deleted, drained or evicted worker ends when the training has left it.
  Json stop = Json::MakeArray({"/bin/sh", kPreStopFile, std::to_string(PreStopSeconds(job))});
  worker.defaults.emplace_back(std::vector<std::string>{"lifecycle", "preStop"},
                               Json::MakeObject({{"exec", Json::MakeObject({{"command", std::move(stop)}})}}));
  return OverlayTemplate(job.spec.workers.pod_template, worker, Labels(job, "worker"), job.spec.priority_class_name);
}

void AddGate(Json& pod, const char* gate) {
  MergeNamed(pod["spec"], "schedulingGates", Json::MakeArray({Json::MakeObject({{"name", gate}})}), "name");
}

// REQUIRES: an object.
kube::Result<std::shared_ptr<kube::Pod>> DecodeTemplate(Json pod_template) {
  pod_template["apiVersion"] = "v1";
  pod_template["kind"] = "Pod";
  return kube::Decode<kube::Pod>(kube::ToText(pod_template));
}

// A pod of a template as the API server completes it: what has a limit has a request.
kube::Pod ReadPod(Json json, const std::string& ns) {
  kube::Pod pod;
  if (json.is_object()) {
    if (auto read = DecodeTemplate(std::move(json))) pod = std::move(**read);
  }
  pod.metadata.name.clear();
  pod.metadata.ns = ns;
  for (auto* containers : {&pod.spec.containers, &pod.spec.init_containers}) {
    for (kube::Container& container : *containers) {
      for (const auto& [name, limit] : container.resources.limits) {
        if (kube::FindResource(container.resources.requests, name) == nullptr) {
          container.resources.requests.emplace_back(name, limit);
        }
      }
    }
  }
  return pod;
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
  const std::pair<const char*, std::string> files[] = {{kPrivateKeyFile, key.private_key},
                                                       {kPublicKeyFile, key.public_key + "\n"},
                                                       {"worker.sh", WorkerScript()},
                                                       {"pre_stop.sh", PreStopScript()},
                                                       {"launcher.sh", LauncherScript()},
                                                       {kDiscoveryFile, DiscoveryScript()},
                                                       {"sitecustomize.py", std::string(HorovodPatch())}};
  for (const auto& [name, text] : files) secret["data"][name] = kube::EncodeBase64(text);
  return secret;
}

std::optional<SshKey> KeyIn(const kube::Secret& secret) {
  const auto file = [&](const char* name) -> std::string {
    const auto it = secret.data.find(name);
    if (it == secret.data.end()) return {};
    auto text = kube::DecodeBase64(it->second);
    return text ? *std::move(text) : std::string();
  };
  SshKey key{file(kPrivateKeyFile), file(kPublicKeyFile)};
  if (key.private_key.empty() || key.public_key.empty()) return std::nullopt;
  if (key.public_key.back() == '\n') key.public_key.pop_back();
  return key;
}

Json MakeHosts(const ElasticHorovodJob& job, const HostList& list) {
  Json config_map = Head(job, "v1", "ConfigMap", HostsName(job), nullptr);
  config_map["metadata"]["annotations"] = Json::MakeObject({{kPublishedAnnotation, kube::ToText(list.published)}});
  config_map["data"] = Json::MakeObject({{"hosts", HostListText(list)}});
  return config_map;
}

Json MakeWorkers(const ElasticHorovodJob& job, const WorkersState& size) {
  Json set = Head(job, "apps/v1", "StatefulSet", WorkersName(job), "worker");
  set["metadata"]["labels"][kFilesLabel] = "1";
  Json pod = WorkerTemplate(job);
  if (size.gang != Gang::kNone && pod.is_object()) {
    Json& labels = pod["metadata"]["labels"];
    if (labels.is_object()) labels[api::kPodGroupLabel] = GroupName(job);
  }
  if (size.gang == Gang::kGated && pod.is_object()) AddGate(pod, api::kGangGate);
  set["metadata"]["annotations"] = Json::MakeObject(
      {{kGrantedAnnotation, std::to_string(size.granted)}, {kTemplateAnnotation, HashOf(kube::ToText(pod))}});
  if (size.is_gated && pod.is_object()) AddGate(pod, api::kParkGate);
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
  OurContainer launcher = MakeContainer(job, "launcher", job.spec.launcher.image,
                                        {"/bin/sh", "-c", LauncherCommand(job.spec, SizesOf(job.spec))});
  launcher.volume_mounts.Append(Mount("grus-hosts", kHostsFolder));
  // The host list comes twice: mounted, and with the pod's own annotation, which the kubelet delivers at once.
  const std::string hosts = std::string("metadata.annotations['") + kHostsAnnotation + "']";
  const Json pushed = Json::MakeObject({{"path", "pushed"}, {"fieldRef", Json::MakeObject({{"fieldPath", hosts}})}});
  const Json script = Json::MakeObject({{"key", kDiscoveryFile}, {"path", kDiscoveryFile}});
  const Json sources = Json::MakeArray(
      {Json::MakeObject({{"configMap", Json::MakeObject({{"name", HostsName(job)}})}}),
       Json::MakeObject({{"downwardAPI", Json::MakeObject({{"items", Json::MakeArray({pushed})}})}}),
       // Here, as it must be executable.
       Json::MakeObject(
           {{"secret", Json::MakeObject({{"name", SecretName(job)}, {"items", Json::MakeArray({script})}})}})});
  launcher.volumes.Append(Json::MakeObject(
      {{"name", "grus-hosts"}, {"projected", Json::MakeObject({{"defaultMode", 0555}, {"sources", sources}})}}));
  Json pod =
      OverlayTemplate(job.spec.launcher.pod_template, launcher, Labels(job, "launcher"), job.spec.priority_class_name);
  if (pod.is_object() && (pod["spec"].is_null() || pod["spec"].is_object())) pod["spec"]["restartPolicy"] = "Never";

  Json launcher_job = Head(job, "batch/v1", "Job", LauncherName(job), "launcher");
  // A launcher that was evicted, preempted or lost with its node did not fail, nor did one that lost its workers.
  const Json disrupted = Json::MakeObject({{"type", "DisruptionTarget"}, {"status", "True"}});
  const Json alone = Json::MakeObject(
      {{"containerName", launcher.name}, {"operator", "In"}, {"values", Json::MakeArray({kWorkersLostExitCode})}});
  const Json rules =
      Json::MakeArray({Json::MakeObject({{"action", "Ignore"}, {"onPodConditions", Json::MakeArray({disrupted})}}),
                       Json::MakeObject({{"action", "Ignore"}, {"onExitCodes", alone}})});
  launcher_job["spec"] = Json::MakeObject({{"backoffLimit", job.spec.run_policy.backoff_limit},
                                           {"podFailurePolicy", Json::MakeObject({{"rules", rules}})},
                                           {"template", std::move(pod)}});
  return launcher_job;
}

Json MakeGroup(const ElasticHorovodJob& job) {
  Json group = Head(job, "scheduling.x-k8s.io/v1alpha1", "PodGroup", GroupName(job), "worker");
  group["spec"] = Json::MakeObject({{"minMember", SizesOf(job.spec).NeededToRun()}});
  return group;
}

kube::Pod WorkerPod(const ElasticHorovodJob& job) {
  kube::Pod worker = ReadPod(WorkerTemplate(job), job.metadata.ns);
  if (worker.spec.containers.empty()) {
    // What the API server will refuse, and say why.
    kube::Container& container = worker.spec.containers.emplace_back();
    const WorkerDevices devices = DevicesOf(job.spec.workers);
    if (devices.count > 0) container.resources.requests.emplace_back(devices.resource, kube::Quantity(devices.count));
  }
  return worker;
}

kube::Pod LauncherPodOf(const ElasticHorovodJob& job) {
  const Json launcher = MakeLauncher(job);
  const Json* pod = launcher.At({"spec", "template"});
  return ReadPod(pod ? *pod : Json(), job.metadata.ns);
}

std::string UnreadableField(const ElasticHorovodJob& job) {
  const std::pair<const char*, const Json*> templates[] = {
      {"spec.workersSpec.template.", &job.spec.workers.pod_template},
      {"spec.launcherSpec.template.", &job.spec.launcher.pod_template}};
  for (const auto& [path, user_template] : templates) {
    if (!user_template->is_object()) continue;
    if (auto read = DecodeTemplate(*user_template); !read) return path + read.error().message();
  }
  return {};
}

Json PodOfTemplate(const Json& workload) {
  const Json* pod_template = workload.At({"spec", "template"});
  Json pod = pod_template && pod_template->is_object() ? *pod_template : Json::MakeObject();
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  Json& metadata = pod["metadata"];
  if (!metadata.is_object()) metadata = Json::MakeObject();
  metadata.Erase("name");
  const Json *name = workload.At({"metadata", "name"}), *ns = workload.At({"metadata", "namespace"});
  metadata["generateName"] = (name && name->AsString() ? *name->AsString() : std::string("pod")) + "-";
  metadata["namespace"] = ns ? *ns : Json();
  return pod;
}

}  // namespace grus
