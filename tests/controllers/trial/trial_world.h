// SPDX-License-Identifier: Apache-2.0
// One TrialJob and a cluster that does at once what its plan wants: the view, which a test changes, and passes on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controllers/trial/trial_plan.h"
#include "tests/controllers/trial/trial_builder.h"
#include "tests/kit/conditions.h"
#include "tests/kit/moment.h"

namespace grus::testing {

class TrialWorld {
 public:
  explicit TrialWorld(api::TrialJob job = TestTrialJob()) : job_(std::move(job)) { view_.workload.emplace(); }

  api::TrialJob& job() { return job_; }
  TrialView& view() { return view_; }
  TrialRun& run(const std::string& trial) { return view_.runs[trial]; }
  api::TrialJobStatus& status() { return job_.status; }
  std::int64_t now = 0;

  // A pass, and what it asked for: jobs appear with their pods bound and running, and vanish.
  TrialPlan Pass() {
    view_.job = std::make_shared<const api::TrialJob>(job_);
    view_.now = At(now);
    for (const api::Trial& trial : job_.status.trials) view_.runs[trial.name];
    TrialPlan plan = PlanTrials(view_);
    job_.status = plan.status;
    for (const std::string& trial : plan.end) End(trial);
    for (auto it = freed_.begin(); it != freed_.end();) {
      view_.runs[*it] = {};
      it = freed_.erase(it);
    }
    for (const TrialStart& start : plan.start) {
      TrialRun& made = view_.runs[start.name];
      made.child = TrialChild{"uid-" + start.name, true, false, false, "Running", "", "", {}, start.slice_seconds,
                              start.spent_before};
      if (is_slow_) continue;
      Bind(start.name, start.config.gpus);
    }
    return plan;
  }
  void Bind(const std::string& trial, int workers) {
    TrialPods& pods = view_.runs[trial].pods;
    pods.all = workers + 1;
    pods.holding = workers;
    pods.first_bound = At(now);
    pods.launcher = trial + "-launcher";
    pods.launcher_uid = "uid-" + pods.launcher;
    pods.launcher_started = At(now);
  }
  void EndsAfter(std::int64_t seconds) { grace_ = seconds; }  // What pods take to go.
  // Until then, or until pods go, which is seen at once.
  void Wait(std::int64_t seconds) {
    now += seconds;
    for (const auto& [trial, at] : going_) now = std::min(now, at);
    std::erase_if(going_, [&](const auto& entry) {
      if (entry.second > now) return false;
      view_.runs[entry.first].pods = {};
      freed_.insert(entry.first);
      return true;
    });
  }
  void StartsSlowly() { is_slow_ = true; }  // Jobs get no pods by themselves.

  std::vector<std::string> Active() const {
    std::vector<std::string> names;
    for (const api::Trial& trial : job_.status.trials) {
      if (trial.phase == api::TrialPhase::kStarting || trial.phase == api::TrialPhase::kWarming ||
          trial.phase == api::TrialPhase::kMeasuring) {
        names.push_back(trial.name);
      }
    }
    return names;
  }
  const api::Trial* TrialOf(int gpus, int batch_size = 0, const std::string& type = "") const {
    for (const api::Trial& trial : job_.status.trials) {
      if (trial.config == api::TrialConfig{type, gpus, 0, batch_size}) return &trial;
    }
    return nullptr;
  }
  // Runs trials to their end, each as fast as `speed` says; gives up after so many passes.
  template <typename Speed>
  void RunAll(Speed speed, int most_passes = 400) {
    RunSeen([&](const api::TrialConfig& config) { return Seen(speed(config), 20); }, most_passes);
  }
  // The same, each seen as `observe` says.
  template <typename Observe>
  void RunSeen(Observe observe, int most_passes = 400) {
    for (int i = 0; i < most_passes && !job_.status.completion_time; ++i) {
      Pass();
      now += 10;
      for (const std::string& name : Active()) {
        for (const api::Trial& trial : job_.status.trials) {
          if (trial.name == name) view_.runs[name].speed = observe(trial.config);
        }
      }
    }
  }
  std::string ReadyReason() const { return kit::ReasonIn(job_.status.conditions); }
  std::string ReadyMessage() const { return kit::MessageIn(job_.status.conditions); }

 private:
  void End(const std::string& trial) {
    TrialRun& run = view_.runs[trial];
    if (grace_ == 0 || run.pods.holding == 0) {
      run = {};
      return;
    }
    run.held_since = run.pods.first_bound;
    run.held_spent_before = run.child->spent_before;
    run.child.reset();
    run.speed.reset();
    going_[trial] = now + grace_;
  }

  std::int64_t grace_ = 0;
  std::map<std::string, std::int64_t> going_;  // When the pods are gone.
  std::set<std::string> freed_;                // Gone, and not seen yet.
  api::TrialJob job_;
  TrialView view_;
  bool is_slow_ = false;
};

}  // namespace grus::testing
