// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/workload_fingerprint.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>

#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/resources.h"
#include "controllers/policy/training_container.h"
#include "controllers/policy/worker_devices.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using kube::Json;
using kube::Quantity;

constexpr char kScheme[] = "2";  // New rules need a new number; old fingerprints are not found then.
constexpr std::size_t kFingerprintBytes = 16;
constexpr std::string_view kDigestMark = "sha256:";

using Amounts = std::map<std::string, Quantity>;

std::string TextOf(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  return value && value->AsString() ? *value->AsString() : std::string();
}

// The container of that name in a user's pod template; null if there is none.
const Json* ContainerOf(const Json& pod_template, std::string_view name) {
  const Json* containers = pod_template.At({"spec", "containers"});
  if (!containers || !containers->AsArray()) return nullptr;
  for (const Json& container : *containers->AsArray()) {
    if (TextOf(container, "name") == name) return &container;
  }
  return nullptr;
}

// Leaves out what the API server would refuse: such a job does not run.
Amounts AmountsOf(const Json* container, std::string_view list) {
  Amounts amounts;
  const Json* given = container ? container->At({"resources", list}) : nullptr;
  if (!given || !given->AsObject()) return amounts;
  for (const auto& [name, value] : *given->AsObject()) {
    if (name == kGpuResource) continue;
    const kube::Result<Quantity> amount = kube::ParseQuantity(value.AsString() ? *value.AsString() : ToText(value));
    if (amount) amounts[name] = *amount;
  }
  return amounts;
}

Json ToJson(const Amounts& amounts) {
  Json json = Json::MakeObject();
  for (const auto& [name, amount] : amounts) json.AsObject()->emplace_back(name, amount.MilliValue());
  return json;
}

// If a variable is given twice, the last one counts, as in a container.
Json EnvironmentOf(const Json* container) {
  std::map<std::string, std::string> values;
  const Json* list = container ? container->Find("env") : nullptr;
  if (list && list->AsArray()) {
    for (const Json& variable : *list->AsArray()) {
      if (variable.Find("valueFrom") == nullptr) values[TextOf(variable, "name")] = TextOf(variable, "value");
    }
  }
  Json json = Json::MakeObject();
  for (const auto& [name, value] : values) json.AsObject()->emplace_back(name, value);
  return json;
}

// With the members of each object in the order of their names.
Json Sorted(const Json& json) {
  if (json.AsArray() != nullptr) {
    Json sorted = Json::MakeArray();
    for (const Json& item : *json.AsArray()) sorted.Append(Sorted(item));
    return sorted;
  }
  if (json.AsObject() == nullptr) return json;
  Json sorted = Json::MakeObject();
  for (const auto& [name, value] : *json.AsObject()) sorted.AsObject()->emplace_back(name, Sorted(value));
  std::ranges::sort(*sorted.AsObject(), {}, &Json::Member::first);
  return sorted;
}

Json VolumesOf(const Json& pod_template, const Json* container) {
  Json json = Json::MakeObject();
  const Json* volumes = pod_template.At({"spec", "volumes"});
  const Json* mounts = container != nullptr ? container->Find("volumeMounts") : nullptr;
  if (volumes != nullptr) json["volumes"] = Sorted(*volumes);
  if (mounts != nullptr) json["mounts"] = Sorted(*mounts);
  return json;
}

std::string ScopeOf(const kube::ObjectMeta& metadata, ProfileTrust trust) {
  return trust == ProfileTrust::kCluster ? std::string() : metadata.ns;
}

// "sha256:..." of an image that ends with it.
std::string_view DigestIn(std::string_view image) {
  const std::size_t at = image.rfind(kDigestMark);
  const bool is_digest =
      at != std::string_view::npos && image.size() > at + kDigestMark.size() && (at == 0 || image[at - 1] == '@');
  return is_digest ? image.substr(at) : std::string_view();
}

std::string WithoutDigest(const std::string& image) { return image.substr(0, image.find('@')); }

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string FirstHexOfSha256(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  [[maybe_unused]] const int is_done = EVP_Digest(text.data(), text.size(), digest, nullptr, EVP_sha256(), nullptr);
  assert(is_done == 1);  // It fails only if there is no memory.
  constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (std::size_t i = 0; i < kFingerprintBytes; ++i) {
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

std::vector<std::string> WordsOf(const Json& container, std::string_view list) {
  std::vector<std::string> words;
  const Json* given = container.Find(list);
  if (!given || !given->AsArray()) return words;
  for (const Json& word : *given->AsArray()) {
    if (word.AsString()) words.push_back(*word.AsString());
  }
  return words;
}

Json ToJson(const std::vector<std::string>& words) {
  Json json = Json::MakeArray();
  for (const std::string& word : words) json.Append(word);
  return json;
}

std::string AnnotationOf(const Json& pod_template, const kube::StringMap& others, const char* annotation) {
  const Json* own = pod_template.At({"metadata", "annotations", annotation});
  return own && own->AsString() ? *own->AsString() : std::string(others.Get(annotation));
}

// With it, a program is another workload: it is slower.
void AddPagedMemory(const Json& pod_template, Json& json) {
  std::string said = AnnotationOf(pod_template, {}, api::kPagedMiBAnnotation);
  if (!said.empty()) json["pagedMiB"] = std::move(said);
}

// Whether it had whole GPUs or a part of one: what it does alone is measured on whole ones.
Json WithoutParts(const Json& resources) {
  Json kept = Json::MakeObject();
  for (const char* list : {"requests", "limits"}) {
    const Json* given = resources.Find(list);
    if (given == nullptr || given->AsObject() == nullptr) continue;
    kept[list] = Json::MakeObject();
    for (const auto& [name, amount] : *given->AsObject()) {
      if (!IsGpuPart(name)) kept[list].AsObject()->emplace_back(name, amount);
    }
  }
  return kept;
}

// What counts of a pod that was made by others: environment and volumes often name its rank, its peers or its run.
Json TemplateOfRunning(const Json& pod) {
  Json containers = Json::MakeArray();
  const Json* given = pod.At({"spec", "containers"});
  if (given != nullptr && given->AsArray() != nullptr) {
    for (const Json& container : *given->AsArray()) {
      Json kept = Json::MakeObject();
      for (const char* field : {"name", "image", "command", "args"}) {
        if (const Json* value = container.Find(field)) kept[field] = Json(*value);
      }
      if (const Json* resources = container.Find("resources")) kept["resources"] = WithoutParts(*resources);
      containers.Append(std::move(kept));
    }
  }
  Json spec = Json::MakeObject({{"containers", std::move(containers)}});
  Json made = Json::MakeObject({{"spec", std::move(spec)}});
  if (const Json* annotations = pod.At({"metadata", "annotations"})) made["metadata"]["annotations"] = *annotations;
  return made;
}

// Cuts to the limits of the CRD: otherwise no profile of a job with a very long command could be saved.
void Bound(api::ProfiledWorkload& workload) {
  workload.image.resize(std::min<std::size_t>(workload.image.size(), 512));
  workload.command.resize(std::min<std::size_t>(workload.command.size(), 256));
  workload.model.resize(std::min<std::size_t>(workload.model.size(), 253));
  workload.args.resize(std::min<std::size_t>(workload.args.size(), 256));
  workload.dataset.resize(std::min<std::size_t>(workload.dataset.size(), 253));
  while (workload.resources.size() > 32) workload.resources.erase(std::prev(workload.resources.end()));
}

}  // namespace

WorkloadIdentity IdentityOf(const api::ElasticHorovodJobSpec& spec, const kube::ObjectMeta& metadata,
                            ProfileTrust trust, std::string_view image_digest) {
  const Json* worker = ContainerOf(spec.workers.pod_template, "worker");
  const Json* launcher = ContainerOf(spec.launcher.pod_template, "launcher");
  const Amounts limits = AmountsOf(worker, "limits");
  Amounts requests = AmountsOf(worker, "requests");
  requests.insert(limits.begin(), limits.end());  // As Kubernetes fills in missing requests.

  // A digest in the name of the image wins: that is what runs.
  std::string_view digest = DigestIn(spec.workers.image);
  if (digest.empty()) digest = DigestIn(image_digest);

  WorkloadIdentity identity;
  api::ProfiledWorkload& workload = identity.workload;
  workload.image = digest.empty() ? spec.workers.image : WithoutDigest(spec.workers.image) + "@" + std::string(digest);
  workload.command = spec.launcher.python_command;
  workload.resources = requests;
  const WorkerDevices devices = DevicesOf(spec.workers);
  workload.gpus_per_worker = devices.count;
  workload.model = std::string(metadata.Annotation(kModelAnnotation));
  workload.dataset = std::string(metadata.Annotation(kDatasetAnnotation));
  workload.ns = ScopeOf(metadata, trust);

  Json json = Json::MakeObject();
  json["scheme"] = kScheme;
  json["image"] = digest.empty() ? spec.workers.image : std::string(digest);  // Also from a mirror.
  json["command"] = Joined(spec.launcher.python_command);
  json["requests"] = ToJson(requests);
  json["limits"] = ToJson(limits);
  json["gpusPerWorker"] = devices.count;
  if (const std::int64_t said = devices.part.Extended(kSaidMemory); said > 0) json["memoryMiB"] = said;
  AddPagedMemory(spec.workers.pod_template, json);
  json["workerEnvironment"] = EnvironmentOf(worker);
  json["launcherEnvironment"] = EnvironmentOf(launcher);
  json["workerVolumes"] = VolumesOf(spec.workers.pod_template, worker);
  json["launcherVolumes"] = VolumesOf(spec.launcher.pod_template, launcher);
  json["model"] = workload.model;
  json["dataset"] = workload.dataset;
  json["namespace"] = workload.ns;
  identity.fingerprint = FirstHexOfSha256(ToText(json));
  Bound(workload);
  return identity;
}

WorkloadIdentity IdentityOfPod(const Json& pod_template, const kube::ObjectMeta& metadata, ProfileTrust trust) {
  WorkloadIdentity identity;
  api::ProfiledWorkload& workload = identity.workload;
  const Json* container = TrainingContainerOf(pod_template);
  const Amounts limits = AmountsOf(container, "limits");
  Amounts requests = AmountsOf(container, "requests");
  requests.insert(limits.begin(), limits.end());
  if (container != nullptr) {
    workload.image = TextOf(*container, "image");
    workload.command = WordsOf(*container, "command");
    workload.args = WordsOf(*container, "args");
  }
  workload.resources = requests;
  workload.model = AnnotationOf(pod_template, metadata.annotations, kModelAnnotation);
  workload.dataset = AnnotationOf(pod_template, metadata.annotations, kDatasetAnnotation);
  workload.ns = ScopeOf(metadata, trust);

  const std::string_view digest = DigestIn(workload.image);
  Json json = Json::MakeObject();
  json["scheme"] = kScheme;
  json["kind"] = "Pod";
  json["image"] = digest.empty() ? workload.image : std::string(digest);
  json["command"] = ToJson(workload.command);
  json["args"] = ToJson(workload.args);
  const std::int64_t said = container ? GpuPartsOf(pod_template, *container).Extended(kSaidMemory) : 0;
  if (said > 0) json["memoryMiB"] = said;
  AddPagedMemory(pod_template, json);
  json["requests"] = ToJson(requests);
  json["limits"] = ToJson(limits);
  json["environment"] = EnvironmentOf(container);
  json["volumes"] = VolumesOf(pod_template, container);
  json["model"] = workload.model;
  json["dataset"] = workload.dataset;
  json["namespace"] = workload.ns;
  identity.fingerprint = FirstHexOfSha256(ToText(json));
  Bound(workload);
  return identity;
}

WorkloadIdentity IdentityOfRunningPod(const Json& pod, const kube::ObjectMeta& metadata, ProfileTrust trust) {
  return IdentityOfPod(TemplateOfRunning(pod), metadata, trust);
}

bool NamesItsProfile(const api::ElasticHorovodJob& job) {
  const std::string& profile = job.spec.profile;
  return !profile.empty() && profile != "Auto" && profile != "Off";
}

std::optional<std::string> ProfileNameOf(const api::ElasticHorovodJob& job, ProfileTrust trust) {
  if (NamesItsProfile(job)) return job.spec.profile;
  if (job.spec.profile == "Off") return std::nullopt;
  return IdentityOf(job.spec, job.metadata, trust).fingerprint;
}

bool IsFor(const api::WorkloadProfile& profile, std::string_view ns) {
  return profile.spec.workload.ns.empty() || profile.spec.workload.ns == ns;
}

bool IsOf(const api::WorkloadProfile& profile, const api::ElasticHorovodJob& job, ProfileTrust trust) {
  return profile.spec.fingerprint == IdentityOf(job.spec, job.metadata, trust).fingerprint;
}

std::string GpuTypeOf(const api::ElasticHorovodJob& job) {
  const Json* product = job.spec.workers.pod_template.At({"spec", "nodeSelector", kGpuProductLabel});
  const std::string* text = product == nullptr ? nullptr : product->AsString();
  return text == nullptr ? std::string() : *text;
}

api::JobProfile JobProfileOf(const api::WorkloadProfile& profile, const api::ElasticHorovodJob& job) {
  api::JobProfile said{profile.metadata.name, {}};
  const std::string gpu_type = GpuTypeOf(job);
  const std::vector<api::GpuTypeProfile>& types = profile.status.gpu_types;
  for (const api::GpuTypeProfile& type : types) {
    const bool is_meant = gpu_type.empty() ? types.size() == 1 : gpu_type == type.model.gpu_type;
    if (is_meant) said.knee_gpus = type.knee_gpus;
  }
  return said;
}

}  // namespace grus
