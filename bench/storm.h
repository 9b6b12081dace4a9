// SPDX-License-Identifier: Apache-2.0
// Many jobs at once, and the wait until all their pods run.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "crds/types/elastic_horovod_job.h"
#include "tests/kit/observer.h"

namespace bench {

struct StormOptions {
  int jobs = 400;
  int workers = 2;
  int min_workers = 1;
  int threads = 8;        // That create the objects.
  bool is_gated = false;  // A scheduling gate of their owner's in the pods.
};

// Watches the pods of a cluster and the jobs' statuses, and notes when each turned. Thread-safe.
class Observer {
 public:
  Observer(kube::Client& client, const kube::Clock& clock, const kube::Log& log);
  kube::Status Start();
  // True if `count` pods of `ns` run before `until`.
  bool WaitForRunning(const std::string& ns, int count, kube::TimePoint until);
  bool WaitForNoPods(const std::string& ns, kube::TimePoint until);
  bool WaitForPhase(const std::string& ns, const std::string& phase, int count, kube::TimePoint until);
  int Running(const std::string& ns);

  // Seconds from a worker's turning ready to the first status that counts it, sorted.
  std::vector<double> StatusLags(const std::string& ns);

 private:
  struct JobTimes {
    std::vector<kube::TimePoint> pod_ready;     // k-th ready worker.
    std::vector<kube::TimePoint> status_ready;  // First status that counts k workers.
  };
  void OnPod(const kube::Change& change);
  void OnJob(const kube::Change& change);
  bool Wait(const std::function<bool()>& reached, kube::TimePoint until);

  const kube::Clock& clock_;
  std::mutex mutex_;                                                  // Guards what follows, up to observer_.
  std::map<std::string, std::set<std::string>> all_, running_;        // By namespace: names.
  std::map<std::string, std::map<std::string, std::string>> phases_;  // By namespace: job, phase.
  std::set<std::string> ready_uids_;
  std::map<std::string, JobTimes> times_;  // By namespace/job.
  kit::Observer observer_;                 // Last: it tells of changes until it is gone.
};

api::ElasticHorovodJob MakeJob(const std::string& ns, int index, const StormOptions& options);

// Each creates its objects from options.threads threads; false and a message on the first error.
bool CreateJobs(kube::Client& client, const std::string& ns, const StormOptions& options);
bool CreateNamespace(kube::Client& client, const std::string& ns);
void DeleteNamespace(kube::Client& client, const std::string& ns);

}  // namespace bench
