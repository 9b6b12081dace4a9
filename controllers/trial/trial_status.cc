// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_status.h"

#include <algorithm>

#include "controllers/frame/refusals.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/trial/trial_outcome.h"

namespace grus {
namespace {

constexpr std::string_view kPhaseWords[] = {"waiting", "starting", "warming up", "measuring"};

}  // namespace

api::TrialJobStatus BaseTrialStatus(const TrialView& view) {
  api::TrialJobStatus status = view.job->status;
  if (status.observed_generation == 0) status.conditions.clear();  // The CRD's default, not ours.
  status.observed_generation = view.generation();
  if (status.trials.empty()) status.fingerprint = view.identity.fingerprint;
  return status;
}

const api::Trial* FindTrial(const api::TrialJobStatus& status, const std::string& name) {
  const auto found = std::ranges::find(status.trials, name, &api::Trial::name);
  return found != status.trials.end() ? &*found : nullptr;
}

bool WasSuspended(const api::TrialJobStatus& status) { return kube::IsConditionTrue(status.conditions, "Suspended"); }

StartRefusal TakenName(const std::string& trial, const TrialChild& child) {
  return {api::TrialJobReason::kNameTaken,
          std::string(child.kind) + " \"" + trial +
              "\" exists and belongs to somebody else; delete it, or give the TrialJob another name"};
}

api::TrialJobReason ReasonOfForbidden(const kube::Error& error) {
  return IsNotPermitted(error) ? api::TrialJobReason::kNotPermitted : api::TrialJobReason::kTemplateRefused;
}

void SetStanding(api::TrialJobStatus& status, const TrialView& view, api::TrialJobPhase phase, Standing standing,
                 api::TrialJobReason why, const std::string& message, bool is_end) {
  const std::string_view reason = api::ToString(why);
  status.phase = phase;
  Kstatus conditions(status.conditions, view.generation(), view.now);
  conditions.Say(standing, reason, message);
  if (standing != Standing::kSuspended) conditions.SayResumed();
  for (const char* type : {"Complete", "Failed"}) {
    const bool is_this = is_end && (type == std::string_view("Complete")) == (phase == api::TrialJobPhase::kSucceeded);
    if (is_this) conditions.Set(type, true, reason, message);
    else kube::RemoveCondition(status.conditions, type);
  }
}

std::string RunningMessage(const api::TrialJobStatus& status) {
  std::string text;
  int number = 0, more = 0;
  const auto all = std::count_if(status.trials.begin(), status.trials.end(),
                                 [](const api::Trial& trial) { return trial.phase != api::TrialPhase::kSkipped; });
  for (const api::Trial& trial : status.trials) {
    if (trial.phase == api::TrialPhase::kSkipped) continue;
    ++number;
    if (!IsActive(trial.phase)) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    text = "trial " + std::to_string(number) + " of " + std::to_string(all) + ": " + ToText(trial.config) + ", " +
           std::string(kPhaseWords[static_cast<std::size_t>(trial.phase)]);
    if (!trial.message.empty()) text += ": " + trial.message;
  }
  if (more > 0) text += "; " + std::to_string(more) + " more at the same time";
  return text;
}

void SetProgress(api::TrialJobStatus& status) {
  int ended = 0, all = 0;
  for (const api::Trial& trial : status.trials) {
    if (trial.phase == api::TrialPhase::kSkipped) continue;
    ++all;
    if (HasEnded(trial.phase)) ++ended;
  }
  status.progress = std::to_string(ended) + "/" + std::to_string(all);
}

bool IsMinorTrialChange(const api::TrialJobStatus& before, const api::TrialJobStatus& after) {
  if (before.phase != after.phase || before.observed_generation != after.observed_generation) return false;
  if (before.trials.size() != after.trials.size()) return false;
  for (std::size_t i = 0; i < after.trials.size(); ++i) {
    const api::Trial &was = before.trials[i], &is = after.trials[i];
    if (was.name != is.name || was.phase != is.phase || was.reason != is.reason) return false;
  }
  for (const kube::Condition& is : after.conditions) {
    const kube::Condition* was = kube::FindCondition(before.conditions, is.type);
    if (was == nullptr || was->status != is.status || was->reason != is.reason) return false;
  }
  return true;
}

}  // namespace grus
