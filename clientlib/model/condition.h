// SPDX-License-Identifier: Apache-2.0
// Conditions in an object's status, for people and other controllers. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/model/compact_string.h"
#include "clientlib/model/time.h"

namespace kube {

struct FieldInfo;

// metav1.Condition: for the status of our own kinds.
struct Condition {
  std::string type;
  std::string status;        // "True", "False" or "Unknown".
  std::string reason;        // PascalCase, never empty in the API.
  std::string message = {};  // A sentence to a user.
  Time last_transition_time = {};
  std::int64_t observed_generation = 0;

  bool is_true() const { return status == "True"; }
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Condition&, const Condition&) = default;
};

// The conditions of pods, nodes and jobs, as we read them.
struct CoreCondition {
  CompactString type, status, reason = {}, message = {};
  Time last_transition_time = {};  // Zero: unknown.

  bool is_true() const { return status == "True"; }
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const CoreCondition&, const CoreCondition&) = default;
};

// Replaces the condition of the same type, or appends it. lastTransitionTime becomes `now` only if the status changes;
// the one in `condition` is not used. True if anything changed: a pass that changes nothing must write nothing, or it
// would wake itself forever.
bool SetCondition(std::vector<Condition>& conditions, Condition condition, WallTime now);
// True if it was there.
bool RemoveCondition(std::vector<Condition>& conditions, std::string_view type);

// The condition of that type; null if there is none.
template <typename C>
const C* FindCondition(const std::vector<C>& conditions, std::string_view type) {
  const auto found =
      std::find_if(conditions.begin(), conditions.end(), [&](const C& condition) { return condition.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}
template <typename C>
bool IsConditionTrue(const std::vector<C>& conditions, std::string_view type) {
  const C* const condition = FindCondition(conditions, type);
  return condition && condition->is_true();
}

}  // namespace kube
