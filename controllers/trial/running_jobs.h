// SPDX-License-Identifier: Apache-2.0
// Compares the jobs that run with the WorkloadProfiles of their workloads, and keeps these young.
//
// Of each job whose status names a profile the launcher's log is read for a while (until the speed is known to
// 5 %, for kSlice at most) every kSampleEvery, and kSettle after its size has changed. Of all jobs together
// kMostSamples logs are read at a time; others wait for their turn. Jobs that ran before this process are spread over
// kSampleEvery. What the speed means is said in running_verdict.h. Nothing is written to jobs or pods but Events; to a
// profile, its points and its status at most once a sample.
//
// What is answered how: a log that says nothing, or may not be read: nothing, and tried again after kSampleEvery. A
// job that changes its size while it is sampled: the sample is void. A profile that is deleted meanwhile: nothing; a
// running job does not make one. A restart forgets samples and how often a job has drifted; what the status says stays.
//
// Thread-safe. A pass blocks for writes of a profile, and for the end of a thread that follows a log.
#pragma once

#include <deque>
#include <mutex>
#include <unordered_map>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/trial/log_sample.h"
#include "controllers/trial/running_setting.h"
#include "controllers/trial/running_verdict.h"

namespace grus {

inline constexpr std::size_t kMostSamples = 4;
inline constexpr kube::Duration kSampleEvery = std::chrono::hours(1);
inline constexpr kube::Duration kSettle = std::chrono::minutes(1);  // Horovod makes its ring anew, caches fill.
inline constexpr kube::Duration kSlice = std::chrono::minutes(5);
inline constexpr kube::Duration kLeastSample = std::chrono::seconds(30);  // A glimpse is not how a long run goes.
inline constexpr kube::Duration kLookEvery = std::chrono::seconds(5);

struct RunningJobsCaches {
  kube::Informer& jobs;  // All ElasticHorovodJobs.
  kube::Informer& pods;
  kube::Informer& nodes;
  kube::Informer& profiles;
};

class RunningJobs final : public kube::Reconciler {
 public:
  // Adds the index that it needs to `caches`. REQUIRES: the informers are not started yet.
  RunningJobs(kube::Client& client, RunningJobsCaches caches, ProfileStore& store, kube::EventRecorder& events,
              const kube::Clock& clock, const kube::Log& log);

  // Sends keys of jobs that have a profile to `queue`. Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  using Job = std::shared_ptr<const api::ElasticHorovodJob>;
  struct Memory {
    std::string uid;
    bool ran_before = false;  // This process, as far as can be seen.
    std::optional<RunningSetting> setting;
    kube::TimePoint due;  // Of the next sample.
    std::string profile;
    SpeedVerdict verdict = SpeedVerdict::kNotComparable;  // The last one of this setting.
    std::optional<api::Measurement> drifted;              // What it was about, if it was kDrifts.
    bool is_refusal_told = false;
    kube::TimePoint until;  // Of the sample.
    std::unique_ptr<LogSample> sample;
  };

  kube::Result<kube::Action> Pass(const kube::ObjectKey& key, std::stop_token stop);
  std::optional<RunningSetting> SettingNow(const api::ElasticHorovodJob& job) const;
  kube::Result<kube::Action> Sample(const Job& job, const RunningSetting& setting, std::stop_token stop);
  // Judges what the sample has shown.
  kube::Status Conclude(const Job& job, const RunningSetting& setting, const SpeedObservation& seen,
                        std::stop_token stop);
  DriftContext ContextOf(const api::ElasticHorovodJob& job, const api::WorkloadProfile& profile,
                         const RunningSetting& setting, const api::Measurement& measured);
  bool HasOneGpuType() const;
  void Tell(const api::ElasticHorovodJob& job, const api::WorkloadProfile& profile, const JudgedSpeed& judged,
            bool is_first);

  void Forget(const kube::ObjectKey& key);
  // Also leaves the line. REQUIRES: mutex_ is held. The sample is to be destroyed without it: its thread may have
  // to end first.
  std::unique_ptr<LogSample> EndSampleLocked(const kube::ObjectKey& key, Memory& memory);
  // Whether there is room for another sample; if not, `key` comes back when it is its turn. REQUIRES: as above.
  bool TakesTurnLocked(const kube::ObjectKey& key);

  kube::Client& client_;
  RunningJobsCaches caches_;
  ProfileStore& store_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_job_;
  kube::WorkQueue* queue_ = nullptr;

  std::mutex mutex_;  // Guards what follows, not the samples themselves.
  std::unordered_map<kube::ObjectKey, Memory> memory_;
  std::size_t samples_ = 0;
  std::deque<kube::ObjectKey> line_;  // Jobs that wait for their turn.
};

}  // namespace grus
