// SPDX-License-Identifier: Apache-2.0
// Reading and changing API objects as JSON: what the models of a cluster need. Pure functions on values.
#pragma once

#include <string_view>

#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {

inline std::string_view UidOf(const Json& object) { return TextAt(object, {"metadata", "uid"}); }
inline bool IsBeingDeleted(const Json& object) { return object.At({"metadata", "deletionTimestamp"}) != nullptr; }
inline std::string_view AnnotationOf(const Json& object, std::string_view name) {
  return TextAt(object, {"metadata", "annotations", name});
}
inline std::string_view LabelOf(const Json& object, std::string_view name) {
  return TextAt(object, {"metadata", "labels", name});
}

// The owner reference with controller=true; null if there is none.
const Json* ControllerOf(const Json& object);
// The owner reference that a controller sets in its children.
Json ControllerReference(const Json& owner, std::string_view api_version, std::string_view kind);

bool HasFinalizer(const Json& object, std::string_view finalizer);
bool RemoveFinalizer(Json& object, std::string_view finalizer);  // True if it was there.

// A metav1.LabelSelector; a null one matches nothing.
bool SelectorMatches(const Json* selector, const Json* labels);
// A requirement {key, operator, values} of a label selector or a node selector.
bool RequirementMatches(const Json& requirement, const Json* labels);

// The item of status.conditions with that type; null if there is none.
const Json* ConditionOf(const Json& object, std::string_view type);
bool HasTrueCondition(const Json& object, std::string_view type);

struct ConditionText {
  std::string_view type, status, reason = {}, message = {};
};
// Sets the condition, with lastTransitionTime `now` if its status is new. True if anything changed.
bool SetCondition(Json& object, const ConditionText& condition, std::string_view now);

inline std::string_view PhaseOf(const Json& pod) { return TextAt(pod, {"status", "phase"}); }
bool HasEnded(const Json& pod);  // Succeeded or Failed.
// The node that the pod is bound to; empty: none.
inline std::string_view NodeOf(const Json& pod) { return TextAt(pod, {"spec", "nodeName"}); }
bool IsRunningAndReady(const Json& pod);

}  // namespace kube::testing
