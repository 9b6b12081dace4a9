// SPDX-License-Identifier: Apache-2.0
// What the jobs of a mix have got, from the bench's own watch of the pods: who holds GPUs, who waits, what work is
// done, and what is lost. kwok runs no training: a job trains here while enough of its workers run, as fast as it has
// GPUs, and saves its state every kSaveEvery. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/queues/mix.h"
#include "clientlib/model/pod.h"
#include "tests/kit/observer.h"

namespace bench {

inline constexpr double kSaveEvery = 10;  // Seconds of training.

// Sums since Begin(), in GPU seconds unless they say otherwise.
struct MixTotals {
  double seconds = 0, held = 0;
  double idle_wanted = 0;            // Idle, while a job waited that would have fitted.
  double thrown_away = 0;            // Training that has to be done again, since its job was stopped.
  int stops = 0, shrinks = 0;        // Of running jobs.
  std::vector<double> held_by_team;  // While every team had jobs for all that is guaranteed to it.
};

class JobWatch {
 public:
  JobWatch(kube::Client& client, const kube::Clock& clock, const kube::Log& log);
  kube::Status Start();

  // Forgets all jobs. No pod may be left of them.
  void Begin(const std::vector<Team>& teams, int gpus);
  void Submit(const MixJob& job);  // Before its objects are created.

  // True once `reached`, which is asked after each change without a lock of this; false at `until`.
  bool Await(const std::function<bool()>& reached, kube::TimePoint until) { return observer_.Await(reached, until); }

  // The pods that have to end because the work of their job is done; each once.
  std::vector<kube::ObjectKey> TakeFinished();
  kube::TimePoint NextFinish();  // If nothing changes.

  int Held();                                                // GPUs.
  int HeldBy(int team);                                      // GPUs.
  int Unfinished();                                          // Jobs.
  int Pods();                                                // Of all jobs.
  std::optional<double> SecondsToStart(const std::string&);  // From Submit() until all that it needs run.
  std::vector<double> StartsOf(MixClass job_class);          // Sorted; one that has not started counts as until now.
  MixTotals Totals();

 private:
  struct Job {
    MixJob mix;
    std::map<std::string, kube::ObjectKey> bound, running, launchers;  // By UID; launchers that run.
    std::set<std::string> pods, ended;                                 // UIDs; those that TakeFinished() returned.
    kube::TimePoint submitted;
    std::optional<double> start_took;
    bool is_finished = false, was_told = false, was_training = false;
    double done = 0, unsaved = 0, unsaved_seconds = 0;

    int held() const { return static_cast<int>(bound.size()) * mix.gpus; }
    int needs() const { return mix.min_workers * mix.gpus; }
    double rate() const;  // GPUs that train.
  };

  void OnPod(const kube::Change& change);
  void Note(Job& job, const kube::Pod& pod, bool is_gone, bool is_worker);
  void NoteStop(Job& job, std::size_t bound_before);
  void Advance();  // Up to now, with what held since the last change.
  void AddShares(double seconds);

  const kube::Clock& clock_;
  std::mutex mutex_;  // Guards what follows, up to observer_.
  std::vector<Team> teams_;
  int gpus_ = 0;
  std::map<std::string, Job> jobs_;
  MixTotals totals_;
  kube::TimePoint last_;
  kit::Observer observer_;  // Last: it tells of changes until it is gone.
};

}  // namespace bench
