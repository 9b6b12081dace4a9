// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_eta.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "controllers/frame/eta_news.h"
#include "controllers/trial/trial_children.h"
#include "controllers/trial/trial_outcome.h"

namespace grus {
namespace {

using api::Trial;
using api::TrialPhase;
using std::chrono::seconds;

constexpr seconds kHandOver{kTrialGraceSeconds};  // Until the GPUs of a trial are free.

// Trials run side by side, each in a lane: when each lane is free, in seconds from now.
class Lanes {
 public:
  Lanes(std::int32_t parallelism, const std::vector<seconds>& running) : free_(running) {
    free_.resize(std::max(static_cast<std::size_t>(std::max(parallelism, 1)), running.size()));
  }
  void Add(seconds takes) { *std::ranges::min_element(free_) += kHandOver + takes; }
  seconds End() const { return *std::ranges::max_element(free_) + kHandOver; }

 private:
  std::vector<seconds> free_;
};

// The median of those that succeeded: a failed one may have ended at its beginning.
std::optional<seconds> UsualTime(const std::vector<Trial>& trials) {
  std::vector<seconds> took;
  for (const Trial& trial : trials) {
    const bool has_run =
        trial.phase == TrialPhase::kSucceeded && trial.start_time && trial.end_time;  // One of the cache has neither.
    if (has_run) took.push_back(std::chrono::ceil<seconds>(trial.end_time->value - trial.start_time->value));
  }
  if (took.empty()) return std::nullopt;
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
  std::ranges::nth_element(took, middle);
  return std::max(*middle, seconds(0));
}

// The most that the budget lasts, in seconds from now.
seconds BudgetLeft(const api::TrialBudget& budget, const api::TrialJobStatus& status, std::int32_t fewest_gpus) {
  std::int64_t left = std::numeric_limits<std::int32_t>::max();
  if (budget.wall_seconds) left = std::min(left, *budget.wall_seconds - status.spent.wall_seconds);
  if (budget.gpu_seconds && fewest_gpus > 0) {
    left = std::min(left, (*budget.gpu_seconds - status.spent.gpu_seconds) / fewest_gpus);
  }
  return seconds(std::max<std::int64_t>(left, 0));
}

kube::Time After(kube::Time now, seconds wait) { return kube::Time{std::chrono::ceil<seconds>(now.value) + wait}; }

void KeepUnlessNews(const std::optional<kube::Time>& before, std::optional<kube::Time>& now_said, kube::Time now) {
  if (!IsEtaNews(before, now_said, now)) now_said = before;
}

}  // namespace

TrialEnd EndOfTrials(const TrialView& view, const api::TrialJobStatus& status) {
  const api::TrialJobSpec& spec = view.job->spec;
  const std::optional<seconds> usual = UsualTime(status.trials);
  const seconds longest(spec.budget.per_trial_seconds);
  std::vector<seconds> expected_now, longest_now;
  std::int32_t fewest_gpus = 0, pending = 0;
  for (const Trial& trial : status.trials) {
    if (HasEnded(trial.phase)) continue;
    if (fewest_gpus == 0 || trial.config.gpus < fewest_gpus) fewest_gpus = trial.config.gpus;
    if (!IsActive(trial.phase)) {
      ++pending;
      continue;
    }
    const auto run = view.runs.find(trial.name);
    const auto left = run == view.runs.end() ? std::nullopt : SliceLeft(run->second, view.now);
    longest_now.push_back(left ? std::max(std::chrono::ceil<seconds>(*left), seconds(0)) : longest);
    const kube::Duration spent = trial.start_time ? view.now.value - trial.start_time->value : kube::Duration::zero();
    expected_now.push_back(
        std::max(std::chrono::ceil<seconds>(kube::Duration(usual.value_or(seconds(0))) - spent), seconds(0)));
  }
  Lanes expected(spec.strategy.parallelism, expected_now), latest(spec.strategy.parallelism, longest_now);
  for (; pending > 0; --pending) {
    expected.Add(usual.value_or(seconds(0)));
    latest.Add(longest);
  }
  const seconds most = std::min(latest.End(), BudgetLeft(spec.budget, status, fewest_gpus) + kHandOver);
  TrialEnd end{std::nullopt, After(view.now, most)};
  if (usual) end.expected = After(view.now, std::min(expected.End(), most));
  return end;
}

void SetEta(const TrialView& view, api::TrialJobStatus& status) {
  const api::TrialJobStatus& before = view.job->status;
  status.eta = status.eta_latest = std::nullopt;
  if (status.phase != api::TrialJobPhase::kRunning || status.completion_time) return;
  const TrialEnd end = EndOfTrials(view, status);
  status.eta = end.expected;
  status.eta_latest = end.latest;
  KeepUnlessNews(before.eta, status.eta, view.now);
  KeepUnlessNews(before.eta_latest, status.eta_latest, view.now);
}

void KeepEtaUnlessOthersChange(const api::TrialJobStatus& before, api::TrialJobStatus& status) {
  const auto eta = std::exchange(status.eta, before.eta), latest = std::exchange(status.eta_latest, before.eta_latest);
  if (status == before) return;
  status.eta = eta;
  status.eta_latest = latest;
}

}  // namespace grus
