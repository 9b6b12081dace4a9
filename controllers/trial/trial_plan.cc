// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_plan.h"

#include <algorithm>

#include "controllers/frame/retry_times.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/queues/wording.h"
#include "controllers/trial/trial_budget.h"
#include "controllers/trial/trial_eta.h"
#include "controllers/trial/trial_list.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_repeats.h"
#include "controllers/trial/trial_results.h"
#include "controllers/trial/trial_space.h"
#include "controllers/trial/trial_status.h"

namespace grus {
namespace {

using api::Trial;
using api::TrialJobPhase;
using api::TrialJobReason;
using api::TrialPhase;
using api::TrialReason;
using std::chrono::seconds;

class Planner {
 public:
  explicit Planner(const TrialView& view)
      : view_(view), job_(*view.job), before_(view.job->status), status_(BaseTrialStatus(view)) {
    // A new spec reopens an ended TrialJob.
    if (!view.is_done()) status_.completion_time.reset();
  }

  TrialPlan Make();

 private:
  const TrialRun& RunOf(const std::string& name) const {
    static const TrialRun kNone;
    const auto found = view_.runs.find(name);
    return found != view_.runs.end() ? found->second : kNone;
  }
  void LookAgain(kube::Duration delay) { plan_.look_again = std::min(plan_.look_again.value_or(delay), delay); }
  void Tell(kube::EventType type, const char* reason, const char* action, std::string note) {
    plan_.events.push_back({type, reason, action, std::move(note)});
  }

  void Account();
  void JudgeActive();
  void StopActive(TrialReason reason, const std::string& message);
  // True if no trial may run now. Then usually sets the standing that says why.
  bool StandsStill();
  void Stall(TrialJobReason reason, const std::string& message, TrialJobPhase phase = TrialJobPhase::kPending);
  void StartTrials();
  bool StartOne(Trial& trial, BudgetState& left, bool is_alone);
  void CleanUp();
  bool HasAny(TrialPhase phase) const {
    return std::ranges::any_of(status_.trials, [phase](const Trial& trial) { return trial.phase == phase; });
  }
  void Conclude();
  void Finish();
  void ApplyKnee();

  const TrialView& view_;
  const api::TrialJob& job_;
  const api::TrialJobStatus& before_;
  api::TrialJobStatus status_;
  TrialPlan plan_;
  std::vector<api::TrialConfig> configs_;
  std::optional<StartRefusal> refused_;  // Of one of the trials.
  bool stands_still_ = false;
};

void Planner::Account() {
  if (!HasAny(TrialPhase::kSucceeded)) status_.throughput_unit = api::ThroughputUnit::kNotKnown;
  for (Trial& trial : status_.trials) {
    if (trial.reason == TrialReason::kFromCache) continue;
    const std::int64_t spent = SpentOn(trial, RunOf(trial.name), view_.now);
    status_.spent.gpu_seconds += spent - trial.gpu_seconds;
    trial.gpu_seconds = spent;
  }
  status_.spent.time = view_.now;
  if (!status_.start_time) return;
  const bool was_still = WasSuspended(before_) || before_.completion_time.has_value();
  if (was_still && !job_.spec.suspend && !view_.is_done()) {
    // Suspended time is not spent: move the start, so that the time from the start to now is the wall time spent.
    status_.start_time = kube::Time{view_.now.value - seconds(status_.spent.wall_seconds)};
  } else if (!was_still) {
    status_.spent.wall_seconds = std::max<std::int64_t>(
        status_.spent.wall_seconds, std::chrono::floor<seconds>(view_.now.value - status_.start_time->value).count());
  }
}

void Planner::JudgeActive() {
  const std::optional<std::int64_t> wall = job_.spec.budget.wall_seconds;
  const bool is_wall_spent = wall && status_.spent.wall_seconds >= *wall;
  if (wall && !is_wall_spent && status_.start_time) LookAgain(seconds(*wall - status_.spent.wall_seconds));
  for (Trial& trial : status_.trials) {
    if (!IsActive(trial.phase)) continue;
    TrialRun run = RunOf(trial.name);
    if (run.child && !run.child->is_ours) continue;
    const bool is_lost = !run.child && trial.phase != TrialPhase::kStarting;
    if (run.child && is_wall_spent) run.child->slice_seconds = 0;  // Over, whatever its slice was.
    Trial after = Judge(view_, trial, run, status_.throughput_unit);
    if (is_lost && !HasEnded(after.phase)) {
      after.phase = TrialPhase::kFailed;
      after.reason = TrialReason::kCrashed;
      after.message = "somebody deleted it";
      after.end_time = view_.now;
    }
    if (is_wall_spent && !HasEnded(after.phase) && !SliceLeft(run, view_.now)) {
      after.phase = TrialPhase::kPending;  // It never got its GPUs.
      after.start_time.reset();
    }
    if (HasEnded(after.phase)) {
      const bool is_success = after.phase == TrialPhase::kSucceeded;
      Tell(is_success ? kube::EventType::kNormal : kube::EventType::kWarning,
           is_success ? "TrialSucceeded" : "TrialFailed", "EndTrial", ToText(after.config) + ": " + after.message);
    } else if (const auto left = SliceLeft(run, view_.now)) {
      LookAgain(std::max<kube::Duration>(*left, std::chrono::milliseconds(1)));
    }
    trial = std::move(after);
  }
}

void Planner::StopActive(TrialReason reason, const std::string& message) {
  for (Trial& trial : status_.trials) {
    if (!IsActive(trial.phase)) continue;
    trial.phase = TrialPhase::kPending;
    trial.reason = reason;
    trial.message = message;
    trial.measured.reset();
    trial.start_time.reset();
    trial.config = WithoutNodes(trial.config);
    Tell(kube::EventType::kNormal, "TrialStopped", "EndTrial",
         ToText(trial.config) + (message.empty() ? ": stopped by spec.suspend" : ": " + message));
  }
}

void Planner::Stall(TrialJobReason reason, const std::string& message, TrialJobPhase phase) {
  SetStanding(status_, view_, phase, Standing::kStalled, reason, message);
}

bool Planner::StandsStill() {
  if (job_.spec.suspend) {
    StopActive(TrialReason::kNone, "");
    SetStanding(
        status_, view_, TrialJobPhase::kSuspended, Standing::kSuspended, TrialJobReason::kSuspended,
        HasLeftovers(view_) ? "suspended by spec.suspend; trials are being stopped" : "suspended by spec.suspend");
    return true;
  }
  if (!view_.workload_error.empty()) {
    StopActive(TrialReason::kNone, "its workload cannot be used");
    Stall(TrialJobReason::kInvalidWorkload, view_.workload_error, TrialJobPhase::kFailed);
    return true;
  }
  if (!view_.workload) {
    StopActive(TrialReason::kNone, "the job of workload.jobRef is gone");
    const std::string job = job_.spec.workload.job_ref.value_or(api::JobRef{}).name;
    Stall(TrialJobReason::kJobNotFound,
          "ElasticHorovodJob \"" + job + "\" of workload.jobRef is not in this namespace");
    return true;
  }
  if (!view_.pattern_error.empty()) {
    StopActive(TrialReason::kNone, "measure.patterns cannot be used");
    Stall(TrialJobReason::kInvalidPattern, "measure.patterns: " + view_.pattern_error, TrialJobPhase::kFailed);
    return true;
  }
  kube::Result<std::vector<api::TrialConfig>> configs = ConfigsToTry(view_, status_.trials);
  if (!configs) {
    StopActive(TrialReason::kNone, "the space is empty");
    Stall(TrialJobReason::kInvalidSpace, configs.error().message(), TrialJobPhase::kFailed);
    return true;
  }
  configs_ = *std::move(configs);
  if (!view_.source_error.empty()) {
    StopActive(TrialReason::kNone, "its speed cannot be measured now");
    Stall(TrialJobReason::kSourceUnreachable, view_.source_error);
    LookAgain(kRefusedRetry);
    return true;
  }
  if (job_.spec.idle_only && view_.others_wait) {
    StopActive(TrialReason::kPreempted, "others wait for GPUs");
    LookAgain(kPoll);
    SetStanding(status_, view_, TrialJobPhase::kWaiting, Standing::kReconciling, TrialJobReason::kWaitingForIdle,
                "others wait for GPUs, and spec.idleOnly lets them go first");
    return HasAny(TrialPhase::kPending);
  }
  return false;
}

bool Planner::StartOne(Trial& trial, BudgetState& left, bool is_alone) {
  const std::optional<std::int64_t> slice = SliceFor(job_.spec.budget, left, trial.config.gpus);
  if (!slice) {
    if (!is_alone) return false;  // Running trials may leave part of the budget.
    trial.phase = TrialPhase::kSkipped;
    trial.reason = TrialReason::kBudgetSpent;
    trial.message = "the remaining budget is too small for it";
    return false;
  }
  if (!IsActive(trial.phase)) {
    trial.phase = TrialPhase::kStarting;
    trial.reason = TrialReason::kNone;
    trial.message = {};
    trial.measured.reset();
    trial.config = WithoutNodes(trial.config);
    trial.start_time = view_.now;
    trial.end_time.reset();
    Tell(kube::EventType::kNormal, "TrialStarted", "StartTrial",
         ToText(trial.config) + " as " + std::string(view_.workload->trial_kind()) + " " + trial.name +
             ", for at most " + std::to_string(*slice) + " s");
  }
  if (!status_.start_time) status_.start_time = view_.now;
  plan_.start.push_back(
      {trial.name, trial.config, *slice, trial.gpu_seconds, PodsOf(trial.config, *view_.workload, view_.nodes)});
  if (left.gpu_seconds) *left.gpu_seconds -= GpuSecondsOf(*slice, trial.config.gpus);
  return true;
}

void Planner::StartTrials() {
  int busy = 0;
  for (const Trial& trial : status_.trials) {
    if (IsActive(trial.phase) || HoldsGpus(RunOf(trial.name))) ++busy;
  }
  BudgetState left = LeftOf(view_, status_);
  // Trials that an earlier pass began, but whose child does not exist yet.
  for (Trial& trial : status_.trials) {
    const TrialRun& run = RunOf(trial.name);
    if (!IsActive(trial.phase)) continue;
    if (run.child && !run.child->is_ours) refused_ = TakenName(trial.name, *run.child);
    if (run.start_refused) refused_ = run.start_refused;
    if (run.child || run.pods.all > 0 || run.is_start_held) continue;
    if (!StartOne(trial, left, true)) --busy;
  }
  for (Trial& trial : status_.trials) {
    if (busy >= job_.spec.strategy.parallelism) break;
    if (trial.phase != TrialPhase::kPending) continue;
    const TrialRun& run = RunOf(trial.name);
    if (run.child && !run.child->is_ours) {
      refused_ = TakenName(trial.name, *run.child);
      break;
    }
    if (run.child || run.pods.all > 0) continue;  // Its last try is still being deleted.
    if (StartOne(trial, left, busy == 0)) ++busy;
  }
}

void Planner::CleanUp() {
  for (const auto& [name, run] : view_.runs) {
    if (!run.child || !run.child->is_ours || run.child->is_ending) continue;
    const Trial* found = FindTrial(status_, name);
    const TrialPhase phase = found != nullptr ? found->phase : TrialPhase::kPending;
    if (IsActive(phase)) {
      if (run.child->lacks_peers) plan_.end.push_back(name);  // A stop between the creates: it is started anew.
      if (run.child->lacks_group) plan_.lacks_group.push_back(name);
      if (!run.pods.launcher.empty()) plan_.measure.push_back(name);
      continue;
    }
    const bool is_kept = HasEnded(phase) && phase != TrialPhase::kSkipped &&
                         (job_.spec.cleanup == api::TrialCleanup::kNever ||
                          (job_.spec.cleanup == api::TrialCleanup::kOnSuccess && phase == TrialPhase::kFailed));
    if (!is_kept) plan_.end.push_back(name);
    else if (!HasFinished(*run.child) && !run.child->is_suspended) plan_.suspend.push_back(name);
  }
}

void Planner::ApplyKnee() {
  if (job_.spec.apply != api::ApplyPolicy::kApply || !job_.spec.workload.job_ref) return;
  const std::string& job = job_.spec.workload.job_ref->name;
  for (const api::Recommendation& r : status_.recommendation) {
    if (r.goal != api::Goal::kKnee) continue;
    if (!r.gpus) {
      Tell(kube::EventType::kWarning, "NotApplied", "ApplyKnee",
           "targetReplicas of " + job + " stays: the knee is " + r.message);
      continue;
    }
    plan_.apply_replicas = std::max(1, *r.gpus / std::max(1, view_.workload->gpus_per_worker));
    Tell(kube::EventType::kNormal, "Applied", "ApplyKnee",
         "targetReplicas of " + job + " is " + std::to_string(*plan_.apply_replicas) + " now: " + r.message);
  }
}

void Planner::Finish() {
  int succeeded = 0;
  bool is_budget_spent = false;
  const Trial* failed = nullptr;
  for (const Trial& trial : status_.trials) {
    if (trial.phase == TrialPhase::kSucceeded) ++succeeded;
    if (trial.phase == TrialPhase::kFailed && failed == nullptr) failed = &trial;
    is_budget_spent = is_budget_spent || trial.reason == TrialReason::kBudgetSpent;
  }
  status_.completion_time = view_.now;
  if (succeeded > 0) {
    std::string message = Count(succeeded, "configuration") + " measured";
    if (is_budget_spent) message += ", then the budget was spent";
    for (const api::Recommendation& r : status_.recommendation) {
      if (r.goal == api::Goal::kKnee) message += "; knee: " + r.message;
    }
    Tell(kube::EventType::kNormal, "Complete", "EndTrialJob", message);
    ApplyKnee();
    SetStanding(status_, view_, TrialJobPhase::kSucceeded, Standing::kReady,
                is_budget_spent ? TrialJobReason::kBudgetSpent : TrialJobReason::kComplete, message, true);
    return;
  }
  TrialJobReason reason = TrialJobReason::kNothingMeasured;
  std::string message = "no trial was measured";
  if (failed != nullptr) {
    message += "; " + ToText(failed->config) + ": " + failed->message;
    if (failed->reason == TrialReason::kRefused) reason = TrialJobReason::kTemplateRefused;
  } else if (is_budget_spent) {
    reason = TrialJobReason::kBudgetSpent;
    message = "spec.budget allows no trial, and no earlier measurement is known";
  } else if (!status_.trials.empty() && status_.trials.front().reason == TrialReason::kDoesNotFit) {
    message += ": no configuration of the space fits into the cluster";
  }
  Tell(kube::EventType::kWarning, std::string(api::ToString(reason)).c_str(), "EndTrialJob", message);
  SetStanding(status_, view_, TrialJobPhase::kFailed, Standing::kStalled, reason, message, true);
}

void Planner::Conclude() {
  int active = 0, waiting = 0;
  std::string waits;
  for (const Trial& trial : status_.trials) {
    if (!IsActive(trial.phase)) continue;
    ++active;
    if (trial.reason != TrialReason::kWaitingForRoom) continue;
    ++waiting;
    waits = ToText(trial.config) + ": " + trial.message;
  }
  if (refused_) {
    Stall(refused_->reason, refused_->message);
    LookAgain(kRefusedRetry);
    return;
  }
  if (active == 0 && !HasAny(TrialPhase::kPending)) {
    if (!HasLeftovers(view_)) return Finish();
    SetStanding(status_, view_, TrialJobPhase::kRunning, Standing::kReconciling, TrialJobReason::kTrialsRunning,
                "all trials have ended; their last pods are being deleted");
    LookAgain(kPoll);
    return;
  }
  LookAgain(kPoll);
  if (active > 0 && waiting == active) {
    SetStanding(status_, view_, TrialJobPhase::kWaiting, Standing::kReconciling, TrialJobReason::kWaitingForRoom,
                waits);
    return;
  }
  SetStanding(status_, view_, TrialJobPhase::kRunning, Standing::kReconciling, TrialJobReason::kTrialsRunning,
              active > 0 ? RunningMessage(status_) : "the GPUs of the last trial are being given back");
}

TrialPlan Planner::Make() {
  if (job_.metadata.is_being_deleted()) {
    plan_.is_ignored = true;
    return plan_;
  }
  Account();
  if (view_.is_done()) {
    CleanUp();
    if (HasLeftovers(view_)) LookAgain(kPoll);
    plan_.status = std::move(status_);
    return std::move(plan_);
  }
  JudgeActive();
  stands_still_ = StandsStill();
  if (view_.workload && configs_.empty()) {
    if (auto configs = ConfigsToTry(view_, status_.trials)) configs_ = *std::move(configs);
  }
  if (!configs_.empty()) {
    ListTrials(view_, configs_, status_);
    if (!stands_still_) StartTrials();
    UpdateResults(view_, configs_, status_);
    if (!stands_still_) RepeatStragglers(view_, status_);
  }
  CleanUp();
  SetProgress(status_);
  if (!stands_still_ && view_.workload) Conclude();
  SetEta(view_, status_);
  if (HasLeftovers(view_)) LookAgain(kPoll);
  plan_.is_urgent = !IsMinorTrialChange(before_, status_);
  plan_.status = std::move(status_);
  return std::move(plan_);
}

}  // namespace

TrialPlan PlanTrials(const TrialView& view) {
  TrialPlan plan = Planner(view).Make();
  // The times alone are not worth a write: they go with the next change.
  const api::TrialJobStatus& before = view.job->status;
  const api::TrialCost spent = plan.status.spent;
  plan.status.spent = {spent.gpu_seconds, before.spent.wall_seconds, before.spent.time};
  KeepEtaUnlessOthersChange(before, plan.status);
  if (!(plan.status == before)) plan.status.spent = spent;
  return plan;
}

}  // namespace grus
