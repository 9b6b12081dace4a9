// SPDX-License-Identifier: Apache-2.0
// Phases and reasons of TrialJobs and of their trials: closed lists, so that a dashboard or a script can rely
// on them.
#pragma once

#include <span>
#include <string_view>

namespace api {

enum class TrialJobPhase { kPending, kWaiting, kRunning, kSuspended, kSucceeded, kFailed };
std::span<const std::string_view> EnumNames(TrialJobPhase);

// Why a condition of a TrialJob is as it is.
enum class TrialJobReason {
  kPending,         // Not looked at yet.
  kWaitingForRoom,  // The next trial does not fit now.
  kWaitingForIdle,  // spec.idleOnly, and others wait for GPUs.
  kTrialsRunning,
  kSuspended,
  kComplete,           // All that the strategy wanted is measured.
  kBudgetSpent,        // What was measured before is the result.
  kNothingMeasured,    // It ended, and no trial succeeded.
  kJobNotFound,        // The job of workload.jobRef.
  kInvalidWorkload,    // None or several of jobRef, template and podTemplate; or a podTemplate that cannot be used.
  kInvalidSpace,       // No configuration is possible: no such GPU type, no size that gpusPerWorker divides.
  kInvalidPattern,     // One of measure.patterns does not compile.
  kSourceUnreachable,  // Prometheus does not answer.
  kNameTaken,          // A trial's name belongs to somebody else.
  kTemplateRefused,    // The API server refused a trial.
  kNotPermitted,       // grus itself lacks a permission.
};
std::span<const std::string_view> EnumNames(TrialJobReason);
std::string_view ToString(TrialJobReason reason);

// Starting: its pods do not run yet. Warming: they run, and the speed is not steady yet. Skipped: it was not
// run.
enum class TrialPhase { kPending, kStarting, kWarming, kMeasuring, kSucceeded, kFailed, kSkipped };
std::span<const std::string_view> EnumNames(TrialPhase);

// Why a trial is in its phase.
enum class TrialReason {
  kNone,
  kWaitingForRoom,
  kPrecisionReached,  // Succeeded, before the window ended.
  kWindowEnded,       // Succeeded; its interval tells how precisely.
  kFromCache,         // Succeeded, without a run.
  kTimeSpent,         // budget.perTrialSeconds ended it before it was measured.
  kNoOutput,
  kNothingMatched,    // There was output, and no pattern matched it, or no speed above zero.
  kWorkloadEnded,     // The training ended by itself before it was measured.
  kImageUnavailable,  // The kubelet cannot get its image.
  kOutOfMemory,
  kCrashed,
  kPreempted,  // Its GPUs were wanted back.
  kNodeLost,
  kRefused,        // The API server refused the job.
  kDoesNotFit,     // Larger than the cluster.
  kBudgetSpent,    // Skipped.
  kNoMoreGain,     // Skipped by earlyStop: more GPUs do not help.
  kOverMaxTrials,  // Skipped.
};
std::span<const std::string_view> EnumNames(TrialReason);

}  // namespace api
