// SPDX-License-Identifier: Apache-2.0
// Keeps what jobs use of their GPUs and nodes: asks a Prometheus each minute, adds up the pods of each job, and records
// its run in the WorkloadProfile of its workload, which stays when job and pods are gone.
//
// Jobs of any kind count that have pods with GPUs: a job is the controller of its pods; above a ReplicaSet or a Job,
// the controller of that; a PodGroup, if its pods have no controller. What a pod used until it vanished counts. One
// query at a time, each for all pods of the cluster. A run is written when a reader would notice the difference, and
// when it is over; all writes are at most eight a second. A source that is missing or fails leaves its numbers out, and
// one line in the log. A restart of grus goes on with the runs that are recorded.
//
// Thread-safe. A pass blocks for the answers and the writes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/pod.h"
#include "clientlib/runtime/controller.h"
#include "controllers/frame/key_feed.h"
#include "controllers/profile/profile_store.h"
#include "controllers/profiler/alnair_annotations.h"
#include "controllers/profiler/character_watch.h"
#include "controllers/profiler/pod_owners.h"
#include "controllers/profiler/run_record.h"
#include "controllers/profiler/usage_questions.h"
#include "controllers/prometheus/prometheus.h"
#include "controllers/telemetry/run_book.h"

namespace grus {

struct UsageCaches {
  kube::Informer& jobs;  // ElasticHorovodJobs.
  kube::Informer& pods;
  kube::Informer& nodes;
  kube::Informer& profiles;
};

class UsageWatch final : public kube::Reconciler {
 public:
  static constexpr kube::Duration kEvery = std::chrono::minutes(1);
  // With the renewals of a lease they are ten at most. While runs are due too, Alnair's annotations get a part.
  static constexpr int kWritesPerSecond = 8, kAnnotationsPerSecond = 4, kAnnotationsBesideRuns = 3;

  UsageWatch(kube::Client& client, UsageCaches caches, ProfileStore& store, Prometheus& prometheus, UsageSource source,
             const kube::Clock& clock, const kube::Log& log);

  // Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  // Of the key Sweep(): a sweep; of Look(): a look at the character of a job; of others, whose names are IDs of owners:
  // finds out to which job their pods belong.
  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

  // As of the last sweep; none where another process leads.
  std::vector<JobNow> RunningJobs() const;

  static kube::ObjectKey Sweep() { return {"", "sweep"}; }
  static kube::ObjectKey Look() { return {"", "look"}; }

 private:
  struct Unresolved {
    GpuPod pod;
    std::shared_ptr<const kube::Pod> object;
  };
  // What was there when this process began to lead. Before, nothing is noted.
  void Begin();
  void Note(const kube::Change& change);
  void See(const std::shared_ptr<const kube::Pod>& pod);
  kube::Result<kube::Action> Resolve(const kube::ObjectKey& owner, std::stop_token stop);
  WorkloadIdentity IdentityFor(const JobRef& job, const kube::Pod& pod, std::stop_token stop);
  // All that a sweep asks, and what follows for each job and pod.
  void AskAll(std::stop_token stop);
  // Some of what is due. False: nothing is left.
  bool WriteSome(std::stop_token stop);
  void EndInterval(const UsageAnswer& answer);
  void AnnotateSoon(const UsageAnswer& answer);
  // What the cluster says of it, for a look at its character.
  std::optional<JobOnNodes> OnNodes(const JobRef& job);
  // Those that did not end, and whose jobs have no pods any more.
  void AddLostRuns();
  std::optional<JobRun> RunOf(const JobRef& job) const;
  // What is known of the job; nullopt: its run is not to be recorded yet.
  std::optional<RunRecord> RecordOf(const JobRef& job);
  // As it stands in the profile, as far as that has been seen.
  std::optional<api::WorkloadRun> RunInProfile(const std::string& fingerprint, const JobRef& job) const;
  // Whether its workload is known.
  bool IsResolved(const JobRef& job) const;
  // How many writes it tried; nullopt: it needs more than `left`.
  std::optional<int> Record(JobRun now, int left, std::stop_token stop);
  void NoteWritten(const JobRun& now, const api::WorkloadRun& run, const kube::Status& saved);
  void Forget(const JobRef& job);

  kube::Client& client_;
  const UsageCaches caches_;
  ProfileStore& store_;
  const UsageSource source_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  KeyFeed feed_{std::chrono::seconds(1)};
  // Of the one pass that sweeps.
  kube::TimePoint next_sweep_{};
  std::optional<kube::TimePoint> last_sweep_;
  int sweeps_ = 0;
  UsageQuestions questions_;
  std::optional<AlnairAnnotations> annotations_;  // Where they are wanted.
  kube::TimePoint began_{};
  std::deque<JobRef> to_record_;
  std::map<JobId, JobRun> lost_;  // Of these.

  CharacterWatch characters_;

  mutable std::mutex mutex_;  // Guards what follows.
  RunBook book_;
  std::vector<JobNow> jobs_;  // Written by the pass that sweeps.
  bool has_begun_ = false;
  std::map<std::string, Unresolved> unresolved_;  // By the text of the owner's ID: one of its pods.
  std::map<JobId, RunRecord> records_;
  // Of runs that were recorded before and did not end: their profile, and what that is of.
  std::map<JobId, WorkloadIdentity> recorded_;
};

}  // namespace grus
