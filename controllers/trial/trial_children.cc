// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_children.h"

#include <cassert>

#include "clientlib/runtime/ownership.h"
#include "controllers/cluster/owners.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/resources.h"
#include "controllers/policy/training_container.h"
#include "controllers/policy/worker_devices.h"
#include "controllers/trial/trial_peers.h"
#include "controllers/trial/trial_space.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using kube::Json;

constexpr int kMasterPort = 29500;  // torchrun's own default.

// The container of that name in a pod template, added if it is missing; null: the template is malformed, and the API
// server will say why.
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

// `is_first`: before the user's own, whose values may then refer to it.
void SetEnv(Json* container, const std::string& name, const std::string& value, bool is_first = false) {
  if (container == nullptr) return;
  Json& env = (*container)["env"];
  if (env.is_null()) env = Json::MakeArray();
  if (!env.is_array()) return;
  std::erase_if(*env.AsArray(), [&](const Json& item) {
    const Json* found = item.Find("name");
    return found != nullptr && found->AsString() != nullptr && *found->AsString() == name;
  });
  Json::Array& list = *env.AsArray();
  list.insert(is_first ? list.begin() : list.end(), Json::MakeObject({{"name", name}, {"value", value}}));
}

void SelectNodes(Json& pod, const std::map<std::string, std::string>& labels) {
  if (labels.empty() || (!pod.is_null() && !pod.is_object())) return;
  Json& spec = pod["spec"];
  if (!spec.is_null() && !spec.is_object()) return;
  Json& selector = spec["nodeSelector"];
  if (!selector.is_null() && !selector.is_object()) return;
  for (const auto& [key, value] : labels) selector[key] = value;
}

bool IsRuleOfNodes(const Json& spread) {
  const Json *key = spread.Find("topologyKey"), *when = spread.Find("whenUnsatisfiable");
  return key != nullptr && *key == Json("kubernetes.io/hostname") && when != nullptr && *when == Json("DoNotSchedule");
}

// At most an even share of the `pods` with these labels on a node. With one domain more than nodes wanted, the
// scheduler compares with a node that has none, also where these are all the nodes there are.
void KeepApart(const TrialStart& trial, int pods, Json labels, Json& pod) {
  if (!pod.is_null() && !pod.is_object()) return;
  Json& spec = pod["spec"];
  if (!spec.is_null() && !spec.is_object()) return;
  Json& spread = spec["topologySpreadConstraints"];
  if (!spread.is_null() && !spread.is_array()) return;
  if (spread.is_array()) std::erase_if(*spread.AsArray(), IsRuleOfNodes);  // The API server takes only one.
  spread.Append(Json::MakeObject({{"maxSkew", pods / trial.config.min_nodes},
                                  {"minDomains", trial.config.min_nodes + 1},
                                  {"topologyKey", "kubernetes.io/hostname"},
                                  {"whenUnsatisfiable", "DoNotSchedule"},
                                  {"labelSelector", Json::MakeObject({{"matchLabels", std::move(labels)}})}}));
}

void EndQuickly(Json& pod) {
  if (!pod.is_null() && !pod.is_object()) return;
  Json& spec = pod["spec"];
  if (spec.is_null() || spec.is_object()) spec["terminationGracePeriodSeconds"] = kTrialGraceSeconds;
}

// The words to append to the command.
std::vector<std::string> BatchSizeWords(const api::TrialSpace& space, int batch_size) {
  const std::string& option = space.batch_size_option;
  const std::string size = std::to_string(batch_size);
  if (batch_size == 0 || option.empty()) return {};
  if (option.ends_with('=')) return {option + size};
  return {option, size};
}

void SetBatchSize(const api::TrialSpace& space, int batch_size, api::ElasticHorovodJobSpec& spec) {
  if (batch_size == 0) return;
  const std::string size = std::to_string(batch_size);
  if (!space.batch_size_env.empty()) {
    SetEnv(ContainerOf(spec.launcher.pod_template, "launcher"), space.batch_size_env, size);
    SetEnv(ContainerOf(spec.workers.pod_template, "worker"), space.batch_size_env, size);
  }
  for (std::string& word : BatchSizeWords(space, batch_size)) spec.launcher.python_command.push_back(std::move(word));
}

// The member `name`, added if it is missing; null: it is not an object, which the API server will refuse. REQUIRES:
// `parent` is an object.
Json* ObjectIn(Json& parent, const char* name) {
  Json& member = parent[name];
  if (member.is_null()) member = Json::MakeObject();
  return member.is_object() ? &member : nullptr;
}

// A container that asks for part of a GPU has that one.
void AskForGpus(Json& container, int gpus) {
  if (AsksForGpuParts(GpuPartsOf(container))) return;
  Json* resources = ObjectIn(container, "resources");
  if (resources == nullptr) return;
  for (const char* list : {"requests", "limits"}) {
    if (Json* amounts = ObjectIn(*resources, list)) (*amounts)[kGpuResource] = std::to_string(gpus);
  }
}

void SetBatchSize(const api::TrialSpace& space, int batch_size, Json& container) {
  if (batch_size == 0) return;
  if (!space.batch_size_env.empty()) SetEnv(&container, space.batch_size_env, std::to_string(batch_size));
  const std::vector<std::string> words = BatchSizeWords(space, batch_size);
  if (words.empty()) return;
  const Json* args = container.Find("args");
  const bool has_args = args != nullptr && args->AsArray() != nullptr && !args->AsArray()->empty();
  Json& list = container[has_args ? "args" : "command"];
  if (!list.is_null() && !list.is_array()) return;
  for (const std::string& word : words) list.Append(word);
}

// Labels or annotations of the template, without those by which grus knows a trial: the template may be a copy of one.
Json TextsOf(const Json& pod_template, const char* member) {
  const Json* given = pod_template.At({"metadata", member});
  Json texts = given != nullptr && given->is_object() ? *given : Json::MakeObject();
  for (const char* ours : {kPodsAnnotation, kSuspendedAnnotation, kPushedStepAnnotation, kPushedSamplesAnnotation,
                           kTrialLabel, api::kPodGroupLabel}) {
    texts.Erase(ours);
  }
  return texts;
}

Json MetadataOf(const api::TrialJob& job, const TrialStart& trial, Json labels, Json annotations) {
  labels[kTrialJobLabel] = job.metadata.name;
  annotations[kSliceAnnotation] = std::to_string(trial.slice_seconds);
  annotations[kSpentAnnotation] = std::to_string(trial.spent_before);
  return Json::MakeObject({{"name", trial.name},
                           {"namespace", job.metadata.ns},
                           {"labels", std::move(labels)},
                           {"annotations", std::move(annotations)}});
}

void SetOwner(const api::TrialJob& job, Json& made) {
  // This cannot fail: a TrialJob from the cache has a UID, and the child is new and in its namespace.
  [[maybe_unused]] const kube::Status owned =
      kube::SetControllerReference(api::TrialJob::ResourceKind(), job.metadata, made);
  assert(owned);
}

// blockOwnerDeletion would need the right to update finalizers of pods.
Json OwnedByPod(const std::string& name, const std::string& uid) {
  return Json::MakeArray(
      {Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", name}, {"uid", uid}, {"controller", true}})});
}

std::int64_t DeadlineOf(const TrialStart& trial) { return trial.slice_seconds + kStartAllowanceSeconds; }

// torchrun takes each option from PET_NAME; others read the names without the prefix.
void SetNodes(const TrialStart& trial, int rank, Json& container) {
  const std::string pods = std::to_string(trial.pods), processes = std::to_string(trial.config.gpus / trial.pods);
  const std::string address = trial.pods > 1 ? trial.name + "." + trial.name : "localhost";
  const std::pair<const char*, std::string> variables[] = {{"MASTER_ADDR", address},
                                                           {"MASTER_PORT", std::to_string(kMasterPort)},
                                                           {"NNODES", pods},
                                                           {"NODE_RANK", std::to_string(rank)},
                                                           {"NPROC_PER_NODE", processes}};
  for (const auto& [name, value] : variables) {
    SetEnv(&container, name, value, true);
    SetEnv(&container, std::string("PET_") + name, value, true);
  }
  SetEnv(&container, "WORLD_SIZE", std::to_string(trial.config.gpus), true);
}

// The pod of a trial that has this rank, 0 the first, without an owner.
Json PodOfRank(const api::TrialJob& job, const Json& pod_template, const TrialStart& trial, bool is_gang, int rank) {
  Json labels = TextsOf(pod_template, "labels"), annotations = TextsOf(pod_template, "annotations");
  if (is_gang) labels[api::kPodGroupLabel] = trial.name;
  if (trial.pods > 1) labels[kTrialLabel] = trial.name;
  if (trial.pods > 1) annotations[kPodsAnnotation] = std::to_string(trial.pods);
  Json made = Json::MakeObject({{"apiVersion", "v1"},
                                {"kind", "Pod"},
                                {"metadata", MetadataOf(job, trial, std::move(labels), std::move(annotations))},
                                {"spec", *pod_template.Find("spec")}});
  if (rank > 0) made["metadata"]["name"] = PeerName(trial.name, rank);
  SelectNodes(made, NodesOf(job.spec.space, trial.config.gpu_type));
  if (trial.config.min_nodes > 1) {
    KeepApart(trial, trial.pods, Json::MakeObject({{kTrialLabel, trial.name}}), made);
  }
  EndQuickly(made);
  Json* container = TrainingContainerOf(made);
  AskForGpus(*container, trial.config.gpus / std::max(1, trial.pods));
  SetBatchSize(job.spec.space, trial.config.batch_size, *container);
  if (trial.pods > 0) SetNodes(trial, rank, *container);
  Json& spec = made["spec"];
  if (trial.pods > 1) {
    spec["hostname"] = *made.At({"metadata", "name"});
    spec["subdomain"] = trial.name;
    const Json* is_host = spec.Find("hostNetwork");
    const bool is_default = spec.Find("dnsPolicy") == nullptr || *spec.Find("dnsPolicy") == Json("ClusterFirst");
    if (is_host != nullptr && *is_host == Json(true) && is_default) spec["dnsPolicy"] = "ClusterFirstWithHostNet";
  }
  spec["restartPolicy"] = "Never";
  spec["activeDeadlineSeconds"] = DeadlineOf(trial);
  Json& gates = spec["schedulingGates"];
  const Json gate = Json::MakeObject({{"name", api::kGangGate}});
  if (gates.is_array()) std::erase(*gates.AsArray(), gate);
  if (is_gang && (gates.is_null() || gates.is_array())) gates.Append(gate);
  if (gates.is_null()) spec.Erase("schedulingGates");
  return made;
}

}  // namespace

Json MakeJobTrial(const api::TrialJob& job, const api::ElasticHorovodJobSpec& workload, const TrialStart& trial) {
  api::ElasticHorovodJob child;
  api::ElasticHorovodJobSpec& spec = child.spec;
  spec = workload;
  const std::int32_t workers = trial.config.gpus / std::max(1, DevicesOf(spec.workers).count);
  spec.workers.min_replicas = spec.workers.max_replicas = spec.workers.target_replicas = workers;
  spec.run_policy = {};
  spec.run_policy.backoff_limit = 0;
  // The ended launcher stays until the trial is judged: its log says why it ended.
  spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kRunning;
  spec.run_policy.active_deadline_seconds = DeadlineOf(trial);
  spec.profile = "Off";
  SelectNodes(spec.workers.pod_template, NodesOf(job.spec.space, trial.config.gpu_type));
  if (trial.config.min_nodes > 1) {
    Json labels = Json::MakeObject({{kJobNameLabel, trial.name}, {kRoleLabel, "worker"}});
    KeepApart(trial, workers, std::move(labels), spec.workers.pod_template);
  }
  EndQuickly(spec.workers.pod_template);
  EndQuickly(spec.launcher.pod_template);
  SetBatchSize(job.spec.space, trial.config.batch_size, spec);

  const kube::Kind& kind = api::ElasticHorovodJob::ResourceKind();
  const kube::Result<Json> encoded = kube::ParseJson(kube::EncodeObject(kind, child));
  Json made = Json::MakeObject({{"apiVersion", "ai.centauruscloud.io/v1alpha1"},
                                {"kind", "ElasticHorovodJob"},
                                {"metadata", MetadataOf(job, trial, Json::MakeObject(), Json::MakeObject())}});
  if (encoded && encoded->Find("spec") != nullptr) made["spec"] = *encoded->Find("spec");
  SetOwner(job, made);
  return made;
}

Json MakePodTrial(const api::TrialJob& job, const Json& pod_template, const TrialStart& trial, bool is_gang) {
  Json made = PodOfRank(job, pod_template, trial, is_gang, 0);
  SetOwner(job, made);
  return made;
}

std::vector<Json> MakeTrialPeers(const api::TrialJob& job, const Json& pod_template, const TrialStart& trial,
                                 bool is_gang, const std::string& first_uid) {
  std::vector<Json> peers;
  for (int rank = 1; rank < trial.pods; ++rank) {
    peers.push_back(PodOfRank(job, pod_template, trial, is_gang, rank));
    peers.back()["metadata"]["ownerReferences"] = OwnedByPod(trial.name, first_uid);
  }
  return peers;
}

Json MakeTrialService(const api::TrialJob& job, const TrialStart& trial, const std::string& first_uid) {
  Json metadata = Json::MakeObject(
      {{"name", trial.name}, {"namespace", job.metadata.ns}, {"ownerReferences", OwnedByPod(trial.name, first_uid)}});
  metadata["labels"][kTrialJobLabel] = job.metadata.name;
  const Json port = Json::MakeObject({{"name", "rendezvous"}, {"port", kMasterPort}});
  return Json::MakeObject(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", std::move(metadata)},
       {"spec", Json::MakeObject({{"clusterIP", "None"},
                                  {"publishNotReadyAddresses", true},  // They look for each other as they start.
                                  {"selector", Json::MakeObject({{kTrialLabel, trial.name}})},
                                  {"ports", Json::MakeArray({port})}})}});
}

Json MakeTrialGroup(const kube::Pod& pod) {
  Json labels = Json::MakeObject();
  labels[kTrialJobLabel] = pod.metadata.Label(kTrialJobLabel);
  const Json owner = OwnedByPod(pod.metadata.name, pod.metadata.uid);
  return Json::MakeObject({{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
                           {"kind", "PodGroup"},
                           {"metadata", Json::MakeObject({{"name", pod.metadata.name},
                                                          {"namespace", pod.metadata.ns},
                                                          {"labels", std::move(labels)},
                                                          {"ownerReferences", owner}})},
                           {"spec", Json::MakeObject({{"minMember", PodsOfTrial(pod)}})}});
}

}  // namespace grus
