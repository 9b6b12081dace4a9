// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_list.h"

#include <algorithm>
#include <set>

#include "controllers/measure/measured_work.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/queues/wording.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_results.h"
#include "controllers/trial/trial_scope.h"
#include "controllers/trial/trial_space.h"

namespace grus {
namespace {

using api::Trial;
using api::TrialConfig;
using api::TrialPhase;
using api::TrialReason;

std::string WhyText(TrialReason reason, const Trial* common, const Workload& workload) {
  switch (reason) {
    case TrialReason::kOutOfMemory: return "it ran out of memory with as many samples on a GPU, or fewer";
    case TrialReason::kNoMoreGain: return "more GPUs did not make it faster";
    case TrialReason::kDoesNotFit:
      return workload.is_on_one_node
                 ? "no node that it may run on has this many GPUs; a training on several nodes needs "
                   "space.nodeCounts, or a command with torchrun that leaves their number open"
                 : "the nodes that it may run on have too few GPUs, or are too few";
    case TrialReason::kOverMaxTrials: return "over strategy.maxTrials";
    default: break;
  }
  return common != nullptr ? "as " + common->name + ": " + common->message : "";
}

class Lister {
 public:
  Lister(const TrialView& view, api::TrialJobStatus& status)
      : view_(view), status_(status), rules_(view.job->spec, *view.workload, status.trials) {
    for (const KnownTrial& known : view.known) known_.emplace(WithoutNodes(known.config), &known);
    const bool has_success = std::any_of(status.trials.begin(), status.trials.end(),
                                         [](const Trial& trial) { return trial.phase == TrialPhase::kSucceeded; });
    for (const Trial& trial : status.trials) {
      taken_.insert(trial.name);
      if (IsCommonFailure(trial, has_success)) common_ = trial;
    }
  }

  void List(const std::vector<TrialConfig>& configs);

 private:
  TrialReason WhyNot(const TrialConfig& config) const;
  void Place(const TrialConfig& config);
  Trial Named(const TrialConfig& config);

  const TrialView& view_;
  api::TrialJobStatus& status_;
  const SkipRules rules_;
  std::map<TrialConfig, const KnownTrial*> known_;
  std::set<std::string> taken_;
  std::optional<Trial> common_;
  std::map<TrialConfig, Trial> before_;  // Trials that did not run.
  std::vector<Trial> ran_, pending_, skipped_;
  int trials_ = 0, over_max_ = 0;
};

TrialReason Lister::WhyNot(const TrialConfig& config) const {
  if (common_) return common_->reason;
  if (const TrialReason why = rules_.WhyNot(config); why != TrialReason::kNone) return why;
  if (!Fits(config, *view_.workload, view_.nodes)) return TrialReason::kDoesNotFit;
  return trials_ >= view_.job->spec.strategy.max_trials ? TrialReason::kOverMaxTrials : TrialReason::kNone;
}

Trial Lister::Named(const TrialConfig& config) {
  if (const auto found = before_.find(config); found != before_.end()) return found->second;
  Trial trial;
  trial.config = config;
  trial.name = TrialName(view_.job->metadata.name, config, taken_);
  taken_.insert(trial.name);
  return trial;
}

void Lister::Place(const TrialConfig& config) {
  const auto before = before_.find(config);
  const bool is_repeat = before != before_.end() && before->second.is_repeat;  // A cache may know the same slow speed.
  if (const auto found = known_.find(config); found != known_.end() && !is_repeat) {
    Trial trial = Named(config);
    const KnownTrial& known = *found->second;
    trial.config.nodes = known.config.nodes;
    trial.phase = TrialPhase::kSucceeded;
    trial.reason = TrialReason::kFromCache;
    trial.measured = known.measured;
    trial.message = "known from an earlier measurement";
    if (status_.throughput_unit == api::ThroughputUnit::kNotKnown) status_.throughput_unit = known.unit;
    status_.saved_by_cache.gpu_seconds += known.gpu_seconds;
    ++status_.saved_by_cache.trials;
    ran_.push_back(std::move(trial));
    return;
  }
  const TrialReason why = is_repeat ? TrialReason::kNone : WhyNot(config);
  if (why == TrialReason::kNone) {
    ++trials_;
    Trial trial = Named(config);
    const bool was_skipped = trial.phase == TrialPhase::kSkipped;
    if (was_skipped) trial.message = {};
    if (was_skipped) trial.reason = TrialReason::kNone;
    trial.phase = TrialPhase::kPending;
    pending_.push_back(std::move(trial));
    return;
  }
  const bool is_over = why == TrialReason::kOverMaxTrials;
  if (is_over && ++over_max_ > kMostOverMax) return;
  if (static_cast<std::int64_t>(skipped_.size()) >= api::kMaxTrials) return;
  Trial trial = Named(config);
  trial.phase = TrialPhase::kSkipped;
  trial.reason = why;
  const std::string message = WhyText(why, common_ ? &*common_ : nullptr, *view_.workload);
  // Of many sizes the same: kept once.
  trial.message = kube::CompactString::Shared(std::string_view(message).substr(0, kLongestMessage));
  skipped_.push_back(std::move(trial));
}

void Lister::List(const std::vector<TrialConfig>& configs) {
  const std::set<TrialConfig> in_space(configs.begin(), configs.end());
  std::set<TrialConfig> has_run;
  for (Trial& trial : status_.trials) {
    const auto run = view_.runs.find(trial.name);
    const bool holds = run != view_.runs.end() && HoldsGpus(run->second);
    const TrialConfig config = WithoutNodes(trial.config);
    const bool is_in_space = in_space.contains(config);
    // A spent budget stays spent, unless the spec changes it.
    const bool is_budget_spent = trial.reason == TrialReason::kBudgetSpent &&
                                 status_.observed_generation == view_.job->status.observed_generation;
    const bool is_kept = IsActive(trial.phase) || trial.phase == TrialPhase::kSucceeded ||
                         trial.phase == TrialPhase::kFailed || is_budget_spent;
    if (is_kept && is_in_space) {
      has_run.insert(config);
      if (trial.reason != TrialReason::kFromCache && !is_budget_spent) ++trials_;
      (is_budget_spent ? skipped_ : ran_).push_back(trial);
    } else if (!is_in_space && holds) {
      if (IsActive(trial.phase)) trial.phase = TrialPhase::kPending;  // The plan then ends it.
      ran_.push_back(trial);
    } else {
      trial.config = config;
      before_.emplace(config, trial);
    }
  }
  for (const TrialConfig& config : configs) {
    if (!has_run.contains(config)) Place(config);
  }
  if (over_max_ > kMostOverMax) {
    skipped_.back().message =
        "over strategy.maxTrials; " + std::to_string(over_max_ - kMostOverMax) + " more are not listed";
  }
  status_.trials = std::move(ran_);
  for (std::vector<Trial>* more : {&pending_, &skipped_}) {
    for (Trial& trial : *more) {
      if (static_cast<std::int64_t>(status_.trials.size()) >= api::kMaxTrials) return;
      status_.trials.push_back(std::move(trial));
    }
  }
}

}  // namespace

kube::Result<std::vector<TrialConfig>> ConfigsToTry(const TrialView& view, const std::vector<Trial>& trials) {
  const api::TrialJobSpec& spec = view.job->spec;
  auto configs = ConfigsOf(spec.space, *view.workload, trials);
  if (!configs) return configs;
  return PlacedConfigs(spec, *view.workload, view.nodes, *std::move(configs), trials);
}

void ListTrials(const TrialView& view, const std::vector<api::TrialConfig>& configs, api::TrialJobStatus& status) {
  SettleScopes(view.job->spec.space, status);
  Lister(view, status).List(configs);
}

}  // namespace grus
