// SPDX-License-Identifier: Apache-2.0
// Decides about a TrialJob: which trials end and how, which start, and what its status says.
//
// The budget is an invariant, not a goal. A trial's GPU seconds are its GPUs times the time from the binding of its
// first worker to the end of its last, by the pods' own times, so a restart of grus does not change them. A trial
// starts only with a slice that fits into the budget after all that running trials may still spend, less what ending
// takes; it is ended when the slice is over. Spending exceeds the budget by no more than kPoll of its GPUs.
//
// Pure: no I/O, no clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controllers/frame/planned_event.h"
#include "controllers/trial/trial_children.h"
#include "controllers/trial/trial_view.h"

namespace grus {

inline constexpr std::chrono::seconds kPoll{5};  // Interval of passes over a TrialJob with running trials.

struct TrialPlan {
  bool is_ignored = false;
  api::TrialJobStatus status;
  bool is_urgent = false;                      // The status changes in more than progress: write it at once.
  std::vector<TrialStart> start;               // Children to create, after the status is written.
  std::vector<std::string> lacks_group;        // Trials whose child lacks its PodGroup.
  std::vector<std::string> end;                // Trials whose child is to be deleted, after the status is written.
  std::vector<std::string> suspend;            // Trials whose child is kept without resources.
  std::vector<std::string> measure;            // Trials to be measured.
  std::optional<std::int32_t> apply_replicas;  // For the job of jobRef, before the status is written.
  std::vector<PlannedEvent> events;            // To record once the status is written.
  std::optional<kube::Duration> look_again;
};

TrialPlan PlanTrials(const TrialView& view);

}  // namespace grus
