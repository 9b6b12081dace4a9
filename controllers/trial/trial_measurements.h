// SPDX-License-Identifier: Apache-2.0
// The speeds of all running trials, by the log of each launcher or by what the training pushes.
//
// Each process reads a trial's log from its start, so nothing has to be kept across a restart of grus. At most kMost
// trials are measured at a time; further ones wait.
//
// Thread-safe. `wake` is called without a lock, on the thread of a log.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/client/client.h"
#include "controllers/profile/speed_source.h"

namespace grus {

// What to measure of one trial.
struct MeasureTarget {
  std::string trial;
  kube::ObjectKey pod;  // The launcher's.
  std::string pod_uid;
  std::string container;    // Its log is read.
  bool follows_log = true;  // False: AddLine() gives it lines.
  SpeedReaderOptions options;
};

class TrialMeasurements {
 public:
  static constexpr std::size_t kMost = 512;
  using Wake = std::function<void(const kube::ObjectKey& trial_job)>;

  TrialMeasurements(kube::Client& client, const kube::Clock& clock, Wake wake);
  ~TrialMeasurements();

  // From now on measures exactly these trials of the TrialJob. A trial with the same pod goes on. Waits for the threads
  // of dropped trials, which end at once.
  void Measure(const kube::ObjectKey& trial_job, const std::vector<MeasureTarget>& targets);

  // By trial.
  std::map<std::string, SpeedObservation> Look(const kube::ObjectKey& trial_job) const;

  // Whether more of the log may come; also if the trial is not measured yet, but can be.
  bool IsLogAwaited(const kube::ObjectKey& trial_job, const std::string& trial) const;

  // The whole log of the ended container was read.
  bool HasLogEnded(const kube::ObjectKey& trial_job, const std::string& trial) const;

  // A line that a trial pushed.
  void AddLine(const kube::ObjectKey& trial_job, const std::string& trial, const std::string& text,
               std::optional<kube::Duration> same_is_news = std::nullopt);

 private:
  struct Source {
    kube::ObjectKey pod;
    std::string pod_uid;
    std::shared_ptr<SpeedSource> speed;
  };
  using Sources = std::map<std::string, Source>;
  // Null: there is none.
  std::shared_ptr<SpeedSource> Find(const kube::ObjectKey& trial_job, const std::string& trial) const;

  kube::Client& client_;
  const kube::Clock& clock_;
  const Wake wake_;
  mutable std::mutex mutex_;  // Guards what follows, not the sources themselves.
  std::map<kube::ObjectKey, Sources> sources_;
  std::map<kube::ObjectKey, kube::TimePoint> busy_;  // By pod: the end of a Retry-After for its log.
  std::size_t count_ = 0;
};

}  // namespace grus
