// SPDX-License-Identifier: Apache-2.0
// Compares running jobs with the WorkloadProfiles of their workloads, and keeps the profiles up to date.
//
// If a job's status names the profile of its own workload, its launcher's log is read every kSampleEvery, and kSettle
// after a change of its size, until the speed is known to 5 %, for at most kSlice. At most kMostSamples logs are read
// at a time; other jobs wait for their turn. First samples of jobs that ran before this process are spread over
// kSampleEvery. running_verdict.h says what the speed means. Nothing but Events is written about jobs and pods; a
// profile is written at most once per sample.
//
// A job may share its GPUs (gpu_neighbours.h). Beside pods of one workload, one on a GPU, its speed is a co-run of the
// two, as a share of the profile's point of the same configuration; without a point, and beside any others, its speed
// says nothing, and no log is read. A change of its neighbours is as one of its size.
//
// A log without a speed, or that may not be read, is tried again after kSampleEvery. If a job changes its size while it
// is sampled, the sample is void. If the profile is deleted meanwhile, nothing is written: a running job does not
// create one. A restart forgets samples and how often a job has drifted; the status of the profile stays.
//
// Thread-safe. A pass blocks for writes of a profile, and for the end of a thread that follows a log.
#pragma once

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/frame/key_feed.h"
#include "controllers/profile/log_samples.h"
#include "controllers/profile/running_setting.h"
#include "controllers/profile/running_verdict.h"

namespace grus {

inline constexpr kube::Duration kSampleEvery = std::chrono::hours(1);
inline constexpr kube::Duration kSettle = std::chrono::minutes(1);  // Horovod builds a new ring, caches fill.
inline constexpr kube::Duration kSlice = std::chrono::minutes(5);
inline constexpr kube::Duration kLeastSample = std::chrono::seconds(30);  // Less does not represent a long run.
inline constexpr kube::Duration kLookEvery = std::chrono::seconds(5);

struct RunningJobsCaches {
  kube::Informer& jobs;  // All ElasticHorovodJobs.
  kube::Informer& pods;
  kube::Informer& nodes;
  kube::Informer& profiles;
};

class RunningJobs final : public kube::Reconciler {
 public:
  // Adds the indexes that it needs to `caches`. REQUIRES: the informers are not started yet.
  RunningJobs(kube::Client& client, RunningJobsCaches caches, ProfileStore& store, kube::EventRecorder& events,
              const kube::Clock& clock, const kube::Log& log);

  // Sends keys of jobs that have a profile to `queue`. Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  using Job = std::shared_ptr<const api::ElasticHorovodJob>;
  struct Memory {
    bool ran_before = false;  // Before this process started, as far as can be seen.
    std::optional<RunningSetting> setting;
    kube::TimePoint due;  // Of the next sample.
    std::string profile;
    SpeedVerdict verdict = SpeedVerdict::kNotComparable;  // The last one of this setting.
    std::optional<api::Measurement> drifted;              // The measurement, if it was kDrifts.
    bool is_refusal_told = false;
    kube::TimePoint until;  // Of the sample.
  };

  kube::Result<kube::Action> Pass(const kube::ObjectKey& key, std::stop_token stop);
  std::optional<RunningSetting> SettingNow(const api::ElasticHorovodJob& job) const;
  // Whether the profile can learn from its speed.
  bool DoesSpeedCount(const RunningSetting& setting, const std::string& profile) const;
  kube::Result<kube::Action> Look(const Job& job, const RunningSetting& setting, const SpeedSource& sample,
                                  kube::TimePoint until, std::stop_token stop);
  // Judges the sample.
  kube::Status Conclude(const Job& job, const RunningSetting& setting, const SpeedObservation& seen,
                        std::stop_token stop);
  // The same, of a job beside others.
  kube::Status ConcludeCoRun(const api::WorkloadProfile& profile, const RunningSetting& setting,
                             const ObservedSpeed& observed, std::stop_token stop);
  DriftContext ContextOf(const api::ElasticHorovodJob& job, const api::WorkloadProfile& profile,
                         const RunningSetting& setting, const api::Measurement& measured) const;
  bool HasOneGpuType() const;

  RunningJobsCaches caches_;
  ProfileStore& store_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_job_;
  const NeighbourSearch neighbours_;
  KeyFeed feed_{kLookEvery};
  LogSamples samples_;
  kube::ObjectMemory<Memory> memory_;
};

}  // namespace grus
