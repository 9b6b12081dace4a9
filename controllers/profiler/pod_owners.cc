// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/pod_owners.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "clientlib/base/lower_case.h"
#include "clientlib/client/resource_path.h"
#include "clientlib/model/json.h"
#include "controllers/cluster/owners.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using kube::ErrorCode;
using kube::Json;

// Kinds that may stand between pods and their job.
const OwnerKind kBetween[] = {
    {"apps", "replicasets", "ReplicaSet"}, {"batch", "jobs", "Job"}, {"scheduling.x-k8s.io", "podgroups", "PodGroup"}};
constexpr char kPodGroups[] = "scheduling.x-k8s.io";
constexpr int kMostLevels = 4;
constexpr std::size_t kLongestWord = 63;
constexpr char kUnknownUid[] = "podgroup-";  // And the name: until the group was read.

// The API server takes nearly any text as the version, kind, name or UID of an owner.
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

// nullopt: its words are not plain.
std::optional<PodOwner> OwnerIn(const std::string& ns, const kube::OwnerReference& owner) {
  const std::string_view api_version = owner.api_version.view();
  const std::size_t slash = api_version.find('/');
  const bool has_group = slash != std::string_view::npos;
  const std::string_view group = has_group ? api_version.substr(0, slash) : std::string_view();
  const std::string_view version = has_group ? api_version.substr(slash + 1) : api_version;
  if ((has_group && !IsPlain(group)) || !IsPlain(version)) return std::nullopt;
  if (!IsPlain(owner.kind.view()) || !IsPlain(owner.name.view()) || !IsPlain(owner.uid.view())) return std::nullopt;
  return PodOwner{{owner.kind, {ns, owner.name}, owner.uid}, std::string(group), std::string(version)};
}

// As Kubernetes guesses the resource of a kind, where nobody says another.
std::string PluralOf(std::string_view kind) {
  std::string word = kube::LowerCase(kind);
  if (word.ends_with('s') || word.ends_with('x') || word.ends_with("ch") || word.ends_with("sh")) return word + "es";
  if (word.ends_with('y')) return word.substr(0, word.size() - 1) + "ies";
  return word + "s";
}

// Empty: it is of no kind that is read.
std::string PathOf(const PodOwner& owner, std::span<const OwnerKind> kinds) {
  const OwnerKind* kind = KindIn(kBetween, owner);
  if (kind == nullptr) kind = KindIn(kinds, owner);
  if (kind == nullptr) return {};
  return kube::ObjectPath({.group = kind->group, .version = owner.version, .plural = kind->resource}, owner.ref.key);
}

// nullopt: none, or one that is not plain.
std::optional<PodOwner> ControllerIn(const Json& object, const std::string& ns) {
  const Json* owners = object.At({"metadata", "ownerReferences"});
  if (owners == nullptr || owners->AsArray() == nullptr) return std::nullopt;
  for (const Json& owner : *owners->AsArray()) {
    const Json* is_controller = owner.Find("controller");
    if (is_controller == nullptr || is_controller->AsBool() == nullptr || !*is_controller->AsBool()) continue;
    return OwnerIn(ns, {.api_version = TextAt(owner, "apiVersion"),
                        .kind = TextAt(owner, "kind"),
                        .name = TextAt(owner, "name"),
                        .uid = TextAt(owner, "uid")});
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

const OwnerKind* KindIn(std::span<const OwnerKind> kinds, const PodOwner& owner) {
  const std::string_view name = owner.ref.kind;
  const std::string plural = !name.empty() && name.front() >= 'A' && name.front() <= 'Z' ? PluralOf(name) : "";
  const auto is_it = [&](const OwnerKind& kind) {
    if (owner.version.empty() || kind.group != owner.group) return false;
    return kind.kind.empty() ? kind.resource == plural : kind.kind == name;
  };
  const auto at = std::ranges::find_if(kinds, is_it);
  return at == kinds.end() ? nullptr : &*at;
}

PodOwner PodOwnerOf(const kube::Pod& pod) {
  const std::string& ns = pod.metadata.ns;
  const kube::OwnerReference* owner = pod.metadata.Controller();
  if (owner != nullptr) {
    if (auto plain = OwnerIn(ns, *owner)) return *std::move(plain);
  }
  const std::string group(GroupNameOf(api::PodGroup::ResourceKind(), pod.metadata));
  if (owner == nullptr && !group.empty())
    return {{"PodGroup", {ns, group}, kUnknownUid + group}, kPodGroups, "v1alpha1"};
  return {{"Pod", pod.metadata.Key(), pod.metadata.uid}};
}

std::optional<GpuPod> GpuPodOf(const kube::Pod& pod, const kube::Node* node, kube::Time now) {
  const bool has_ended = HasEnded(pod);
  if (pod.status.phase.view() != "Running" && !(has_ended && pod.status.start_time)) return std::nullopt;
  const std::int32_t gpus = GpusOf(pod, node);
  if (gpus == 0) return std::nullopt;
  GpuPod seen{.key = pod.metadata.Key(),
              .uid = pod.metadata.uid,
              .owner = std::make_shared<const JobRef>(PodOwnerOf(pod).ref),
              .gpus = gpus,
              .node = pod.spec.node_name,
              .started = pod.status.start_time.value_or(now)};
  if (has_ended) {
    seen.ended = EndOf(pod);
    seen.outcome = pod.status.phase.view() == "Succeeded" ? api::RunOutcome::kSucceeded
                   : pod.metadata.is_being_deleted()      ? api::RunOutcome::kDeleted  // It was told to end.
                                                          : api::RunOutcome::kFailed;
  }
  return seen;
}

kube::Result<JobRef> RootOf(kube::Client& client, PodOwner owner, std::span<const OwnerKind> kinds,
                            std::stop_token stop) {
  JobRef& ref = owner.ref;
  for (int level = 0; level < kMostLevels; ++level) {
    const std::string path = PathOf(owner, kinds);
    if (path.empty()) break;
    const kube::Result<std::string> body = client.GetRaw(path, stop);
    if (!body) {
      const ErrorCode code = body.error().code();
      if (code == ErrorCode::kNotFound || code == ErrorCode::kForbidden) break;
      return body.error();
    }
    const kube::Result<Json> object = kube::ParseJson(*body);
    if (!object) break;  // Deeper than is read, as its author likes: another try would find the same.
    const Json* metadata = object->Find("metadata");
    if (metadata == nullptr) break;
    if (ref.uid.view().starts_with(kUnknownUid)) ref.uid = TextAt(*metadata, "uid");
    if (TextAt(*metadata, "uid") != ref.uid) break;  // Another one of that name.
    std::optional<PodOwner> above = ControllerIn(*object, ref.key.ns);
    if (!above || above->ref.kind == "CronJob") break;  // Each Job of a CronJob is a run.
    owner = *std::move(above);
  }
  ref.kind = ref.kind.view().substr(0, kLongestWord);
  ref.uid = ref.uid.view().substr(0, kLongestWord);
  return ref;
}

}  // namespace grus
