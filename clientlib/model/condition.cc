// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/condition.h"

#include "clientlib/model/field.h"

namespace kube {

std::span<const FieldInfo> Condition::Fields() {
  using T = Condition;
  static constexpr std::string_view kStatuses[] = {"True", "False", "Unknown"};
  // The limits are those of metav1.Condition.
  static constexpr FieldInfo kFields[] = {
      Field<&T::type>("type", {.doc = "Type of the condition, in PascalCase.", .required = true, .max_length = 316}),
      Field<&T::status>("status", {.doc = "Whether the condition holds.", .required = true, .enum_values = kStatuses}),
      Field<&T::observed_generation>(
          "observedGeneration",
          {.doc = "The metadata.generation that the condition is about.", .omit_zero = true, .minimum = 0}),
      Field<&T::last_transition_time>("lastTransitionTime", {.doc = "When the status last changed.", .required = true}),
      Field<&T::reason>("reason", {.doc = "Reason, as one PascalCase word.",
                                   .required = true,
                                   .min_length = 1,
                                   .max_length = 1024,
                                   .pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"}),
      Field<&T::message>("message", {.doc = "Why, for a person.", .required = true, .max_length = 32768}),
  };
  return kFields;
}

std::span<const FieldInfo> CoreCondition::Fields() {
  using T = CoreCondition;
  static constexpr FieldInfo kFields[] = {
      Field<&T::type>("type", {.required = true}),
      Field<&T::status>("status", {.required = true}),
      Field<&T::last_transition_time>("lastTransitionTime"),
      Field<&T::reason>("reason"),
      Field<&T::message>("message"),
  };
  return kFields;
}

bool SetCondition(std::vector<Condition>& conditions, Condition condition, WallTime now) {
  // Whole seconds, as the API keeps them: what is read back must be equal to what was set.
  condition.last_transition_time = Time{std::chrono::floor<std::chrono::seconds>(now)};
  for (Condition& old : conditions) {
    if (old.type != condition.type) continue;
    if (old.status == condition.status) condition.last_transition_time = old.last_transition_time;
    if (old == condition) return false;
    old = std::move(condition);
    return true;
  }
  conditions.push_back(std::move(condition));
  return true;
}

bool RemoveCondition(std::vector<Condition>& conditions, std::string_view type) {
  return std::erase_if(conditions, [&](const Condition& condition) { return condition.type == type; }) > 0;
}

}  // namespace kube
