// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_children.h"

#include <algorithm>
#include <cassert>

#include "clientlib/auth/tls_material.h"
#include "clientlib/runtime/ownership.h"
#include "controllers/elastic/pod_templates.h"
#include "controllers/elastic/scripts.h"
#include "controllers/policy/resources.h"
#include "controllers/policy/worker_devices.h"
#include "controllers/policy/yield_words.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Json;

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
  Json head = Json::MakeObject({{"apiVersion", api_version}, {"kind", kind}});
  head["metadata"] = Json::MakeObject({{"name", name}, {"namespace", job.metadata.ns}, {"labels", Labels(job, role)}});
  // A job out of the cache has a UID, and the child is new and in its namespace.
  [[maybe_unused]] const kube::Status owned =
      kube::SetControllerReference(ElasticHorovodJob::ResourceKind(), job.metadata, head);
  assert(owned);
  return head;
}

Json Mount(const char* name, const char* path) {
  return Json::MakeObject({{"name", name}, {"mountPath", path}, {"readOnly", true}});
}

Json EmptyDir(const char* name) { return Json::MakeObject({{"name", name}, {"emptyDir", Json::MakeObject()}}); }

Json WritableMount(const char* name, const char* path) {
  return Json::MakeObject({{"name", name}, {"mountPath", path}});
}

constexpr char kPodIndexLabel[] = "apps.kubernetes.io/pod-index";

constexpr char kJobVolume[] = "grus-job";  // Of the job's Secret.
// Its files. Workers and launcher have only what each needs: they run code of different trust when
// a dependency is compromised.
constexpr char kLoginKey[] = "id_ed25519", kLoginPublicKey[] = "authorized_keys", kHostKey[] = "host_key",
               kHostPublicKey[] = "known_hosts", kWorkerScript[] = "worker.sh", kPreStopScript[] = "pre_stop.sh",
               kLauncherScript[] = "launcher.sh", kDiscoveryFile[] = "discover_hosts.sh",
               kHorovodPatch[] = "sitecustomize.py";
constexpr const char* kFilesOfWorkers[] = {kHostKey, kLoginPublicKey, kWorkerScript, kPreStopScript, kHorovodPatch};
constexpr const char* kFilesOfLauncher[] = {kLoginKey, kHostPublicKey, kLauncherScript, kHorovodPatch};

Json FileItem(const char* name) { return Json::MakeObject({{"key", name}, {"path", name}}); }

// What the launcher and the workers have in common.
OurContainer MakeContainer(const ElasticHorovodJob& job, const char* name, const std::string& image,
                           std::vector<std::string> command, std::span<const char* const> files) {
  OurContainer container;
  container.name = name;
  container.image = image;
  container.command = std::move(command);
  for (const Json& original : job.spec.containers) {
    const Json* mounts = original.Find("volumeMounts");
    if (mounts == nullptr || !mounts->is_array()) continue;
    for (const Json& mount : *mounts->AsArray()) container.volume_mounts.Append(mount);
  }
  for (const Json& volume : job.spec.volumes) container.volumes.Append(volume);
  container.volume_mounts.Append(Mount(kJobVolume, kJobFolder));
  container.volume_mounts.Append(WritableMount("grus-scratch", kScratchFolder));
  // 0444 so that the image's user can read it, whoever that is; the scripts make private copies of the keys.
  Json secret = Json::MakeObject({{"secretName", SecretName(job)}, {"defaultMode", 0444}});
  for (const char* file : files) secret["items"].Append(FileItem(file));
  container.volumes.Append(Json::MakeObject({{"name", kJobVolume}, {"secret", secret}}));
  container.volumes.Append(EmptyDir("grus-scratch"));
  // Why it ended, for the job's message.
  container.defaults.push_back({{"terminationMessagePolicy"}, "FallbackToLogsOnError"});
  return container;
}

// The preStop hook runs within the grace period: leave the ssh server the rest of it to end.
int PreStopSeconds(const ElasticHorovodJob& job) {
  const Json* grace = job.spec.workers.pod_template.At({"spec", "terminationGracePeriodSeconds"});
  constexpr std::int64_t kDefault = 30, kLongest = 24 * 3600, kRest = 5;
  const std::int64_t seconds = grace && grace->AsInt() ? *grace->AsInt() : kDefault;
  return static_cast<int>(std::clamp<std::int64_t>(seconds - kRest, 0, kLongest));
}

Json WorkerTemplate(const ElasticHorovodJob& job, Gang gang) {
  OurContainer worker =
      MakeContainer(job, "worker", job.spec.workers.image, {"/bin/sh", "/etc/grus/job/worker.sh"}, kFilesOfWorkers);
  worker.devices = DevicesOf(job.spec.workers);
  worker.port = kSshPort;
  // The default of 64 MiB is too little for the memory that Python's data loaders and NCCL share.
  worker.default_mounts.push_back(WritableMount("grus-shm", "/dev/shm"));
  worker.volumes.Append(EmptyDir("grus-shm"))["emptyDir"]["medium"] = "Memory";
  // sshd wants this folder; the root file system may be read-only.
  worker.default_mounts.push_back(WritableMount("grus-sshd", "/run/sshd"));
  worker.volumes.Append(EmptyDir("grus-sshd"));
  // The worker is ready when its ssh server answers. The kubelet stops probing then, because sshd logs each connection.
  Json probe;
  probe["tcpSocket"]["port"] = kSshPort;
  probe["periodSeconds"] = 1;
  probe["failureThreshold"] = 60;
  worker.defaults.push_back({{"startupProbe"}, std::move(probe)});
  // A deleted, drained or evicted worker ends when the training has left it.
  Json stop;
  stop["exec"]["command"] =
      Json::MakeArray({"/bin/sh", "/etc/grus/job/pre_stop.sh", std::to_string(PreStopSeconds(job))});
  worker.defaults.push_back({{"lifecycle", "preStop"}, std::move(stop)});
  Json labels = Labels(job, "worker");
  if (gang != Gang::kNone) labels[api::kPodGroupLabel] = GroupName(job);
  return OverlayTemplate(job.spec.workers.pod_template, worker, labels, job.spec.priority_class_name);
}

void AddGate(Json& pod, const char* gate) {
  MergeNamed(pod["spec"], "schedulingGates", Json::MakeArray({Json::MakeObject({{"name", gate}})}), "name");
}

kube::Result<std::shared_ptr<kube::Pod>> DecodeTemplate(Json pod_template) {
  if (!pod_template.is_object()) return std::make_shared<kube::Pod>();  // The API server says what is wrong.
  pod_template["apiVersion"] = "v1";
  pod_template["kind"] = "Pod";
  return kube::Decode<kube::Pod>(kube::ToText(pod_template));
}

// A pod of a template, with the default of the API server: what has a limit has a request.
kube::Pod ReadPod(Json json, const std::string& ns) {
  kube::Pod pod;
  if (auto read = DecodeTemplate(std::move(json))) pod = std::move(**read);
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

std::string ServiceName(const ElasticHorovodJob& job) { return job.metadata.name + "-workers"; }
std::string WorkersName(const ElasticHorovodJob& job) { return job.metadata.name + "-workers"; }
std::string GroupName(const ElasticHorovodJob& job) { return job.metadata.name; }
std::string LauncherName(const ElasticHorovodJob& job) { return job.metadata.name + "-launcher"; }
std::string HostsName(const ElasticHorovodJob& job) { return job.metadata.name + "-hosts"; }
std::string SecretName(const ElasticHorovodJob& job) {
  return job.metadata.name + "-files-" + std::string(job.metadata.uid);
}

Json MakeService(const ElasticHorovodJob& job) {
  Json service = Head(job, "v1", "Service", ServiceName(job), nullptr);
  service["spec"] = Json::MakeObject({{"clusterIP", "None"}, {"selector", Selector(job, "worker")}});
  return service;
}

Json MakeSecret(const ElasticHorovodJob& job, const JobKeys& keys) {
  Json secret = Head(job, "v1", "Secret", SecretName(job), nullptr);
  secret["immutable"] = true;
  const std::pair<const char*, std::string> files[] = {
      {kLoginKey, keys.login.private_key},
      {kLoginPublicKey, keys.login.public_key + "\n"},
      {kHostKey, keys.host.private_key},
      {kHostPublicKey, std::string(kHostAlias) + " " + keys.host.public_key + "\n"},
      {kWorkerScript, WorkerScript()},
      {kPreStopScript, PreStopScript()},
      {kLauncherScript, LauncherScript()},
      {kDiscoveryFile, DiscoveryScript()},
      {kHorovodPatch, HorovodPatch()}};
  for (const auto& [name, text] : files) secret["data"][name] = kube::EncodeBase64(text);
  return secret;
}

Json MakeSshPolicy(const ElasticHorovodJob& job) {
  Json policy = Head(job, "networking.k8s.io/v1", "NetworkPolicy",
                     job.metadata.name + "-ssh-" + std::string(job.metadata.uid), nullptr);
  const auto port = [](const char* protocol, int first, int last) {
    return Json::MakeObject({{"protocol", protocol}, {"port", first}, {"endPort", last}});
  };
  Json launcher, job_pods;
  launcher["from"].Append({})["podSelector"]["matchLabels"] = Selector(job, "launcher");
  launcher["ports"].Append(port("TCP", kSshPort, kSshPort));
  job_pods["from"].Append({})["podSelector"]["matchLabels"][kJobNameLabel] = job.metadata.name;
  job_pods["ports"] = Json::MakeArray(
      {port("TCP", 1, kSshPort - 1), port("TCP", kSshPort + 1, 65535), port("UDP", 1, 65535), port("SCTP", 1, 65535)});
  Json& spec = policy["spec"];
  spec["podSelector"]["matchLabels"] = Selector(job, "worker");
  spec["policyTypes"] = Json::MakeArray({"Ingress"});
  spec["ingress"] = Json::MakeArray({std::move(launcher), std::move(job_pods)});
  return policy;
}

Json MakeHosts(const ElasticHorovodJob& job, const HostList& list) {
  Json config_map = Head(job, "v1", "ConfigMap", HostsName(job), nullptr);
  config_map["metadata"]["annotations"] = Json::MakeObject({{kPublishedAnnotation, kube::ToText(list.published)}});
  config_map["data"] = Json::MakeObject({{"hosts", HostListText(list)}});
  return config_map;
}

Json MakeWorker(const ElasticHorovodJob& job, int ordinal, Gang gang) {
  const std::string name = WorkersName(job) + "-" + std::to_string(ordinal);
  const Json pod_template = WorkerTemplate(job, gang);
  Json pod = pod_template.is_object() ? pod_template : Json::MakeObject();
  Json head = Head(job, "v1", "Pod", name, "worker");
  for (const char* field : {"apiVersion", "kind"}) pod[field] = head[field];
  Json& metadata = pod["metadata"];
  // What is no object, the API server refuses as labels.
  if (!metadata.is_object()) metadata = Json::MakeObject({{"labels", Json(metadata)}});
  for (const char* field : {"name", "namespace", "ownerReferences"}) metadata[field] = head["metadata"][field];
  // As pods of a StatefulSet or an indexed Job have it: frameworks read their rank there.
  if (metadata["labels"].is_object()) metadata["labels"][kPodIndexLabel] = std::to_string(ordinal);
  if (!pod["spec"].is_object()) return pod;  // The API server says what is wrong.
  pod["spec"].Erase(
      "restartPolicy");  // Always: what ends is started again by its kubelet, which waits longer each time.
  pod["spec"]["hostname"] = name;
  pod["spec"]["subdomain"] = ServiceName(job);
  // What is no object, the API server refuses.
  Json& annotations = metadata["annotations"];
  const bool can_annotate = annotations.is_null() || annotations.is_object();
  if (const int restarts = RestartsOf(job); restarts > 0 && can_annotate) {
    annotations[kRestartsAnnotation] = std::to_string(restarts);
  }
  if (gang == Gang::kGated) {
    AddGate(pod, api::kGangGate);
    if (can_annotate) annotations[kBornGatedAnnotation] = "true";
  }
  return pod;
}

Json MakeLauncher(const ElasticHorovodJob& job) {
  OurContainer launcher =
      MakeContainer(job, "launcher", job.spec.launcher.image,
                    {"/bin/sh", "-c", LauncherCommand(job.spec, SizesOf(job.spec))}, kFilesOfLauncher);
  launcher.volume_mounts.Append(Mount("grus-hosts", kHostsFolder));
  // The launcher gets the host list twice: mounted, and in its own annotation, which the kubelet delivers at once.
  const auto file_of = [](const char* path, const std::string& annotation) {
    const Json field = Json::MakeObject({{"fieldPath", "metadata.annotations['" + annotation + "']"}});
    return Json::MakeObject({{"path", path}, {"fieldRef", field}});
  };
  // The script is mounted here, because it must be executable.
  Json& projected = launcher.volumes.Append(Json::MakeObject({{"name", "grus-hosts"}}))["projected"];
  projected["defaultMode"] = 0555;
  Json& sources = projected["sources"];
  sources.Append({})["configMap"]["name"] = HostsName(job);
  Json& annotations = sources.Append({})["downwardAPI"]["items"];
  annotations.Append(file_of("pushed", kHostsAnnotation));
  annotations.Append(file_of("preemption-deadline", kPreemptionDeadlineAnnotation));
  Json& secret = sources.Append({})["secret"];
  secret["name"] = SecretName(job);
  secret["items"].Append(FileItem(kDiscoveryFile));
  Json pod =
      OverlayTemplate(job.spec.launcher.pod_template, launcher, Labels(job, "launcher"), job.spec.priority_class_name);
  if (pod.is_object() && (pod["spec"].is_null() || pod["spec"].is_object())) pod["spec"]["restartPolicy"] = "Never";

  Json launcher_job = Head(job, "batch/v1", "Job", LauncherName(job), "launcher");
  if (const int restarts = RestartsOf(job); restarts > 0) {
    launcher_job["metadata"]["annotations"][kRestartsAnnotation] = std::to_string(restarts);
  }
  // A launcher that was evicted, preempted or lost with its node does not count as failed, nor does one whose node was
  // restarted, or that lost its workers.
  Json& spec = launcher_job["spec"];
  spec["backoffLimit"] = job.spec.run_policy.backoff_limit;
  const Json ignore = Json::MakeObject({{"action", "Ignore"}});
  Json& rules = spec["podFailurePolicy"]["rules"];
  rules.Append(ignore)["onPodConditions"].Append(Json::MakeObject({{"type", "DisruptionTarget"}, {"status", "True"}}));
  rules.Append(ignore)["onExitCodes"] =
      Json::MakeObject({{"containerName", launcher.name},
                        {"operator", "In"},
                        {"values", Json::MakeArray({kWorkersLostExitCode, kNodeRestartedExitCode})}});
  spec["template"] = std::move(pod);
  return launcher_job;
}

Json MakeGroup(const ElasticHorovodJob& job) {
  Json group = Head(job, "scheduling.x-k8s.io/v1alpha1", "PodGroup", GroupName(job), "worker");
  group["spec"] = Json::MakeObject({{"minMember", SizesOf(job.spec).NeededToRun()}});
  return group;
}

kube::Pod WorkerPod(const ElasticHorovodJob& job) {
  kube::Pod worker = ReadPod(WorkerTemplate(job, Gang::kNone), job.metadata.ns);
  if (worker.spec.containers.empty()) {
    // The API server will refuse this template and say why; plan with the devices alone.
    kube::Container& container = worker.spec.containers.emplace_back();
    const WorkerDevices devices = DevicesOf(job.spec.workers);
    if (devices.count > 0) container.resources.requests.emplace_back(devices.resource, kube::Quantity(devices.count));
  }
  return worker;
}

kube::Pod LauncherPodOf(const ElasticHorovodJob& job) {
  return ReadPod(*MakeLauncher(job).At({"spec", "template"}), job.metadata.ns);
}

std::string UnreadableField(const ElasticHorovodJob& job) {
  const std::pair<const char*, const Json*> templates[] = {
      {"spec.workersSpec.template", &job.spec.workers.pod_template},
      {"spec.launcherSpec.template", &job.spec.launcher.pod_template}};
  for (const auto& [path, user_template] : templates) {
    if (const std::string* left_out = user_template->AsString()) return std::string(path) + ": " + *left_out;
    if (auto read = DecodeTemplate(*user_template); !read) return std::string(path) + "." + read.error().message();
  }
  return {};
}

Json LauncherToAsk(const ElasticHorovodJob& job) {
  const Json launcher = MakeLauncher(job);
  const Json& pod_template = *launcher.At({"spec", "template"});
  Json pod = pod_template.is_object() ? pod_template : Json::MakeObject();
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  Json& metadata = pod["metadata"];
  if (!metadata.is_object()) metadata = Json::MakeObject();
  metadata.Erase("name");
  metadata["generateName"] = LauncherName(job) + "-";
  metadata["namespace"] = job.metadata.ns;
  // The Job may not exist yet, so its UID is made up; admission policies look at the rest.
  metadata["ownerReferences"] = Json::MakeArray({Json::MakeObject({{"apiVersion", "batch/v1"},
                                                                   {"kind", "Job"},
                                                                   {"name", LauncherName(job)},
                                                                   {"uid", "00000000-0000-0000-0000-000000000000"},
                                                                   {"controller", true}})});
  return pod;
}

Json WorkerToAsk(const ElasticHorovodJob& job) {
  Json pod = MakeWorker(job, 0, Gang::kNone);
  pod["metadata"].Erase("name");
  pod["metadata"]["generateName"] = WorkersName(job) + "-";
  return pod;
}

namespace {

// "bert-launcher-x7k2p" as "bert-launcher-...": each question draws another name, and a text that changes would be
// written each time.
std::string WithoutDrawnNames(std::string text) {
  constexpr std::size_t kDrawn = 5;
  for (const std::string_view of : {"-launcher-", "-workers-"}) {
    for (std::size_t at = text.find(of); at != std::string::npos; at = text.find(of, at)) {
      at += of.size();
      const std::size_t end = std::min(text.find_first_not_of("bcdfghjklmnpqrstvwxz2456789", at), text.size());
      if (end == at + kDrawn && text.substr(end, 1) == "\"") text.replace(at, kDrawn, "...");
    }
  }
  return text;
}

}  // namespace

std::string RefusalText(const kube::Error& error, const ElasticHorovodJob& job) {
  const std::string field = error.code() == kube::ErrorCode::kInvalidArgument ? UnreadableField(job) : "";
  return WithoutDrawnNames(error.message()) + (field.empty() ? "" : "; " + field);
}

}  // namespace grus
