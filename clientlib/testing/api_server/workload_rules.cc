// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/kind_rules.h"

namespace kube::testing {
namespace {

using Errors = std::vector<FieldError>;

Json& SpecOf(Json& object) { return ObjectIn(object, "spec"); }

void SetTemplateDefaults(Json& spec) {
  Json* const pod = spec.Find("template");
  if (pod && pod->is_object() && pod->Find("spec") && pod->Find("spec")->is_object()) {
    SetPodSpecDefaults(*pod->Find("spec"));
  }
}

// The selector must exist and select the template's pods.
void CheckSelector(const Json& object, Errors& errors) {
  const Json* const selector = object.At({"spec", "selector"});
  if (IsEmpty(selector)) return errors.push_back(RequiredField("spec.selector", ""));
  const Json* const labels = object.At({"spec", "template", "metadata", "labels"});
  const Json* const wanted = selector->Find("matchLabels");
  if (!wanted || !wanted->AsObject()) return;
  for (const auto& [key, value] : *wanted->AsObject()) {
    const Json* const label = labels ? labels->Find(key) : nullptr;
    if (label && *label == value) continue;
    errors.push_back(InvalidField("spec.template.metadata.labels", labels ? ToText(*labels) : "null",
                                  "`selector` does not match template `labels`"));
    return;
  }
}

void CheckReplicas(const Json& object, Errors& errors) {
  const std::int64_t replicas = IntAt(object, {"spec", "replicas"});
  if (replicas < 0) {
    errors.push_back(InvalidField("spec.replicas", std::to_string(replicas), "must be greater than or equal to 0"));
  }
}

void CheckImmutable(const Json& object, const Json& before, std::string_view field, Errors& errors) {
  const Json* const now = object.At({"spec", field});
  if (!Same(now, before.At({"spec", field}))) {
    errors.push_back(InvalidField(Concat({"spec.", field}), now ? ToText(*now) : "null", "field is immutable"));
  }
}

void SetStatefulSetDefaults(Json& object) {
  Json& spec = SpecOf(object);
  SetIfMissing(spec, "podManagementPolicy", "OrderedReady");
  Json& strategy = ObjectIn(spec, "updateStrategy");
  SetIfMissing(strategy, "type", "RollingUpdate");
  if (TextAt(strategy, {"type"}) == "RollingUpdate") {
    SetIfMissing(ObjectIn(strategy, "rollingUpdate"), "partition", 0);
  }
  SetIfMissing(spec, "replicas", 1);
  SetIfMissing(spec, "revisionHistoryLimit", 10);
  SetIfMissing(spec, "serviceName", "");
  Json& retention = ObjectIn(spec, "persistentVolumeClaimRetentionPolicy");
  SetIfMissing(retention, "whenDeleted", "Retain");
  SetIfMissing(retention, "whenScaled", "Retain");
  SetTemplateDefaults(spec);
}

Errors ValidateStatefulSet(const Json& object, const Json* before) {
  Errors errors;
  CheckReplicas(object, errors);
  if (!before) {
    CheckSelector(object, errors);
    return errors;
  }
  Json now = *object.Find("spec"), then = *before->Find("spec");
  for (const std::string_view free : {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                                      "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}) {
    now.Erase(free);
    then.Erase(free);
  }
  if (now != then) {
    errors.push_back(ForbiddenField(
        "spec",
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"));
  }
  return errors;
}

void PrepareReplicated(Json& object, Storage&) { object["status"] = Json::MakeObject({{"replicas", 0}}); }

void PrepareStatefulSet(Json& object, Storage&) {
  object["status"] = Json::MakeObject({{"replicas", 0}, {"availableReplicas", 0}});
}

void SetDeploymentDefaults(Json& object) {
  Json& spec = SpecOf(object);
  SetIfMissing(spec, "replicas", 1);
  SetIfMissing(spec, "revisionHistoryLimit", 10);
  SetIfMissing(spec, "progressDeadlineSeconds", 600);
  Json& strategy = ObjectIn(spec, "strategy");
  SetIfMissing(strategy, "type", "RollingUpdate");
  if (TextAt(strategy, {"type"}) == "RollingUpdate") {
    Json& rolling = ObjectIn(strategy, "rollingUpdate");
    SetIfMissing(rolling, "maxUnavailable", "25%");
    SetIfMissing(rolling, "maxSurge", "25%");
  }
  SetTemplateDefaults(spec);
}

void SetReplicaSetDefaults(Json& object) {
  SetIfMissing(SpecOf(object), "replicas", 1);
  SetTemplateDefaults(SpecOf(object));
}

Errors ValidateReplicated(const Json& object, const Json* before) {
  Errors errors;
  CheckReplicas(object, errors);
  CheckSelector(object, errors);
  if (before) CheckImmutable(object, *before, "selector", errors);
  return errors;
}

void PrepareStatus(Json& object, Storage&) { object["status"] = Json::MakeObject(); }

void SetJobDefaults(Json& object) {
  Json& spec = SpecOf(object);
  const bool has_parallelism = !IsEmpty(spec.Find("parallelism"));
  if (IsEmpty(spec.Find("completions")) && !has_parallelism) SetIfMissing(spec, "completions", 1);
  SetIfMissing(spec, "parallelism", 1);
  SetIfMissing(spec, "backoffLimit", 6);
  SetIfMissing(spec, "completionMode", "NonIndexed");
  SetIfMissing(spec, "suspend", false);
  SetIfMissing(spec, "manualSelector", false);
  SetIfMissing(spec, "podReplacementPolicy", IsEmpty(spec.Find("podFailurePolicy")) ? "TerminatingOrFailed" : "Failed");
  // The real server defaults restartPolicy to Always here, which its validation of jobs then refuses.
  Json* const pod = spec.Find("template");
  Json* const pod_spec = pod ? pod->Find("spec") : nullptr;
  const bool has_policy = pod_spec && !IsEmpty(pod_spec->Find("restartPolicy"));
  SetTemplateDefaults(spec);
  if (pod_spec && !has_policy) pod_spec->Erase("restartPolicy");
  if (IsEmptyAt(object, {"metadata", "labels"}) && pod) {
    if (const Json* const labels = pod->At({"metadata", "labels"}); !IsEmpty(labels)) {
      object["metadata"]["labels"] = *labels;
    }
  }
}

// Sets labels that identify the job's pods, and a selector for them.
void PrepareJob(Json& object, Storage&) {
  object["status"] = Json::MakeObject();
  if (IsTrueAt(object, {"spec", "manualSelector"})) return;
  const std::string uid(TextAt(object, {"metadata", "uid"}));
  const std::string name(NameOf(object));
  Json& spec = SpecOf(object);
  Json& labels = ObjectIn(ObjectIn(ObjectIn(spec, "template"), "metadata"), "labels");
  SetIfMissing(labels, "batch.kubernetes.io/controller-uid", uid);
  SetIfMissing(labels, "batch.kubernetes.io/job-name", name);
  SetIfMissing(labels, "controller-uid", uid);
  SetIfMissing(labels, "job-name", name);
  SetIfMissing(ObjectIn(ObjectIn(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid);
  if (IsEmptyAt(object, {"metadata", "labels"})) object["metadata"]["labels"] = Json(labels);
}

// The template without what a suspended job that never ran may still change: where its pods run.
Json WithoutPlacement(const Json* pod) {
  Json rest = pod ? *pod : Json();
  if (Json* const metadata = rest.Find("metadata")) {
    metadata->Erase("labels");
    metadata->Erase("annotations");
    if (IsEmpty(metadata)) rest.Erase("metadata");
  }
  if (Json* const spec = rest.Find("spec")) {
    for (const std::string_view free : {"nodeSelector", "affinity", "tolerations", "schedulingGates"}) {
      spec->Erase(free);
    }
    for (const std::string_view list : {"containers", "initContainers"}) {
      Json* const containers = spec->Find(list);
      if (!containers || !containers->AsArray()) continue;
      for (Json& container : *containers->AsArray()) container.Erase("resources");
    }
  }
  return rest;
}

Errors ValidateJob(const Json& object, const Json* before) {
  Errors errors;
  const std::string_view policy = TextAt(object, {"spec", "template", "spec", "restartPolicy"});
  if (policy.empty()) {
    errors.push_back(RequiredField("spec.template.spec.restartPolicy", R"(valid values: "OnFailure", "Never")"));
  } else if (policy != "OnFailure" && policy != "Never") {
    errors.push_back({"FieldValueNotSupported",
                      Concat({"Unsupported value: \"", policy}) + R"(": supported values: "OnFailure", "Never")",
                      "spec.template.spec.restartPolicy"});
  }
  for (const std::string_view field : {"parallelism", "completions", "backoffLimit"}) {
    const std::int64_t value = IntAt(object, {"spec", field});
    if (value >= 0) continue;
    errors.push_back(
        InvalidField(Concat({"spec.", field}), std::to_string(value), "must be greater than or equal to 0"));
  }
  if (!before) return errors;
  const bool is_indexed = TextAt(object, {"spec", "completionMode"}) == "Indexed";
  if (!is_indexed || IntAt(object, {"spec", "completions"}) != IntAt(object, {"spec", "parallelism"})) {
    CheckImmutable(object, *before, "completions", errors);
  }
  CheckImmutable(object, *before, "selector", errors);
  CheckImmutable(object, *before, "completionMode", errors);
  CheckImmutable(object, *before, "podFailurePolicy", errors);
  const bool was_suspended = IsTrueAt(*before, {"spec", "suspend"}) && IsEmptyAt(*before, {"status", "startTime"});
  const Json* const now = object.At({"spec", "template"});
  const Json* const then = before->At({"spec", "template"});
  if (!was_suspended) {
    CheckImmutable(object, *before, "template", errors);
  } else if (WithoutPlacement(now) != WithoutPlacement(then)) {
    errors.push_back(InvalidField("spec.template", now ? ToText(*now) : "null", "field is immutable"));
  }
  return errors;
}

}  // namespace

const KindRules kStatefulSetRules{SetStatefulSetDefaults, PrepareStatefulSet, nullptr, ValidateStatefulSet};
const KindRules kDeploymentRules{SetDeploymentDefaults, PrepareStatus, nullptr, ValidateReplicated};
const KindRules kReplicaSetRules{SetReplicaSetDefaults, PrepareReplicated, nullptr, ValidateReplicated};
const KindRules kJobRules{SetJobDefaults, PrepareJob, nullptr, ValidateJob};

}  // namespace kube::testing
