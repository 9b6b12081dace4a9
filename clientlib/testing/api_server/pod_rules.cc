// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/kind_rules.h"
#include "clientlib/testing/api_server/limit_ranges.h"
#include "clientlib/testing/api_server/pod_security.h"
#include "clientlib/testing/api_server/quota.h"
#include "clientlib/testing/api_server/runtime_classes.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {
namespace {

using Errors = std::vector<FieldError>;

void SetContainerDefaults(Json& container) {
  if (!container.is_object()) return;
  SetIfMissing(container, "terminationMessagePath", "/dev/termination-log");
  SetIfMissing(container, "terminationMessagePolicy", "File");
  const std::string image(TextAt(container, {"image"}));
  const std::size_t colon = image.rfind(':');
  const bool has_tag = colon != std::string::npos && image.find('/', colon) == std::string::npos;
  const bool is_latest = !has_tag || image.ends_with(":latest");
  SetIfMissing(container, "imagePullPolicy", is_latest ? "Always" : "IfNotPresent");
  Json& resources = ObjectIn(container, "resources");
  const Json* const limits = resources.Find("limits");
  if (!limits || !limits->AsObject()) return;
  Json requests = resources.Find("requests") ? *resources.Find("requests") : Json::MakeObject();
  for (const auto& [name, value] : *limits->AsObject()) SetIfMissing(requests, name, value);
  if (!IsEmpty(&requests)) resources["requests"] = std::move(requests);
}

void SetPodDefaults(Json& pod) {
  SetPodSpecDefaults(ObjectIn(pod, "spec"));
  Json* const status = pod.Find("status");
  if (status && IsEmpty(status->Find("nominatedNodeName"))) status->Erase("nominatedNodeName");
}

// As the admission plugin DefaultTolerationSeconds does.
void AddToleration(Json& spec, std::string_view key) {
  Json& tolerations = spec["tolerations"];
  if (tolerations.AsArray()) {
    for (const Json& item : *tolerations.AsArray()) {
      const std::string_view other = TextAt(item, {"key"}), effect = TextAt(item, {"effect"});
      if ((other == key || other.empty()) && (effect == "NoExecute" || effect.empty())) return;
    }
  }
  tolerations.Append(
      Json::MakeObject({{"effect", "NoExecute"}, {"key", key}, {"operator", "Exists"}, {"tolerationSeconds", 300}}));
}

// As the admission plugin Priority does. Does not refuse a class that does not exist.
void SetPriority(Json& spec, Storage& storage) {
  const std::string name(TextAt(spec, {"priorityClassName"}));
  RevisionPtr chosen;
  if (Table* const classes = storage.Find("priorityclasses.scheduling.k8s.io")) {
    for (const auto& [key, revision] : classes->objects) {
      const bool is_default = name.empty() && IsTrueAt(revision->object(), {"globalDefault"});
      if (key.name == name || is_default) chosen = revision;
    }
  }
  if (chosen) {
    spec["priorityClassName"] = NameOf(chosen->object());
    spec["priority"] = IntAt(chosen->object(), {"value"});
    const std::string_view policy = TextAt(chosen->object(), {"preemptionPolicy"});
    spec["preemptionPolicy"] = policy.empty() ? "PreemptLowerPriority" : policy;
    return;
  }
  SetIfMissing(spec, "priority", 0);
  SetIfMissing(spec, "preemptionPolicy", "PreemptLowerPriority");
}

std::string_view QosOf(const Json& spec) {
  const Json* const containers = spec.Find("containers");
  bool has_any = false, is_guaranteed = true;
  if (containers && containers->AsArray()) {
    for (const Json& container : *containers->AsArray()) {
      const Json* const limits = container.At({"resources", "limits"});
      const Json* const requests = container.At({"resources", "requests"});
      for (const std::string_view resource : {"cpu", "memory"}) {
        const Json* const limit = limits ? limits->Find(resource) : nullptr;
        const Json* const request = requests ? requests->Find(resource) : nullptr;
        has_any = has_any || limit || request;
        is_guaranteed = is_guaranteed && limit && (!request || *request == *limit);
      }
    }
  }
  if (!has_any) return "BestEffort";
  return is_guaranteed ? "Guaranteed" : "Burstable";
}

// In the order of the real server's plugins.
std::string AdmitPod(Json& pod, Storage& storage) {
  SetDefaultResources(pod, storage);
  Json& spec = ObjectIn(pod, "spec");
  SetIfMissing(spec, "serviceAccountName", "default");
  SetIfMissing(spec, "serviceAccount", TextAt(spec, {"serviceAccountName"}));
  SetPriority(spec, storage);
  AddToleration(spec, "node.kubernetes.io/not-ready");
  AddToleration(spec, "node.kubernetes.io/unreachable");
  return ApplyRuntimeClass(spec, storage);
}

void PreparePod(Json& pod, Storage& storage) {
  const Json& spec = ObjectIn(pod, "spec");
  Json status = Json::MakeObject({{"phase", "Pending"}, {"qosClass", QosOf(spec)}});
  if (!IsEmpty(spec.Find("schedulingGates"))) {
    status["conditions"].Append(
        Json::MakeObject({{"type", "PodScheduled"},
                          {"status", "False"},
                          {"lastProbeTime", Json()},
                          {"lastTransitionTime", storage.Now()},
                          {"reason", "SchedulingGated"},
                          {"message", "Scheduling is blocked due to non-empty scheduling gates"}}));
  }
  pod["status"] = std::move(status);
}

// Defaults of a namespace may set a limit below the request.
void CheckRequests(const Json& pod, const std::string& list, Errors& errors) {
  const Json::Array& containers = ItemsAt(pod, {"spec", list});
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const ResourceList limits = ReadAmounts(containers[i].At({"resources", "limits"}));
    for (const auto& [name, request] : ReadAmounts(containers[i].At({"resources", "requests"}))) {
      const Quantity* const limit = FindResource(limits, name.view());
      if (!limit || request <= *limit) continue;
      errors.push_back(
          InvalidField("spec." + list + "[" + std::to_string(i) + "].resources.requests", ToText(Json(ToText(request))),
                       Concat({"must be less than or equal to ", name.view(), " limit of ", ToText(*limit)})));
    }
  }
}

Errors ValidatePod(const Json& pod, const Json* before) {
  Errors errors;
  if (IsEmptyAt(pod, {"spec", "containers"})) errors.push_back(RequiredField("spec.containers", ""));
  if (before) {
    CheckPodUpdate(pod, *before, errors);
    return errors;
  }
  CheckRequests(pod, "containers", errors);
  CheckRequests(pod, "initContainers", errors);
  if (!IsEmptyAt(pod, {"spec", "nodeName"}) && !IsEmptyAt(pod, {"spec", "schedulingGates"})) {
    errors.push_back(ForbiddenField("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
  }
  return errors;
}

std::string ForbidPod(const Json& pod, Storage& storage) {
  if (std::string why = LimitRangeViolation(pod, storage); !why.empty()) return why;
  const RevisionPtr ns = storage.Get(*storage.Find("namespaces"), {"", KeyOf(pod).ns});
  if (std::string why = ns ? PodSecurityViolation(ns->object(), pod) : ""; !why.empty()) return why;
  return OverheadViolation(*pod.Find("spec"), storage);
}

}  // namespace

void SetPodSpecDefaults(Json& spec) {
  SetIfMissing(spec, "restartPolicy", "Always");
  SetIfMissing(spec, "terminationGracePeriodSeconds", 30);
  SetIfMissing(spec, "dnsPolicy", "ClusterFirst");
  SetIfMissing(spec, "securityContext", Json::MakeObject());
  SetIfMissing(spec, "schedulerName", "default-scheduler");
  for (const std::string_view list : {"containers", "initContainers"}) {
    Json* const containers = spec.Find(list);
    if (!containers || !containers->AsArray()) continue;
    for (Json& container : *containers->AsArray()) SetContainerDefaults(container);
  }
}

const KindRules kPodRules{SetPodDefaults, PreparePod, nullptr, ValidatePod, ForbidPod, AdmitPod};

}  // namespace kube::testing
