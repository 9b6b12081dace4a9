// SPDX-License-Identifier: Apache-2.0
// Where the measurements of trials come from: the launchers' logs, what trainings push, or a Prometheus.
//
// Logs are followed between passes. A Prometheus is asked in passes, every few seconds at most; it is an error once it
// has not answered for a while, or before any trial runs. When it was asked is kept in memory; a restart asks again.
// Thread-safe, for one pass over each TrialJob at a time.
#pragma once

#include <optional>
#include <string>

#include "clientlib/runtime/object_memory.h"
#include "controllers/prometheus/prometheus.h"
#include "controllers/trial/trial_measurements.h"
#include "controllers/trial/trial_plan.h"

namespace grus {

class TrialSources {
 public:
  // `wake` is called when a log has news, on other threads, until this object is gone.
  TrialSources(kube::Client& client, Prometheus& prometheus, const kube::Clock& clock, TrialMeasurements::Wake wake)
      : prometheus_(prometheus), clock_(clock), measurements_(client, clock, std::move(wake)) {}

  // Sets in `view`: pattern_error, source_error, and of each run speed, is_log_awaited and gpu_use. Blocks for a few
  // seconds at most while a Prometheus is asked.
  void Read(TrialView& view, std::stop_token stop);
  // The whole log of the trial's ended container was read.
  bool HasLogEnded(const api::TrialJob& job, const std::string& trial) const {
    return measurements_.HasLogEnded(job.metadata.Key(), trial);
  }
  // From now on measures what the plan says, and nothing else of this TrialJob.
  void Measure(const TrialView& view, const TrialPlan& plan);
  void Forget(const kube::ObjectKey& trial_job);

 private:
  // Of a Prometheus.
  struct Record {
    std::optional<kube::TimePoint> asked, unanswered_since;
    std::string error;  // What view.source_error was after that.
  };

  void AskPrometheus(TrialView& view, std::stop_token stop);
  kube::Status AskSpeed(const api::TrialJob& job, const std::string& trial, std::stop_token stop);

  Prometheus& prometheus_;
  const kube::Clock& clock_;
  kube::ObjectMemory<Record> records_;
  kube::ObjectMemory<std::optional<std::string>> pattern_errors_{kube::KeptFor::kSpec};  // None: not tried yet.
  TrialMeasurements measurements_;
};

}  // namespace grus
