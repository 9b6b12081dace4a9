// SPDX-License-Identifier: Apache-2.0
// Keeps status.progress of running ElasticHorovodJobs: how far the training is and when it is done.
//
// What the training pushes by annotations goes before what its log says; while pushes come, no log is read. When they
// stay out, the log counts again if it has said something since the last one.
//
// Of each other job whose launcher runs, the log is read every kEvery: its beginning, for where the counting starts,
// then what is new, or its last lines if that is too much for one look. One request at a time and thread, at most
// kReadsPerSecond over all jobs, so that of very many each waits longer. A log that cannot be read is tried again
// later, and the status stays as it is: `time` says how old it is. The status is written when a reader would notice the
// difference. When the job ends or its workers go, the end to come goes from the status.
//
// A change of size changes the end at once, without a look at the log: by the curve of the job's profile as the
// allocator reads it, or else by the number of workers.
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
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/cluster/speed_tables.h"
#include "controllers/frame/key_feed.h"
#include "controllers/frame/status_writer.h"
#include "controllers/telemetry/progress_reader.h"
#include "controllers/telemetry/progress_track.h"
#include "controllers/telemetry/pushed_progress.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

struct ProgressCaches {
  kube::Informer& jobs;  // ElasticHorovodJobs.
  kube::Informer& pods;
  kube::Informer* profiles = nullptr;  // WorkloadProfiles; null: nobody makes them.
};

class ProgressWatch final : public kube::Reconciler {
 public:
  static constexpr kube::Duration kEvery = std::chrono::seconds(50);
  static constexpr kube::Duration kPatience = std::chrono::seconds(3);  // With a kubelet that does not answer.
  static constexpr double kReadsPerSecond = 10;

  // Adds the index that it needs to `caches`. REQUIRES: the informers are not started yet.
  ProgressWatch(kube::Client& client, ProgressCaches caches, const ClusterAccount& account, kube::EventRecorder& events,
                const kube::Clock& clock, const kube::Log& log);

  // Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

  // The last steps that are known of trainings that were looked at within kStepsStay, however old the steps are: the
  // alert of one that hangs needs a step that stands still, not one that vanishes. Of logs that cannot be read there is
  // none. Not as the status says, which is written only when a reader would notice.
  static constexpr kube::Duration kStepsStay = std::chrono::minutes(3);
  std::map<kube::ObjectKey, double> Steps() const;

 private:
  struct Launcher {
    StatedTotals stated;
    ProgressReader reader;
    ProgressTrack track = {};  // Of the log.
    PushedProgress pushed;
    bool lags = false;  // More was printed since the last look than is read at a time: there is a gap.
    bool is_failure_told = false;
    bool has_turn = false;    // From `due` on it may be read.
    bool is_resized = false;  // And the status does not say so yet.
    kube::TimePoint due{};
  };
  using Job = std::shared_ptr<const api::ElasticHorovodJob>;

  std::shared_ptr<const kube::Pod> RunningLauncher(const kube::ObjectKey& job) const;
  std::shared_ptr<Launcher> LauncherOf(const Job& job, const kube::Pod& pod);
  void NoteSize(const api::ElasticHorovodJob& job, Launcher& launcher);
  void NotePush(const api::ElasticHorovodJob& job, const kube::Pod& pod, Launcher& launcher);
  SpeedRatio RatioOf(const api::ElasticHorovodJob& job, std::int32_t from, std::int32_t to);
  kube::Result<kube::Action> Look(const Job& job, const kube::Pod& pod, Launcher& launcher, std::stop_token stop);
  // Writes what is known now; looks again after `next`.
  kube::Result<kube::Action> Say(const Job& job, Launcher& launcher, kube::Duration next, std::stop_token stop);
  kube::Status ReadLog(const kube::ObjectKey& pod, Launcher& launcher, std::stop_token stop);
  kube::Result<kube::Action> Write(const Job& job, const api::Progress& progress, kube::Duration next,
                                   std::stop_token stop);
  kube::TimePoint TakeTurn();
  void ForgetSteps(const kube::ObjectKey& job);

  ProgressCaches caches_;
  const ClusterAccount& account_;
  kube::Client& client_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_job_;
  StatusWriter status_;
  SpeedTables speed_tables_;
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
