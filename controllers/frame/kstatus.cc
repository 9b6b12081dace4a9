// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/kstatus.h"

#include <utility>

namespace grus {

void Kstatus::Set(std::string_view type, std::optional<bool> is_true, std::string_view reason,
                  const std::string& message) {
  kube::Condition condition;
  condition.type = std::string(type);
  condition.status = !is_true ? "Unknown" : *is_true ? "True" : "False";
  condition.reason = std::string(reason);
  condition.message = message;
  condition.observed_generation = generation_;
  kube::SetCondition(conditions_, std::move(condition), now_.value);
}

void Kstatus::Say(Standing standing, std::string_view reason, const std::string& message) {
  const bool is_reconciling = standing == Standing::kReconciling, is_stalled = standing == Standing::kStalled;
  const auto is_ready = standing == Standing::kUnknown ? std::nullopt : std::optional(standing == Standing::kReady);
  Set("Ready", is_ready, reason, message);
  Set("Reconciling", is_reconciling, reason, is_reconciling ? message : "");
  Set("Stalled", is_stalled, reason, is_stalled ? message : "");
  if (standing == Standing::kSuspended) Set("Suspended", true, reason, message);
}

void Kstatus::SayResumed() {
  if (kube::FindCondition(conditions_, "Suspended")) Set("Suspended", false, "Resumed", "");
}

}  // namespace grus
