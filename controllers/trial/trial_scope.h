// SPDX-License-Identifier: Apache-2.0
// Whose the measured speeds are, where no log says so. Nothing is guessed: what the speeds of several sizes do not show
// stays open, and a person is asked.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>

#include "crds/types/trial_job.h"

namespace grus {

// The trial has measured the speed of the whole job.
bool HasSpeedOfJob(const api::Trial& trial);

// Makes throughputs of unknown scope those of the whole job, for each GPU type and batch size where the trials show
// whose they are:
// - a rate times the time of a step is the samples of a step. With a batch for each GPU, these grow with the GPUs if
// the
//   rate is of the job, and stay if it is of one GPU; with one batch for all, they stay, or shrink;
// - a rate that grows with the number of GPUs is of the job: no single GPU becomes faster in a larger one.
void SettleScopes(const api::TrialSpace& space, api::TrialJobStatus& status);

// Why speeds of one GPU type and batch size cannot be compared, and what to do about it.
struct Doubt {
  std::string gpu_type;
  int batch_size = 0;
  std::string why;
};
// The first; none: all can be compared. REQUIRES: scopes are settled.
std::optional<Doubt> FindDoubt(const api::TrialSpace& space, const api::TrialJobStatus& status);

}  // namespace grus
