// SPDX-License-Identifier: Apache-2.0
// Says of running jobs what they are and what holds them back: asks a Prometheus for the series of one job after
// another, a few each sweep, and keeps what they show.
//
// A job is looked at when it has run for kFirstLook, and again each time when it has run half as long again; those with
// most GPUs first, so that the answers that are worth most are the newest. Not thread-safe: of the pass that sweeps.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "clientlib/base/log.h"
#include "controllers/prometheus/prometheus.h"
#include "controllers/telemetry/run_book.h"
#include "controllers/telemetry/series_query.h"

namespace grus {

// What the cluster says of a job that runs.
struct JobOnNodes {
  NamedPods pods = {};     // Some of its pods.
  double cores = 0;        // That these may use together; 0: not known.
  std::int32_t nodes = 0;  // That its GPUs are on.
  double gpu_memory = 0;   // Bytes of one GPU; 0: not known.
};

class CharacterWatch {
 public:
  static constexpr kube::Duration kFirstLook = std::chrono::minutes(5), kLongestLook = std::chrono::hours(12);
  static constexpr int kLooksPerSweep = 3;
  static constexpr std::size_t kMostPods = 16;  // Of one job in a query.

  // `url` and `selector`: as of UsageSource.
  CharacterWatch(Prometheus& prometheus, std::string url, std::string selector, const kube::Clock& clock,
                 const kube::Log& log);

  // Looks at some of `runs`, which are all. `find`: nullopt: its pods are gone.
  using Find = std::function<std::optional<JobOnNodes>(const JobRef&)>;
  void Look(const std::deque<JobRun>& runs, const Find& find, std::stop_token stop);

  // None: not looked at yet, or the answer was none.
  std::optional<api::RunCharacter> Of(const std::string& job_id) const;
  // What was recorded before this process began.
  void Resume(const std::string& job_id, const api::RunCharacter& before);

 private:
  struct Known {
    std::optional<api::RunCharacter> character = {};
    kube::Duration next = kFirstLook;  // The age of the run at which it is looked at.
  };
  void LookAt(const JobRun& run, const JobOnNodes& job, Known& known, std::stop_token stop);

  Prometheus& prometheus_;
  const std::string url_, selector_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::map<std::string, Known> known_;  // By the job's ID.
  bool is_failing_ = false;
};

}  // namespace grus
