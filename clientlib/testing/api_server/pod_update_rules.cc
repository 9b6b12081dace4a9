// SPDX-License-Identifier: Apache-2.0
// Which fields of a pod may change: validation.ValidatePodUpdate and ValidatePodStatusUpdate of kube-apiserver, in its
// order.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/kind_rules.h"
#include "clientlib/testing/api_server/object_rules.h"

namespace kube::testing {
namespace {

using Errors = std::vector<FieldError>;

constexpr std::string_view kFixed =
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)";

const Json::Array& Items(const Json* list) {
  static const Json::Array kNone;
  const Json::Array* const items = list ? list->AsArray() : nullptr;
  return items ? *items : kNone;
}

// False: nothing else is checked.
bool CheckContainerCount(const Json& now, const Json& then, std::string_view list, Errors& errors) {
  if (Items(now.Find(list)).size() == Items(then.Find(list)).size()) return true;
  errors.push_back(ForbiddenField(Concat({"spec.", list}), "pod updates may not add or remove containers"));
  return false;
}

bool CheckDeadline(const Json* now, const Json* then, Errors& errors) {
  const char* const kField = "spec.activeDeadlineSeconds";
  if (!now && then) {
    errors.push_back(InvalidField(kField, "null", "must not update from a positive integer to nil value"));
  } else if (now && then && now->AsInt() && then->AsInt() && *now->AsInt() > *then->AsInt()) {
    errors.push_back(InvalidField(kField, ToText(*now), "must be less than or equal to previous value"));
    return false;
  }
  return true;
}

void CheckTolerations(const Json* now, const Json* then, Errors& errors) {
  const auto without_seconds = [](Json toleration) {
    toleration.Erase("tolerationSeconds");
    return toleration;
  };
  for (const Json& old : Items(then)) {
    const Json::Array& items = Items(now);
    if (std::any_of(items.begin(), items.end(),
                    [&](const Json& item) { return without_seconds(item) == without_seconds(old); })) {
      continue;
    }
    errors.push_back(
        ForbiddenField("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"));
    return;
  }
}

void CheckGates(const Json* now, const Json* then, Errors& errors) {
  const Json::Array &gates = Items(now), &old = Items(then);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    if (std::find(old.begin(), old.end(), gates[i]) != old.end()) continue;
    errors.push_back(ForbiddenField(
        "spec.schedulingGates[" + std::to_string(i) + "].name",
        "only deletion is allowed, but found new scheduling gate '" + std::string(TextAt(gates[i], {"name"})) + "'"));
  }
}

void CheckNodeSelector(const Json* now, const Json* then, Errors& errors) {
  const Json::Object* const members = then ? then->AsObject() : nullptr;
  if (!members) return;
  for (const auto& [name, value] : *members) {
    const Json* const kept = now ? now->Find(name) : nullptr;
    if (kept && *kept == value) continue;
    errors.push_back(InvalidField("spec.nodeSelector", now ? ToText(*now) : "null",
                                  "only additions to spec.nodeSelector are allowed (no mutations or deletions)"));
    return;
  }
}

// A list of requirements may only grow at its end.
bool Extends(const Json* now, const Json* then) {
  const Json::Array &items = Items(now), &old = Items(then);
  return items.size() >= old.size() && std::equal(old.begin(), old.end(), items.begin());
}

bool TermExtends(const Json& now, const Json& then) {
  const auto is_empty = [](const Json& term) {
    return IsEmpty(term.Find("matchExpressions")) && IsEmpty(term.Find("matchFields"));
  };
  if (is_empty(then)) return is_empty(now);  // An empty term matches nothing.
  return Extends(now.Find("matchExpressions"), then.Find("matchExpressions")) &&
         Extends(now.Find("matchFields"), then.Find("matchFields"));
}

// The server's errors show its Go structs, whose members have no JSON names.
Json InGo(const Json& term) {
  Json text;
  for (const auto& [name, in_go] :
       {std::pair("matchExpressions", "MatchExpressions"), {"matchFields", "MatchFields"}}) {
    Json& list = text[in_go];
    for (const Json& requirement : Items(term.Find(name))) {
      const Json* const values = requirement.Find("values");
      list.Append(Json::MakeObject({{"Key", TextAt(requirement, {"key"})},
                                    {"Operator", TextAt(requirement, {"operator"})},
                                    {"Values", values ? *values : Json()}}));
    }
  }
  return text;
}

const Json::Array& TermsOf(const Json& spec) {
  return Items(
      spec.At({"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}));
}

void CheckNodeAffinity(const Json& now, const Json& then, Errors& errors) {
  const std::string field =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  const Json::Array &terms = TermsOf(now), &old = TermsOf(then);
  if (old.empty()) return;
  if (terms.size() != old.size()) {
    Json shown;
    for (const Json& term : terms) shown.Append(InGo(term));
    errors.push_back(
        InvalidField(field, ToText(shown), "no additions/deletions to non-empty NodeSelectorTerms list are allowed"));
    return;
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (TermExtends(terms[i], old[i])) continue;
    errors.push_back(InvalidField(field + "[" + std::to_string(i) + "]", ToText(InGo(terms[i])),
                                  "only additions are allowed (no mutations or deletions)"));
  }
}

// Removes the fields that have checks of their own; the rest must be unchanged.
Json WithoutWhatIsFree(Json spec, bool is_gated) {
  for (const std::string_view free : {"schedulingGates", "tolerations", "activeDeadlineSeconds"}) spec.Erase(free);
  for (const std::string_view list : {"containers", "initContainers"}) {
    Json* const containers = spec.Find(list);
    if (!containers || !containers->AsArray()) continue;
    for (Json& container : *containers->AsArray()) container.Erase("image");
  }
  if (!is_gated) return spec;
  spec.Erase("nodeSelector");
  if (Json* const affinity = spec.Find("affinity")) {
    affinity->Erase("nodeAffinity");
    if (IsEmpty(affinity)) spec.Erase("affinity");
  }
  return spec;
}

void CheckNomination(const Json& pod, const Json& before, Errors& errors) {
  const std::string_view node = TextAt(pod, {"status", "nominatedNodeName"});
  if (node.empty() || node == TextAt(before, {"status", "nominatedNodeName"})) return;
  const std::string field = "status.nominatedNodeName";
  if (const std::string_view wrong = WhyNoSubdomain(node); !wrong.empty()) {
    errors.push_back(InvalidField(field, ToText(Json(node)), wrong));
  }
  if (!IsEmptyAt(before, {"spec", "nodeName"})) {
    errors.push_back(ForbiddenField(field, "may not be set on pods that are already bound to a node"));
  }
}

}  // namespace

void CheckPodUpdate(const Json& pod, const Json& before, std::vector<FieldError>& errors) {
  CheckNomination(pod, before, errors);
  const Json &now = *pod.Find("spec"), &then = *before.Find("spec");
  if (now == then) return;
  if (!CheckContainerCount(now, then, "containers", errors)) return;
  if (!CheckContainerCount(now, then, "initContainers", errors)) return;
  if (!CheckDeadline(now.Find("activeDeadlineSeconds"), then.Find("activeDeadlineSeconds"), errors)) return;
  CheckTolerations(now.Find("tolerations"), then.Find("tolerations"), errors);
  CheckGates(now.Find("schedulingGates"), then.Find("schedulingGates"), errors);
  const bool is_gated = !IsEmpty(then.Find("schedulingGates"));
  if (is_gated) {
    CheckNodeSelector(now.Find("nodeSelector"), then.Find("nodeSelector"), errors);
    CheckNodeAffinity(now, then, errors);
  }
  if (WithoutWhatIsFree(now, is_gated) != WithoutWhatIsFree(then, is_gated)) {
    errors.push_back(ForbiddenField("spec", kFixed));
  }
}

}  // namespace kube::testing
