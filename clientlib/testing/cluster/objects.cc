// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/objects.h"

#include <algorithm>

namespace kube::testing {

const Json* ControllerOf(const Json& object) {
  for (const Json& owner : ItemsAt(object, {"metadata", "ownerReferences"})) {
    if (IsTrueAt(owner, {"controller"})) return &owner;
  }
  return nullptr;
}

Json ControllerReference(const Json& owner, std::string_view api_version, std::string_view kind) {
  return Json::MakeObject({{"apiVersion", api_version},
                           {"kind", kind},
                           {"name", TextAt(owner, {"metadata", "name"})},
                           {"uid", UidOf(owner)},
                           {"controller", true},
                           {"blockOwnerDeletion", true}});
}

bool HasFinalizer(const Json& object, std::string_view finalizer) {
  const Json::Array& items = ItemsAt(object, {"metadata", "finalizers"});
  return std::any_of(items.begin(), items.end(),
                     [&](const Json& item) { return item.AsString() && *item.AsString() == finalizer; });
}

bool RemoveFinalizer(Json& object, std::string_view finalizer) {
  if (!HasFinalizer(object, finalizer)) return false;
  std::erase_if(*object["metadata"]["finalizers"].AsArray(),
                [&](const Json& item) { return item.AsString() && *item.AsString() == finalizer; });
  return true;
}

bool RequirementMatches(const Json& requirement, const Json* labels) {
  const Json* const label = labels ? labels->Find(TextAt(requirement, {"key"})) : nullptr;
  const Json::Array& values = ItemsAt(requirement, {"values"});
  const bool is_listed = label && std::find(values.begin(), values.end(), *label) != values.end();
  const std::string_view op = TextAt(requirement, {"operator"});
  if (op == "In") return is_listed;
  if (op == "NotIn") return !is_listed;
  if (op == "Exists") return label != nullptr;
  return op == "DoesNotExist" && label == nullptr;
}

bool SelectorMatches(const Json* selector, const Json* labels) {
  if (!selector || !selector->is_object()) return false;
  if (const Json* const wanted = selector->Find("matchLabels"); wanted && wanted->is_object()) {
    for (const auto& [name, value] : *wanted->AsObject()) {
      const Json* const label = labels ? labels->Find(name) : nullptr;
      if (!label || !(*label == value)) return false;
    }
  }
  const Json::Array& expressions = ItemsAt(*selector, {"matchExpressions"});
  return std::all_of(expressions.begin(), expressions.end(),
                     [&](const Json& requirement) { return RequirementMatches(requirement, labels); });
}

const Json* ConditionOf(const Json& object, std::string_view type) {
  for (const Json& condition : ItemsAt(object, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

bool HasTrueCondition(const Json& object, std::string_view type) {
  const Json* const condition = ConditionOf(object, type);
  return condition && TextAt(*condition, {"status"}) == "True";
}

bool SetCondition(Json& object, const ConditionText& condition, std::string_view now) {
  Json wanted = Json::MakeObject({{"type", condition.type}, {"status", condition.status}});
  if (!condition.reason.empty()) wanted["reason"] = condition.reason;
  if (!condition.message.empty()) wanted["message"] = condition.message;
  const Json* const found = ConditionOf(object, condition.type);
  if (!found) {
    wanted["lastTransitionTime"] = now;
    object["status"]["conditions"].Append(std::move(wanted));
    return true;
  }
  const bool is_same_status = TextAt(*found, {"status"}) == condition.status;
  if (is_same_status && TextAt(*found, {"reason"}) == condition.reason &&
      TextAt(*found, {"message"}) == condition.message) {
    return false;
  }
  wanted["lastTransitionTime"] = is_same_status ? TextAt(*found, {"lastTransitionTime"}) : now;
  Json::Array& conditions = *object["status"]["conditions"].AsArray();
  conditions[static_cast<std::size_t>(found - conditions.data())] = std::move(wanted);
  return true;
}

bool HasEnded(const Json& pod) {
  const std::string_view phase = PhaseOf(pod);
  return phase == "Succeeded" || phase == "Failed";
}

bool IsRunningAndReady(const Json& pod) { return PhaseOf(pod) == "Running" && HasTrueCondition(pod, "Ready"); }

}  // namespace kube::testing
