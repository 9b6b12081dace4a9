// SPDX-License-Identifier: Apache-2.0
// Says of running jobs what they do and what holds them back: asks a Prometheus for the series of one job after
// another, a few each sweep, and keeps what they show.
//
// A job is looked at when it has run for kFirstLook, and again each time when it has run half as long again, after
// kLongestPause at the latest. Of the looks of a sweep, one is for the job that has waited longest for its next one;
// the others are for those that were never looked at, then for those with most GPUs. Series begin with the newest pod:
// before, the job had other GPUs. Thread-safe; LookAtNext() blocks for the answer.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "clientlib/base/log.h"
#include "controllers/prometheus/prometheus.h"
#include "controllers/telemetry/run_book.h"
#include "controllers/telemetry/series_query.h"

namespace grus {

// What the cluster says of a job that runs.
struct JobOnNodes {
  NamedPods pods = {};      // Some of its pods.
  kube::Time since = {};    // When the newest of all began.
  std::int32_t gpus = 0;    // Of all.
  std::int32_t nodes = 0;   // That these are on.
  double cores_of_pod = 0;  // That each may use; 0: not known, or not the same.
  double gpu_memory = 0;    // Bytes of each GPU; 0: not known, or not the same.
};

class CharacterWatch {
 public:
  static constexpr kube::Duration kFirstLook = std::chrono::minutes(5), kLongestPause = std::chrono::hours(2);
  static constexpr kube::Duration kLongestSeries = std::chrono::hours(12);
  static constexpr std::size_t kLooksPerSweep = 3;
  static constexpr std::size_t kMostPods = 16;  // Of one job in a query.

  // `url` and `selector`: as of UsageSource.
  CharacterWatch(Prometheus& prometheus, std::string url, std::string selector, const kube::Clock& clock,
                 const kube::Log& log);

  // Chooses some of `jobs`, which are all, for the next looks. False: none is due.
  bool Choose(std::span<const JobNow> jobs);
  // Looks at one of them. `find`: nullopt: its pods are gone. False: it was the last one.
  using Find = std::function<std::optional<JobOnNodes>(const JobRef&)>;
  bool LookAtNext(const Find& find, std::stop_token stop);

  // None: not looked at yet, or nothing is known any more.
  std::optional<api::RunCharacter> Of(const JobId& job_id) const;
  // What was recorded before this process began.
  void Resume(const JobId& job_id, const api::RunCharacter& before);

 private:
  struct Known {
    std::optional<api::RunCharacter> character = {};
    std::optional<kube::TimePoint> next = {};  // None: never looked at.
  };
  // The character; none: no source knows its GPUs. Errors: those of AskRange().
  kube::Result<std::optional<api::RunCharacter>> Ask(const JobRef& ref, const JobOnNodes& job, std::stop_token stop);

  Prometheus& prometheus_;
  const std::string url_, selector_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  mutable std::mutex mutex_;      // Guards what follows.
  std::map<JobId, Known> known_;  // By the job's ID.
  std::deque<JobRef> chosen_;
  bool is_failing_ = false;
};

}  // namespace grus
