// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/pod_owners.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "clientlib/model/json.h"
#include "controllers/cluster/owners.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using kube::ErrorCode;
using kube::Json;

// Kinds that others make, where they are, and how their objects are listed.
struct Between {
  std::string_view kind, path, plural;
};
constexpr Between kBetween[] = {
    {"ReplicaSet", "/apis/apps/v1", "replicasets"},
    {"Job", "/apis/batch/v1", "jobs"},
    {"PodGroup", "/apis/scheduling.x-k8s.io/v1alpha1", "podgroups"},
};
constexpr int kMostLevels = 4;
constexpr std::size_t kLongestWord = 63;
constexpr char kUnknownUid[] = "podgroup-";  // And the name: until the group was read.

// The API server takes any text as the kind, name or UID of an owner.
bool IsPlain(std::string_view word) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !word.empty() && word.front() != '.' && word.size() <= 253 && std::ranges::all_of(word, is_fine);
}

constexpr std::int64_t kMostGpus = 1024;  // Of a pod.

bool IsGpu(std::string_view resource) {
  return resource.ends_with("/gpu") || resource.starts_with("gpu.intel.com/") ||
         resource.starts_with("nvidia.com/mig-");
}

std::string TextAt(const Json& object, std::string_view name) {
  const Json* found = object.Find(name);
  return found != nullptr && found->AsString() != nullptr ? *found->AsString() : std::string();
}

std::optional<JobRef> ControllerIn(const Json& object, const std::string& ns) {
  const Json* owners = object.At({"metadata", "ownerReferences"});
  if (owners == nullptr || owners->AsArray() == nullptr) return std::nullopt;
  for (const Json& owner : *owners->AsArray()) {
    const Json* is_controller = owner.Find("controller");
    if (is_controller == nullptr || is_controller->AsBool() == nullptr || !*is_controller->AsBool()) continue;
    return JobRef{TextAt(owner, "kind"), {ns, TextAt(owner, "name")}, TextAt(owner, "uid")};
  }
  return std::nullopt;
}

// When it ended, if it does not say so itself: when that was last heard of it, and no later. A pod may lie around for
// days.
kube::Time EndOf(const kube::Pod& pod) {
  std::optional<kube::Time> last;
  const auto note = [&](const std::optional<kube::Time>& time) {
    if (time && *time != kube::Time()) last = std::max(last.value_or(*time), *time);
  };
  for (const kube::ContainerStatus& status : pod.status.container_statuses) {
    if (status.state.terminated) note(status.state.terminated->finished_at);
  }
  if (!last) {
    for (const kube::CoreCondition& condition : pod.status.conditions) note(condition.last_transition_time);
  }
  return last ? *last : pod.status.start_time.value_or(kube::Time());
}

}  // namespace

std::int32_t GpusOf(const kube::Pod& pod, const kube::Node* node) {
  std::map<std::string, std::int64_t> asked;
  for (const kube::Container& container : pod.spec.containers) {
    for (const auto& [name, amount] : container.resources.requests) {
      if (IsGpu(name)) asked[name.str()] += std::clamp<std::int64_t>(amount.Value(), 0, kMostGpus);
    }
  }
  std::int64_t gpus = 0;
  for (const auto& [name, amount] : asked) {
    const kube::Quantity* has = node == nullptr ? nullptr : kube::FindResource(node->status.capacity, name);
    if (node == nullptr) gpus += amount;
    else if (has != nullptr) gpus += std::min(amount, has->Value());
  }
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(gpus, 0, kMostGpus));
}

JobRef OwnerRefOf(const kube::Pod& pod) {
  const std::string& ns = pod.metadata.ns;
  const kube::OwnerReference* owner = pod.metadata.Controller();
  if (owner != nullptr && IsPlain(owner->kind.str()) && IsPlain(owner->name.str()) && IsPlain(owner->uid.str())) {
    return {owner->kind.str(), {ns, owner->name.str()}, owner->uid.str()};
  }
  const std::string group(GroupNameOf(api::PodGroup::ResourceKind(), pod.metadata));
  if (owner == nullptr && !group.empty()) return {"PodGroup", {ns, group}, kUnknownUid + group};
  return {"Pod", pod.metadata.Key(), pod.metadata.uid};
}

std::optional<GpuPod> GpuPodOf(const kube::Pod& pod, const kube::Node* node, kube::Time now) {
  const bool has_ended = HasEnded(pod);
  if (pod.status.phase.view() != "Running" && !(has_ended && pod.status.start_time)) return std::nullopt;
  const std::int32_t gpus = GpusOf(pod, node);
  if (gpus == 0) return std::nullopt;
  GpuPod seen{.key = pod.metadata.Key(),
              .uid = pod.metadata.uid,
              .owner = std::make_shared<const JobRef>(OwnerRefOf(pod)),
              .gpus = gpus,
              .node = pod.spec.node_name.str(),
              .started = pod.status.start_time.value_or(now)};
  if (has_ended) {
    seen.ended = EndOf(pod);
    seen.outcome = pod.status.phase.view() == "Succeeded" ? api::RunOutcome::kSucceeded
                   : pod.metadata.is_being_deleted()      ? api::RunOutcome::kDeleted  // It was told to end.
                                                          : api::RunOutcome::kFailed;
  }
  return seen;
}

kube::Result<JobRef> RootOf(kube::Client& client, JobRef owner, std::stop_token stop) {
  for (int level = 0; level < kMostLevels; ++level) {
    const auto between = std::ranges::find(kBetween, owner.kind, &Between::kind);
    if (between == std::end(kBetween)) break;
    const std::string path = std::string(between->path) + "/namespaces/" + owner.key.ns + "/" +
                             std::string(between->plural) + "/" + owner.key.name;
    const kube::Result<std::string> body = client.GetRaw(path, stop);
    if (!body) {
      const ErrorCode code = body.error().code();
      if (code == ErrorCode::kNotFound || code == ErrorCode::kForbidden) break;
      return body.error();
    }
    const kube::Result<Json> object = kube::ParseJson(*body);
    if (!object) return object.error();
    const Json* metadata = object->Find("metadata");
    if (metadata == nullptr) break;
    if (owner.uid.starts_with(kUnknownUid)) owner.uid = TextAt(*metadata, "uid");
    if (TextAt(*metadata, "uid") != owner.uid) break;  // Another one of that name.
    std::optional<JobRef> above = ControllerIn(*object, owner.key.ns);
    if (!above || above->kind == "CronJob") break;  // Each Job of a CronJob is a run.
    if (!IsPlain(above->kind) || !IsPlain(above->key.name) || !IsPlain(above->uid)) break;
    owner = *std::move(above);
  }
  owner.kind.resize(std::min(owner.kind.size(), kLongestWord));
  owner.uid.resize(std::min(owner.uid.size(), kLongestWord));
  return owner;
}

}  // namespace grus
