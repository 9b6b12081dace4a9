// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/pod_failure_policy.h"

#include <algorithm>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

bool MatchesConditions(const Json& rule, const Json& pod) {
  const Json::Array& patterns = ItemsAt(rule, {"onPodConditions"});
  return std::any_of(patterns.begin(), patterns.end(), [&](const Json& pattern) {
    const Json* const condition = ConditionOf(pod, TextAt(pattern, {"type"}));
    const std::string_view wanted = TextAt(pattern, {"status"});
    return condition && TextAt(*condition, {"status"}) == (wanted.empty() ? "True" : wanted);
  });
}

bool MatchesExitCodes(const Json& rule, const Json& pod) {
  const Json* const wanted = rule.Find("onExitCodes");
  if (!wanted) return false;
  const Json::Array& values = ItemsAt(*wanted, {"values"});
  const std::string_view container = TextAt(*wanted, {"containerName"});
  const Json::Array& statuses = ItemsAt(pod, {"status", "containerStatuses"});
  return std::any_of(statuses.begin(), statuses.end(), [&](const Json& status) {
    const std::int64_t code = IntAt(status, {"state", "terminated", "exitCode"});
    if (code == 0 || (!container.empty() && container != TextAt(status, {"name"}))) return false;
    const bool is_listed = std::find(values.begin(), values.end(), Json(code)) != values.end();
    return is_listed == (TextAt(*wanted, {"operator"}) == "In");
  });
}

}  // namespace

FailureAction ActionFor(const Json& job, const Json& failed_pod) {
  for (const Json& rule : ItemsAt(job, {"spec", "podFailurePolicy", "rules"})) {
    if (!MatchesConditions(rule, failed_pod) && !MatchesExitCodes(rule, failed_pod)) continue;
    const std::string_view action = TextAt(rule, {"action"});
    if (action == "Ignore") return FailureAction::kIgnore;
    return action == "FailJob" ? FailureAction::kFailJob : FailureAction::kCount;
  }
  return FailureAction::kCount;
}

}  // namespace kube::testing
