// SPDX-License-Identifier: Apache-2.0
// Writer::Delete(): finalizers by propagation policy, and the grace of pods and namespaces.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/model/time.h"
#include "clientlib/testing/api_server/custom_resources.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/object_rules.h"
#include "clientlib/testing/api_server/writer.h"

namespace kube::testing {
namespace {

Check CheckPreconditions(const ResourceInfo& info, const Revision& live, const Json& options) {
  const std::string name(NameOf(live.object()));
  ResourceInfo by_kind;  // The server names the kind here, not the resource.
  by_kind.group = info.group;
  by_kind.plural = info.kind;
  const std::string_view uid = TextAt(options, {"preconditions", "uid"});
  const std::string_view own = TextAt(live.object(), {"metadata", "uid"});
  if (!uid.empty() && uid != own) {
    return Conflict(by_kind, name,
                    Concat({"the UID in the precondition (", uid}) + ") does not match the UID in record (" +
                        std::string(own) + "). The object might have been deleted and then recreated");
  }
  const std::string_view version = TextAt(options, {"preconditions", "resourceVersion"});
  if (!version.empty() && version != std::to_string(live.number())) {
    return Conflict(by_kind, name,
                    Concat({"the ResourceVersion in the precondition (", version}) +
                        ") does not match the ResourceVersion in record (" + std::to_string(live.number()) +
                        "). The object might have been modified");
  }
  return Done();
}

Check CheckOptions(const Json& options) {
  const Json* const policy = options.Find("propagationPolicy");
  const Json* const orphan = options.Find("orphanDependents");
  std::vector<FieldError> errors;
  if (!IsEmpty(policy) && !IsEmpty(orphan)) {
    errors.push_back(InvalidField("propagationPolicy", ToText(*policy),
                                  "orphanDependents and deletionPropagation cannot be both set"));
  }
  const std::string_view text = TextAt(options, {"propagationPolicy"});
  if (!text.empty() && text != "Foreground" && text != "Background" && text != "Orphan") {
    errors.push_back({"FieldValueNotSupported",
                      Concat({"Unsupported value: ", ToText(*policy)}) +
                          R"(: supported values: "Foreground", "Background", "Orphan", "nil")",
                      "propagationPolicy"});
  }
  if (!errors.empty()) return Invalid("meta.k8s.io", "DeleteOptions", "", errors);
  return Done();
}

// Sets the finalizers that ask the garbage collector for the policy.
void SetCollectorFinalizers(const ResourceInfo& info, const Json& options, Json& object) {
  const std::string_view policy = TextAt(options, {"propagationPolicy"});
  const Json* const orphan = options.Find("orphanDependents");
  Json& metadata = object["metadata"];
  const Json* const now = metadata.Find("finalizers");
  const auto has = [&](std::string_view name) {
    return now && now->AsArray() && std::count(now->AsArray()->begin(), now->AsArray()->end(), Json(name)) > 0;
  };
  bool orphans, is_foreground;
  if (!policy.empty()) {
    orphans = policy == "Orphan";
    is_foreground = policy == "Foreground";
  } else if (orphan && orphan->AsBool()) {
    orphans = *orphan->AsBool();
    is_foreground = false;
  } else {
    is_foreground = has("foregroundDeletion");
    orphans = has("orphan") || (info.is_orphaning_by_default && !is_foreground);
  }
  if (orphans == has("orphan") && is_foreground == has("foregroundDeletion")) return;
  Json::Array kept;
  if (now && now->AsArray()) {
    for (const Json& item : *now->AsArray()) {
      if (item != Json("orphan") && item != Json("foregroundDeletion")) kept.push_back(item);
    }
  }
  if (orphans) kept.emplace_back("orphan");
  if (is_foreground) kept.emplace_back("foregroundDeletion");
  if (kept.empty()) {
    metadata.Erase("finalizers");
  } else {
    metadata["finalizers"] = std::move(kept);
  }
}

// The grace of a pod that is deleted now, in seconds.
std::int64_t GraceOf(const Json& pod, const Json& options) {
  const std::string_view phase = TextAt(pod, {"status", "phase"});
  if (TextAt(pod, {"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") return 0;
  const std::int64_t own = IntAt(pod, {"spec", "terminationGracePeriodSeconds"}, 30);
  const std::int64_t grace = IntAt(options, {"gracePeriodSeconds"}, own);
  return grace < 0 ? 1 : grace;
}

void MarkAsDeleting(Json& object, WallTime when, std::int64_t grace) {
  Json& metadata = object["metadata"];
  if (!IsBeingDeleted(object) && IntAt(metadata, {"generation"}) > 0) {
    metadata["generation"] = IntAt(metadata, {"generation"}) + 1;
  }
  metadata["deletionTimestamp"] = ToText(Time{when});
  metadata["deletionGracePeriodSeconds"] = grace;
}

bool IsProtected(std::string_view ns) { return ns == "default" || ns == "kube-system" || ns == "kube-public"; }

}  // namespace

Outcome<Deleted> Writer::Delete(Table& table, const ObjectKey& key, const Json& delete_options, bool is_dry_run) {
  const std::shared_ptr<const ResourceInfo> info = table.info;
  if (Check valid = CheckOptions(delete_options); !valid) return valid.error();
  const RevisionPtr live = storage_.Get(table, key);
  if (!live) return NotFound(*info, key.name);
  if (Check met = CheckPreconditions(*info, *live, delete_options); !met) return met.error();
  const bool is_namespace = info->Is("", "namespaces"), is_pod = info->Is("", "pods");
  if (is_namespace && IsProtected(key.name)) {
    return Forbidden(*info, key.name, "this namespace may not be deleted");
  }
  if (is_dry_run) return Deleted{live, true};

  const Json& old = live->object();
  Json object = old;
  SetCollectorFinalizers(*info, delete_options, object);
  const bool has_finalizers = !IsEmptyAt(object, {"metadata", "finalizers"});
  const bool was_deleted = IsBeingDeleted(old);
  const WallTime now = storage_.WallNow();
  if (is_pod) {
    const std::int64_t had = IntAt(old, {"metadata", "deletionGracePeriodSeconds"});
    const bool has_grace = delete_options.Find("gracePeriodSeconds") != nullptr;
    const std::int64_t grace = GraceOf(old, delete_options);
    if (was_deleted && (!has_grace || grace >= had) && object == old && (has_finalizers || had > 0)) {
      return Deleted{live};  // Only a shorter grace changes anything.
    }
    MarkAsDeleting(object, now + std::chrono::seconds(grace), grace);
    const RevisionPtr marked = object == old ? live : Commit(table, object);
    if (grace > 0 || has_finalizers) return Deleted{marked};
    return Deleted{Remove(table, marked), true};
  }
  if (is_namespace) ObjectIn(object, "status")["phase"] = "Terminating";
  const bool waits = has_finalizers || (is_namespace && !IsEmptyAt(object, {"spec", "finalizers"}));
  if (!waits) return Deleted{Remove(table, live), true};
  if (!was_deleted) MarkAsDeleting(object, now, 0);
  if (is_namespace && !was_deleted) object["metadata"].Erase("deletionGracePeriodSeconds");
  const RevisionPtr marked = object == old ? live : Commit(table, std::move(object));
  if (info->Is(kDefinitionGroup, kDefinitions) && !was_deleted) EmptyDefinition(key);
  return Deleted{marked};
}

}  // namespace kube::testing
