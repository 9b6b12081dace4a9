// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_outcome.h"

#include <algorithm>
#include <cmath>

#include "clientlib/model/utf8.h"
#include "controllers/frame/retry_times.h"
#include "controllers/measure/measured_work.h"
#include "controllers/queues/wording.h"
#include "controllers/trial/trial_plan.h"
#include "controllers/trial/trial_space.h"

namespace grus {
namespace {

using api::Trial;
using api::TrialPhase;
using api::TrialReason;

constexpr double kLeastSeconds = 5;  // Less is too short, however steady the speed is.
constexpr std::size_t kLongestMessage = 900;
constexpr kube::Duration kRefusedTwice = kRefusedRetry + std::chrono::seconds(5);  // Time for the job's next try.
constexpr char kLogSaysOutOfMemory[] = "its log says that a GPU is out of memory";
constexpr char kWhatIsRefused[] = "zero, negative, infinite or NaN";
// A rank that is out of memory may leave the others waiting for it, and the pod's status may lag behind its log.
constexpr std::chrono::seconds kOutOfMemoryHangs{20};
constexpr std::chrono::minutes kUnaskedWaits{10};  // For room. The result must not wait for more than was asked for.
constexpr std::chrono::seconds kSilenceToMention{30};  // Of silence, before the message mentions it.

void End(Trial& trial, const TrialView& view, TrialPhase phase, TrialReason reason, std::string message) {
  trial.phase = phase;
  trial.reason = reason;
  if (message.size() > kLongestMessage) message.resize(kLongestMessage);
  trial.message = std::move(message);
  trial.end_time = view.now;
}

// Whether the interval is meaningful.
bool IsMeasured(const SteadySpeed& steady) {
  return steady.is_steady && std::isfinite(steady.half_width_seconds) &&
         steady.half_width_seconds < steady.mean_seconds;
}

// How long the steady speed was observed. A printed rate has no duration, so use the times of its lines.
double SteadySeconds(const SpeedObservation& seen, const SteadySpeed& steady) {
  const double all = std::max(1, steady.samples + steady.warm_up_samples);
  return std::chrono::duration<double>(seen.span).count() * steady.samples / all;
}

std::string UnreadableMessage(const TrialView& view, const TrialRun& run) {
  const SpeedCounts& counts = run.speed->counts;
  if (counts.lines == 0) return "its output has no line end";
  std::string text = "its log has " + Count(counts.lines, "line") + ", but ";
  if (view.job->spec.measure.patterns.empty())
    text += "no speed in any of them; if none is to come, set measure.patterns";
  else if (counts.not_numbers > 0) text += "measure.patterns match no number";
  else text += "measure.patterns match none of them";
  return text;
}

std::string RefusedMessage(const TrialView& view, const OnlyRefused& refused) {
  const api::TrialMeasure& measure = view.job->spec.measure;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(refused.span).count();
  std::string text = "every speed that came in " + std::to_string(seconds) + " s (" +
                     Count(refused.readings, "reading") + ") is " + kWhatIsRefused + ", as in \"" +
                     kube::RepairUtf8(refused.line) + "\"; ";
  if (measure.source != api::MeasureSource::kLogs) text += "measure.source must provide numbers above zero";
  else if (measure.patterns.empty()) text += "print the speed, or set measure.patterns that match it";
  else text += "measure.patterns must match numbers above zero";
  return text;
}

void Succeed(Trial& trial, const TrialView& view, const TrialRun& run, TrialReason reason, api::ThroughputUnit unit) {
  std::string message = SpeedText(*trial.measured, unit);
  if (trial.measured->is_scope_unknown && run.speed) message += "; " + ScopeQuestion(*run.speed, unit);
  End(trial, view, TrialPhase::kSucceeded, reason, std::move(message));
}

// Ends the trial if its pods or its job failed. True: it ended.
bool EndByFailure(Trial& trial, const TrialView& view, const TrialRun& run) {
  const TrialPods& pods = run.pods;
  const bool has_failed = run.child && run.child->phase == "Failed";
  if (!run.refusal.empty()) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kRefused, run.refusal);
  } else if (run.child && !run.child->refusal.empty() && run.child->refused_for >= kRefusedTwice) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kRefused, run.child->refusal);
  } else if (!pods.image_problem.empty()) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kImageUnavailable, pods.image_problem);
  } else if (!pods.out_of_memory.empty()) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kOutOfMemory, pods.out_of_memory + " was killed: out of memory");
  } else if (has_failed && run.speed && run.speed->counts.out_of_memory > 0) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kOutOfMemory, kLogSaysOutOfMemory);
  } else if (has_failed && pods.has_lost_node) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kNodeLost, "one of its nodes is gone");
  } else if (has_failed) {
    const std::string how = pods.exit.empty() ? run.child->message : "the training ended with " + pods.exit;
    const bool is_oom = how.find("OOMKilled") != std::string::npos;
    End(trial, view, TrialPhase::kFailed, is_oom ? TrialReason::kOutOfMemory : TrialReason::kCrashed, how);
  } else {
    return false;
  }
  return true;
}

// Ends the trial if the measurement is complete. True: it ended.
bool EndByMeasurement(Trial& trial, const TrialView& view, const TrialRun& run, const SteadySpeed& steady,
                      api::ThroughputUnit unit) {
  const api::TrialMeasure& measure = view.job->spec.measure;
  const double window = measure.window_seconds;
  const double seconds = SteadySeconds(*run.speed, steady);
  const bool is_precise = steady.has_precision(measure.precision_percent / 100.0);
  if (view.job->spec.early_stop && is_precise && seconds >= std::min(window, kLeastSeconds)) {
    Succeed(trial, view, run, TrialReason::kPrecisionReached, unit);
  } else if (seconds >= window) {
    Succeed(trial, view, run, TrialReason::kWindowEnded, unit);
  } else {
    return false;
  }
  return true;
}

std::optional<kube::Time> HeldSince(const TrialRun& run) {
  if (run.held_since) return run.held_since;
  return run.pods.holding > 0 ? run.pods.first_bound : std::nullopt;
}

// A process that has just begun to follow the log knows nothing of it yet.
bool IsSilent(const TrialRun& run) {
  return run.speed && run.speed->state == SpeedState::kSilent && !run.is_log_awaited;
}

// A speed may come late: imports, downloads and compilers print, or print zeros, or nothing for minutes.
bool EndByOutput(Trial& trial, const TrialView& view, const TrialRun& run) {
  const SpeedObservation& seen = *run.speed;
  const std::chrono::seconds startup(view.job->spec.measure.startup_seconds);
  const std::optional<kube::Time> since = HeldSince(run);
  const kube::Duration held = since ? view.now.value - since->value : kube::Duration::zero();
  if (seen.state == SpeedState::kNotMatched && seen.counts.out_of_memory > 0 && held >= kOutOfMemoryHangs) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kOutOfMemory, kLogSaysOutOfMemory);
    return true;
  }
  if (held < startup) return false;
  if (seen.state == SpeedState::kNotMatched) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kNothingMatched, UnreadableMessage(view, run));
  } else if (seen.only_refused) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kNothingMatched, RefusedMessage(view, *seen.only_refused));
  } else if (IsSilent(run)) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kNoOutput,
        "the training printed nothing in the " + std::to_string(startup.count()) +
            " s of measure.startupSeconds; if its output is buffered, as Python's is, run it with PYTHONUNBUFFERED=1");
  } else {
    return false;
  }
  return true;
}

void EndOfSlice(Trial& trial, const TrialView& view, const TrialRun& run, bool is_measured, api::ThroughputUnit unit) {
  const std::string seconds = std::to_string(run.child ? run.child->slice_seconds : 0) + " s";
  if (is_measured) return Succeed(trial, view, run, TrialReason::kWindowEnded, unit);
  // A new process knows this only from the status.
  const bool was_silent = trial.reason == TrialReason::kNoOutput;
  bool is_silent = was_silent;
  if (run.speed) {
    // If the wall clock was set back, the reader would wait for output forever.
    const bool is_empty = run.speed->state == SpeedState::kWaiting && run.speed->counts.lines == 0;
    const std::optional<kube::Time> since = HeldSince(run);
    const bool is_old = since && view.now.value - since->value >= kSilenceToMention;
    is_silent = run.speed->state == SpeedState::kSilent || (is_empty && (was_silent || is_old));
  }
  if (!is_silent && run.speed && run.speed->counts.out_of_memory > 0) {
    return End(trial, view, TrialPhase::kFailed, TrialReason::kOutOfMemory, kLogSaysOutOfMemory);
  }
  std::string message = is_silent ? "the training printed nothing in the " : "its speed was not known after the ";
  message += seconds + " that the budget gave it";
  const std::int64_t refused = run.speed ? run.speed->counts.refused : 0;
  if (refused > 0) message += "; " + Count(refused, "reading") + " refused: " + kWhatIsRefused;
  else if (run.speed && run.speed->state == SpeedState::kNotMatched) message += "; " + UnreadableMessage(view, run);
  End(trial, view, TrialPhase::kFailed, is_silent ? TrialReason::kNoOutput : TrialReason::kTimeSpent,
      std::move(message));
}

// Sets the current measurement, in the unit of all trials. Returns the speed if it is the trial's result, else null.
// The time of an epoch may be precise while that of a step is not.
const SteadySpeed* SetMeasured(Trial& trial, const TrialView& view, const TrialRun& run, api::ThroughputUnit& unit) {
  if (!run.speed) return nullptr;
  const kube::Box<api::Measurement> known = trial.measured;
  // Horovod has a process for each GPU; what a pod starts is its own affair.
  const bool has_process_per_gpu = view.workload && !view.workload->is_pod;
  auto work =
      MeasurementOf(*run.speed, {trial.config, view.job->spec.space.batch_size_scope, has_process_per_gpu}, unit);
  if (!work) return nullptr;
  trial.measured = std::move(work->measured);
  trial.measured->peak_memory_bytes = run.gpu_use.peak_memory_bytes;
  trial.measured->utilization_percent = run.gpu_use.utilization_percent;
  if (known && !run.gpu_use.peak_memory_bytes) trial.measured->peak_memory_bytes = known->peak_memory_bytes;
  if (known && !run.gpu_use.utilization_percent) trial.measured->utilization_percent = known->utilization_percent;
  const bool is_measured = IsMeasured(work->speed->steady);
  if (is_measured) unit = work->unit;
  else if (unit == api::ThroughputUnit::kNotKnown) trial.measured.reset();  // Its unit may still change.
  return is_measured ? &work->speed->steady : nullptr;
}

void SetProgress(Trial& trial, const TrialView& view, const TrialRun& run, bool knows_measured,
                 api::ThroughputUnit unit) {
  const bool is_waiting = run.child && run.child->phase == "Waiting";
  if (!run.pods.launcher_started) {
    // A replaced launcher starts over.
    trial.phase = TrialPhase::kStarting;
    trial.reason = is_waiting ? TrialReason::kWaitingForRoom : TrialReason::kNone;
    trial.message = is_waiting ? run.child->message : "";
  } else if (knows_measured) {
    trial.phase = TrialPhase::kMeasuring;
    trial.reason = TrialReason::kNone;
    trial.message = SpeedText(*trial.measured, unit);
  } else {
    const bool is_silent = IsSilent(run);
    const bool is_unread = run.speed && run.speed->state == SpeedState::kNotMatched;
    trial.phase = TrialPhase::kWarming;
    trial.reason = is_silent ? TrialReason::kNoOutput : is_unread ? TrialReason::kNothingMatched : TrialReason::kNone;
    trial.message = is_silent   ? "the training has printed nothing yet; if its output is buffered, as Python's is, "
                                  "run it with PYTHONUNBUFFERED=1"
                    : is_unread ? UnreadableMessage(view, run)
                                : "";
    if (run.speed && run.speed->only_refused) {
      trial.message = Count(run.speed->only_refused->readings, "reading") + " refused so far: " + kWhatIsRefused;
    }
  }
}

}  // namespace

bool IsActive(TrialPhase phase) {
  return phase == TrialPhase::kStarting || phase == TrialPhase::kWarming || phase == TrialPhase::kMeasuring;
}

bool HasEnded(TrialPhase phase) {
  return phase == TrialPhase::kSucceeded || phase == TrialPhase::kFailed || phase == TrialPhase::kSkipped;
}

bool HasFinished(const TrialChild& child) {
  return (child.phase == "Succeeded" || child.phase == "Failed") && !child.lingers;
}

bool HoldsGpus(const TrialRun& run) { return run.pods.holding > 0; }

bool HasLeftovers(const TrialView& view) {
  return std::any_of(view.runs.begin(), view.runs.end(), [&](const auto& named) {
    const TrialRun& run = named.second;
    if (HoldsGpus(run)) return true;
    if (!run.child || !run.child->is_ours) return false;
    return view.job->spec.cleanup == api::TrialCleanup::kAlways || run.child->is_ending;
  });
}

std::int64_t SpentOn(const Trial& trial, const TrialRun& run, kube::Time now) {
  const std::optional<kube::Time> since = HeldSince(run);
  const bool has_begun = !run.held_since && run.child && run.child->is_ours;
  const std::int64_t before = has_begun ? run.child->spent_before : run.held_spent_before;
  if (!since) return trial.gpu_seconds;
  const kube::Duration until_now = std::max<kube::Duration>(now.value - since->value, kube::Duration::zero());
  const auto held = std::chrono::ceil<std::chrono::seconds>(run.held_for.value_or(until_now));
  return std::max(trial.gpu_seconds, before + trial.config.gpus * held.count());
}

std::optional<kube::Duration> SliceLeft(const TrialRun& run, kube::Time now) {
  const std::optional<kube::Time> since = HeldSince(run);
  if (!run.child || !since) return std::nullopt;
  return std::chrono::seconds(run.child->slice_seconds) - (now.value - since->value);
}

Trial Judge(const TrialView& view, const Trial& before, const TrialRun& run, api::ThroughputUnit& unit) {
  Trial trial = before;
  // Once the launcher runs, all workers are bound; later, as they end, they are on fewer nodes. The launcher of a gang
  // of pods may run a moment before its last pod is bound.
  if (run.pods.launcher_started && run.pods.unbound == 0 && trial.config.nodes == 0) {
    trial.config.nodes = static_cast<std::int32_t>(run.pods.nodes.size());
  }
  const SteadySpeed* const steady = SetMeasured(trial, view, run, unit);
  const bool is_measured = steady != nullptr;
  const bool has_succeeded = run.child && run.child->phase == "Succeeded";
  // The log says how the trial ended, but a new process has not read it yet.
  if (run.is_log_awaited && run.child && (has_succeeded || run.child->phase == "Failed")) return trial;
  if (EndByFailure(trial, view, run)) return trial;
  if (is_measured && EndByMeasurement(trial, view, run, *steady, unit)) return trial;
  if (has_succeeded) {
    if (is_measured) {
      Succeed(trial, view, run, TrialReason::kWindowEnded, unit);
    } else {
      End(trial, view, TrialPhase::kFailed, TrialReason::kWorkloadEnded,
          "the training ended before its speed was known");
    }
    return trial;
  }
  if (run.speed && EndByOutput(trial, view, run)) return trial;
  // A new process keeps what the status says until it has read the log.
  const bool is_unread = !is_measured && (!run.speed || run.speed->counts.lines == 0);
  const bool knows_measured = is_measured || (is_unread && before.phase == TrialPhase::kMeasuring && trial.measured);
  const std::optional<kube::Duration> left = SliceLeft(run, view.now);
  if (left && *left <= kube::Duration::zero()) {
    if (is_unread && !knows_measured && run.is_log_awaited && *left > -kPoll) return trial;
    EndOfSlice(trial, view, run, knows_measured, unit);
    return trial;
  }

  SetProgress(trial, view, run, knows_measured, unit);
  const bool is_late = trial.start_time && view.now.value - trial.start_time->value >= kUnaskedWaits;
  if (is_late && trial.reason == TrialReason::kWaitingForRoom && IsUnasked(view.job->spec.space, trial.config)) {
    End(trial, view, TrialPhase::kFailed, TrialReason::kDoesNotFit,
        "two nodes had no room for it in " + std::to_string(kUnaskedWaits.count()) + " minutes: " + trial.message);
  }
  trial.message = trial.message.view().substr(0, kLongestMessage);
  return trial;
}

bool IsCommonFailure(const Trial& trial, bool has_success) {
  if (trial.phase != TrialPhase::kFailed) return false;
  switch (trial.reason) {
    case TrialReason::kImageUnavailable:
    case TrialReason::kRefused: return true;
    case TrialReason::kNothingMatched:
    case TrialReason::kNoOutput: return !has_success;
    default: return false;
  }
}

}  // namespace grus
