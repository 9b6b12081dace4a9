// SPDX-License-Identifier: Apache-2.0
// Keeps status.progress of running ElasticHorovodJobs: how far the training is and when it is done.
//
// Of each job whose launcher runs, the log is read every kEvery: its beginning, for where the counting starts, then
// what is new, or its last lines if that is too much for one look. One request at a time and thread, at most
// kReadsPerSecond over all jobs, so that of very many each waits longer. A log that cannot be read is tried again
// later, and the status stays as it is: `time` says how old it is. The status is written when a reader would notice the
// difference. When the job ends or its workers go, the end to come goes from the status.
//
// A new launcher counts anew. A restart of grus reads the beginning again. Memory: some kB for each running job.
// Thread-safe. A pass blocks for kPatience until the log begins and again until it ends, and for the write.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/pod.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/frame/key_feed.h"
#include "controllers/frame/status_writer.h"
#include "controllers/telemetry/progress_reader.h"
#include "controllers/telemetry/progress_track.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

struct ProgressCaches {
  kube::Informer& jobs;  // ElasticHorovodJobs.
  kube::Informer& pods;
};

class ProgressWatch final : public kube::Reconciler {
 public:
  static constexpr kube::Duration kEvery = std::chrono::seconds(50);
  static constexpr kube::Duration kPatience = std::chrono::seconds(3);  // With a kubelet that does not answer.
  static constexpr double kReadsPerSecond = 10;

  // Adds the index that it needs to `caches`. REQUIRES: the informers are not started yet.
  ProgressWatch(kube::Client& client, ProgressCaches caches, const kube::Clock& clock, const kube::Log& log);

  // Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

  // The steps that trainings have reached, of those whose log was read within kStepsStay. Not as the status says, which
  // is written only when a reader would notice.
  static constexpr kube::Duration kStepsStay = std::chrono::minutes(3);
  std::map<kube::ObjectKey, double> Steps() const;

 private:
  struct Launcher {
    ProgressReader reader;
    ProgressTrack track;
    std::int32_t workers = 0;
    bool lags = false;  // More was printed since the last look than is read at a time: there is a gap.
    bool is_failure_told = false;
    bool has_turn = false;  // From `due` on it may be read.
    kube::TimePoint due{};
  };
  using Job = std::shared_ptr<const api::ElasticHorovodJob>;

  std::shared_ptr<const kube::Pod> RunningLauncher(const kube::ObjectKey& job) const;
  kube::Result<kube::Action> Look(const Job& job, const kube::Pod& pod, Launcher& launcher, std::stop_token stop);
  kube::Status ReadLog(const kube::ObjectKey& pod, Launcher& launcher, std::stop_token stop);
  kube::Result<kube::Action> Write(const Job& job, const api::Progress& progress, kube::Duration next,
                                   std::stop_token stop);
  kube::TimePoint TakeTurn();
  void ForgetSteps(const kube::ObjectKey& job);

  ProgressCaches caches_;
  kube::Client& client_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_job_;
  StatusWriter status_;
  KeyFeed feed_{std::chrono::seconds(1)};
  kube::ObjectMemory<std::shared_ptr<Launcher>> launchers_;  // By job, for the UID of the launcher's pod.
  struct Step {
    double step = 0;
    kube::TimePoint read{};
  };
  mutable std::mutex mutex_;  // Guards what follows.
  kube::TimePoint next_turn_{};
  std::map<kube::ObjectKey, Step> steps_;
};

}  // namespace grus
