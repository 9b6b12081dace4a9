// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/pod_failure_policy.h"

#include <algorithm>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

// The first condition that matches one of the patterns; null if there is none.
const Json* MatchingCondition(const Json& rule, const Json& pod) {
  const Json::Array& patterns = ItemsAt(rule, {"onPodConditions"});
  for (const Json& condition : ItemsAt(pod, {"status", "conditions"})) {
    const bool is_wanted = std::any_of(patterns.begin(), patterns.end(), [&](const Json& pattern) {
      const std::string_view status = TextAt(pattern, {"status"});
      return TextAt(pattern, {"type"}) == TextAt(condition, {"type"}) &&
             TextAt(condition, {"status"}) == (status.empty() ? "True" : status);
    });
    if (is_wanted) return &condition;
  }
  return nullptr;
}

// The status of the first container that failed with a matching exit code; null if there is none.
const Json* MatchingContainer(const Json& wanted, const Json& pod) {
  const Json::Array& values = ItemsAt(wanted, {"values"});
  const std::string_view name = TextAt(wanted, {"containerName"});
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& status : ItemsAt(pod, {"status", list})) {
      const std::int64_t code = IntAt(status, {"state", "terminated", "exitCode"});
      if (code == 0 || (!name.empty() && name != TextAt(status, {"name"}))) continue;
      const bool is_listed = std::find(values.begin(), values.end(), Json(code)) != values.end();
      if (is_listed == (TextAt(wanted, {"operator"}) == "In")) return &status;
    }
  }
  return nullptr;
}

FailureVerdict VerdictOf(const Json& rule, const std::string& message) {
  const std::string_view action = TextAt(rule, {"action"});
  if (action == "Ignore") return {FailureVerdict::Action::kIgnore};
  if (action == "FailJob") return {FailureVerdict::Action::kFailJob, message};
  return {};
}

}  // namespace

FailureVerdict JudgeFailure(const Json& job, const Json& failed_pod) {
  const std::string pod = KeyOf(failed_pod).ToString();
  int index = 0;
  for (const Json& rule : ItemsAt(job, {"spec", "podFailurePolicy", "rules"})) {
    const std::string matching = " matching FailJob rule at index " + std::to_string(index++);
    if (const Json* const codes = rule.Find("onExitCodes")) {
      const Json* const container = MatchingContainer(*codes, failed_pod);
      if (!container) continue;
      return VerdictOf(rule, "Container " + std::string(TextAt(*container, {"name"})) + " for pod " + pod +
                                 " failed with exit code " +
                                 std::to_string(IntAt(*container, {"state", "terminated", "exitCode"})) + matching);
    }
    if (const Json* const condition = MatchingCondition(rule, failed_pod)) {
      return VerdictOf(rule, "Pod " + pod + " has condition " + std::string(TextAt(*condition, {"type"})) + matching);
    }
  }
  return {};
}

}  // namespace kube::testing
