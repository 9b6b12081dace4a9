// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_reason.h"

#include <algorithm>

#include "controllers/elastic/worker_plan.h"

namespace grus {
namespace {

struct ReasonFacts {
  std::string_view name, action = {};  // Empty: no event.
  kube::EventType event = kube::EventType::kWarning;
};
// In the order of Reason.
constexpr ReasonFacts kReasons[] = {
    {"WorkersStarting"},
    {"LauncherStarting"},
    {"Training"},
    {"NoOutput", "WatchTraining"},
    {kBelowMinimumReason},
    {"PodsBroken"},
    {"NoWorkersWanted"},
    {"WaitingForRoom", "PlaceJob", kube::EventType::kNormal},
    {"CannotFit", "PlaceJob"},
    {"WaitingForQueue", "PlaceJob", kube::EventType::kNormal},
    {"WaitingForQuota", "PlaceJob", kube::EventType::kNormal},
    {"GatedByOthers", "PlaceJob"},
    {"Suspended"},
    {"Succeeded"},
    {"LauncherFailed"},
    {"DeadlineExceeded"},
    {"NameTaken"},
    {"TemplateRefused"},
    {"NotPermitted"},
    {"Preempting", "PreemptJob"},
};

}  // namespace

std::string_view ToString(Reason reason) { return kReasons[static_cast<std::size_t>(reason)].name; }

std::optional<ReasonEvent> EventOf(std::string_view reason) {
  const auto* facts = std::ranges::find(kReasons, reason, &ReasonFacts::name);
  if (facts == std::end(kReasons) || facts->action.empty()) return std::nullopt;
  return ReasonEvent{facts->event, std::string(facts->action)};
}

}  // namespace grus
