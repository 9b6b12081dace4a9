// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/statefulset_controller.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "clientlib/model/time.h"
#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

constexpr std::string_view kSets = "statefulsets.apps";
constexpr std::string_view kRevisionLabel = "controller-revision-hash";

// The ordinal in SET-ORDINAL; nothing if the pod has another name.
std::optional<int> OrdinalOf(std::string_view pod, std::string_view set) {
  if (!pod.starts_with(set) || pod.size() < set.size() + 2 || pod[set.size()] != '-') return std::nullopt;
  const std::string_view digits = pod.substr(set.size() + 1);
  int ordinal = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (error != std::errc() || end != digits.data() + digits.size() || ordinal < 0) return std::nullopt;
  return ordinal;
}

std::string RevisionName(const Json& set, const Json& pod_template) {
  std::uint32_t hash = 2166136261;  // FNV-1a, as in the real controller; its text form is our own.
  for (const char c : ToText(pod_template)) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return std::string(TextAt(set, {"metadata", "name"})) + "-" + std::to_string(hash);
}

}  // namespace

// The data of one pass over a set.
struct StatefulSetController::Pass {
  const Json& set;
  bool is_ordered = true, is_rolling = true;
  int start = 0, replicas = 1;
  int partition = 0;
  std::string current_revision, update_revision;
  std::vector<ObjectPtr> wanted;                          // By ordinal from start; null: missing.
  std::vector<std::pair<int, ObjectPtr>> condemned = {};  // From the highest ordinal.
  Json status = {};
  Duration next_available = Duration::max();
  bool has_failed = false;
};

StatefulSetController::StatefulSetController(const ClusterContext& context)
    : context_(context),
      loop_(context, context.options.statefulset, [this](const ObjectKey& key) { return Reconcile(key); }),
      events_(context, "statefulset-controller") {}

void StatefulSetController::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  if (change.resource == kSets) {
    ObjectKey key = KeyOf(object);
    if (change.after) {
      sets_.insert(key);
    } else {
      sets_.erase(key);
      templates_.erase(std::string(UidOf(object)));
    }
    loop_.Add(key);
  } else if (change.resource == "pods") {
    const std::string ns(TextAt(object, {"metadata", "namespace"}));
    if (const Json* const owner = ControllerOf(object)) {
      if (TextAt(*owner, {"kind"}) == "StatefulSet") loop_.Add({ns, std::string(TextAt(*owner, {"name"}))});
    } else {
      for (auto set = sets_.lower_bound({ns, ""}); set != sets_.end() && set->ns == ns; ++set) loop_.Add(*set);
    }
  }
}

bool StatefulSetController::Reconcile(const ObjectKey& key) {
  const ObjectPtr set = context_.server.Get(kSets, key);
  const Json* const pod_template = set ? set->At({"spec", "template"}) : nullptr;
  if (!pod_template) return true;

  Pass pass{.set = *set, .current_revision = {}, .update_revision = {}, .wanted = {}};
  pass.is_ordered = TextAt(*set, {"spec", "podManagementPolicy"}) != "Parallel";
  pass.is_rolling = TextAt(*set, {"spec", "updateStrategy", "type"}) != "OnDelete";
  pass.start = static_cast<int>(IntAt(*set, {"spec", "ordinals", "start"}));
  pass.replicas = static_cast<int>(IntAt(*set, {"spec", "replicas"}, 1));
  pass.partition = static_cast<int>(IntAt(*set, {"spec", "updateStrategy", "rollingUpdate", "partition"}));
  auto& templates = templates_[std::string(UidOf(*set))];
  pass.update_revision = RevisionName(*set, *pod_template);
  templates.emplace(pass.update_revision, *pod_template);
  pass.current_revision = TextAt(*set, {"status", "currentRevision"});
  if (!templates.contains(pass.current_revision)) pass.current_revision = pass.update_revision;

  pass.wanted.resize(static_cast<std::size_t>(std::max(0, pass.replicas)));
  std::map<std::string_view, std::int64_t> counts;
  for (auto& [ordinal, pod] : ClaimPods(*set)) {
    const std::string_view revision = LabelOf(*pod, kRevisionLabel);
    ++counts["replicas"];
    if (IsRunningAndReady(*pod)) ++counts["readyReplicas"];
    if (IsAvailable(*pod, pass)) ++counts["availableReplicas"];
    if (!IsBeingDeleted(*pod) && revision == pass.current_revision) ++counts["currentReplicas"];
    if (!IsBeingDeleted(*pod) && revision == pass.update_revision) ++counts["updatedReplicas"];
    if (ordinal >= pass.start && ordinal < pass.start + pass.replicas) {
      pass.wanted[static_cast<std::size_t>(ordinal - pass.start)] = pod;
    } else {
      pass.condemned.emplace_back(ordinal, pod);
    }
  }
  std::reverse(pass.condemned.begin(), pass.condemned.end());
  pass.status["observedGeneration"] = IntAt(*set, {"metadata", "generation"});
  pass.status["replicas"] = counts["replicas"];
  pass.status["availableReplicas"] = counts["availableReplicas"];
  for (const std::string_view name : {"readyReplicas", "currentReplicas", "updatedReplicas"}) {
    if (counts[name] != 0) pass.status[name] = counts[name];
  }

  if (!IsBeingDeleted(*set) && Scale(pass) && pass.is_rolling) Roll(pass);

  const bool is_rolled = pass.is_rolling && counts["updatedReplicas"] == pass.replicas &&
                         counts["readyReplicas"] == pass.replicas && counts["replicas"] == pass.replicas;
  if (is_rolled) {
    pass.current_revision = pass.update_revision;
    if (pass.replicas != 0) pass.status["currentReplicas"] = pass.replicas;
  }
  pass.status["currentRevision"] = pass.current_revision;
  pass.status["updateRevision"] = pass.update_revision;
  pass.status["collisionCount"] = IntAt(*set, {"status", "collisionCount"});
  const bool is_written = WriteStatus(pass);
  if (pass.next_available != Duration::max()) loop_.AddAfter(key, pass.next_available);
  return is_written && !pass.has_failed;
}

std::vector<std::pair<int, FakeApiServer::ObjectPtr>> StatefulSetController::ClaimPods(const Json& set) {
  const ObjectKey key = KeyOf(set);
  std::vector<std::pair<int, ObjectPtr>> claimed;
  for (ObjectPtr& pod : context_.server.List("pods", key.ns)) {
    const Json* const owner = ControllerOf(*pod);
    if (owner && TextAt(*owner, {"uid"}) != UidOf(set)) continue;
    const std::optional<int> ordinal = OrdinalOf(TextAt(*pod, {"metadata", "name"}), key.name);
    const bool matches = SelectorMatches(set.At({"spec", "selector"}), pod->At({"metadata", "labels"}));
    if (owner) {
      if (matches && ordinal) {
        claimed.emplace_back(*ordinal, std::move(pod));
      } else if (!IsBeingDeleted(set)) {  // Its labels no longer match: release it.
        context_.Modify("pods", KeyOf(*pod), UidOf(*pod), {}, [&](Json& object) {
          Json* const owners = object["metadata"].Find("ownerReferences");
          return owners && owners->AsArray() && std::erase_if(*owners->AsArray(), [&](const Json& reference) {
                                                  return TextAt(reference, {"uid"}) == UidOf(set);
                                                }) > 0;
        });
      }
      continue;
    }
    if (!matches || !ordinal || IsBeingDeleted(*pod) || IsBeingDeleted(set)) continue;
    const bool is_done = context_.Modify("pods", KeyOf(*pod), UidOf(*pod), {}, [&](Json& object) {
      object["metadata"]["ownerReferences"].Append(ControllerReference(set, "apps/v1", "StatefulSet"));
      return true;
    });
    if (is_done) {
      if (ObjectPtr adopted = context_.server.Get("pods", KeyOf(*pod))) claimed.emplace_back(*ordinal, adopted);
    }
  }
  std::sort(claimed.begin(), claimed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return claimed;
}

// True if the pods are those wanted, so that a rolling update may continue.
bool StatefulSetController::Scale(Pass& pass) {
  for (int i = 0; i < pass.replicas; ++i) {
    if (!KeepReplica(pass, pass.start + i) && (pass.is_ordered || pass.has_failed)) return false;
  }
  return RemoveCondemned(pass);
}

bool StatefulSetController::KeepReplica(Pass& pass, int ordinal) {
  const ObjectPtr& pod = pass.wanted[static_cast<std::size_t>(ordinal - pass.start)];
  if (!pod) {
    pass.has_failed = !CreatePod(pass, ordinal);
    return false;
  }
  if (HasEnded(*pod)) {  // Once it is gone, the next pass creates another one.
    if (!IsBeingDeleted(*pod)) pass.has_failed = !context_.DeleteObject("pods", *pod);
    return false;
  }
  return !IsBeingDeleted(*pod) && IsAvailable(*pod, pass);
}

bool StatefulSetController::RemoveCondemned(Pass& pass) {
  const bool are_wanted_available = std::all_of(pass.wanted.begin(), pass.wanted.end(), [&](const ObjectPtr& pod) {
    return pod && !IsBeingDeleted(*pod) && IsAvailable(*pod, pass);
  });
  const auto is_unavailable = [&](const auto& entry) {
    return IsBeingDeleted(*entry.second) || !IsAvailable(*entry.second, pass);
  };
  const auto lowest = std::find_if(pass.condemned.rbegin(), pass.condemned.rend(), is_unavailable);
  for (const auto& entry : pass.condemned) {
    const ObjectPtr& pod = entry.second;
    if (!pass.is_ordered) {
      if (!IsBeingDeleted(*pod)) pass.has_failed = !context_.DeleteObject("pods", *pod) || pass.has_failed;
      continue;
    }
    // In order: an unavailable pod may be deleted only if it is the first unavailable one of all.
    const bool is_first = are_wanted_available && lowest != pass.condemned.rend() && &*lowest == &entry;
    if (IsBeingDeleted(*pod) || (!IsAvailable(*pod, pass) && !is_first)) return false;
    pass.has_failed = !context_.DeleteObject("pods", *pod);
    return false;
  }
  return !pass.has_failed;
}

// Replaces one pod of an old revision at a time, from the highest ordinal.
void StatefulSetController::Roll(Pass& pass) {
  for (int i = pass.replicas - 1; i >= pass.partition; --i) {
    const ObjectPtr& pod = pass.wanted[static_cast<std::size_t>(i)];
    if (!pod || IsBeingDeleted(*pod)) return;
    if (LabelOf(*pod, kRevisionLabel) != pass.update_revision) {
      pass.has_failed = !context_.DeleteObject("pods", *pod);
      return;
    }
    if (!IsAvailable(*pod, pass)) return;
  }
}

bool StatefulSetController::CreatePod(Pass& pass, int ordinal) {
  const ObjectKey key = KeyOf(pass.set);
  const std::string name = key.name + "-" + std::to_string(ordinal);
  const bool is_old = pass.is_rolling && ordinal < pass.start + pass.partition;
  const std::string& revision = is_old ? pass.current_revision : pass.update_revision;
  const Json& pod_template = templates_[std::string(UidOf(pass.set))][revision];

  Json pod = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Pod"}});
  Json& metadata = pod["metadata"];
  if (const Json* const from = pod_template.Find("metadata")) metadata = *from;
  metadata["generateName"] = key.name + "-";
  metadata["name"] = name;
  metadata["namespace"] = key.ns;
  metadata["labels"]["statefulset.kubernetes.io/pod-name"] = name;
  metadata["labels"]["apps.kubernetes.io/pod-index"] = std::to_string(ordinal);
  metadata["labels"][kRevisionLabel] = revision;
  metadata["ownerReferences"] = Json::MakeArray({ControllerReference(pass.set, "apps/v1", "StatefulSet")});
  if (const Json* const from = pod_template.Find("spec")) pod["spec"] = *from;
  pod["spec"]["hostname"] = name;
  if (const std::string_view service = TextAt(pass.set, {"spec", "serviceName"}); !service.empty()) {
    pod["spec"]["subdomain"] = service;
  }
  const Result<ObjectPtr> created = context_.server.Create("pods", std::move(pod));
  const std::string what = "Create Pod " + name + " in StatefulSet " + key.name;
  if (created) {
    events_.Record(pass.set, "Normal", "SuccessfulCreate", what + " successful");
  } else if (created.error().code() != ErrorCode::kAlreadyExists) {
    events_.Record(pass.set, "Warning", "FailedCreate", what + " failed error: " + created.error().message());
  }
  return created.ok();
}

bool StatefulSetController::IsAvailable(const Json& pod, Pass& pass) const {
  if (!IsRunningAndReady(pod)) return false;
  const auto least = std::chrono::seconds(IntAt(pass.set, {"spec", "minReadySeconds"}));
  if (least == least.zero()) return true;
  const Result<Time> since = ParseTime(TextAt(*ConditionOf(pod, "Ready"), {"lastTransitionTime"}));
  if (!since) return false;
  const Duration left = since->value + least - context_.simulation.WallNow();
  if (left > Duration::zero()) pass.next_available = std::min(pass.next_available, left);
  return left <= Duration::zero();
}

bool StatefulSetController::WriteStatus(const Pass& pass) {
  return context_.Modify(kSets, KeyOf(pass.set), UidOf(pass.set), "status", [&](Json& object) {
    Json wanted = pass.status;
    if (const Json* const conditions = object.At({"status", "conditions"})) wanted["conditions"] = *conditions;
    if (const Json* const now = object.Find("status"); now && *now == wanted) return false;
    object["status"] = std::move(wanted);
    return true;
  });
}

}  // namespace kube::testing
