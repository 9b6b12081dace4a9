// SPDX-License-Identifier: Apache-2.0
// The reason or message of an object's condition, for assertions; empty if there is none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/condition.h"

namespace kit {

template <typename C>
std::string ReasonIn(const std::vector<C>& conditions, std::string_view type = "Ready") {
  const C* const found = kube::FindCondition(conditions, type);
  return found ? std::string(found->reason) : "";
}
template <typename C>
std::string MessageIn(const std::vector<C>& conditions, std::string_view type = "Ready") {
  const C* const found = kube::FindCondition(conditions, type);
  return found ? std::string(found->message) : "";
}

// For an object that may not exist (null).
template <typename P>
std::string ReasonOf(const P& object, std::string_view type = "Ready") {
  return object ? ReasonIn(object->status.conditions, type) : "";
}
template <typename P>
std::string MessageOf(const P& object, std::string_view type = "Ready") {
  return object ? MessageIn(object->status.conditions, type) : "";
}

}  // namespace kit
