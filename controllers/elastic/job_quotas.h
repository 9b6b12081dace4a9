// SPDX-License-Identifier: Apache-2.0
// How many workers of each job the ResourceQuotas of its namespace admit.
//
// A quota counts pods that exist. Pods that are planned and not made yet are counted here, so that two jobs do not
// start on the same remainder of a quota. They include the launcher's pod: workers alone train nothing.
// Thread-safe, for one pass over each job at a time.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controllers/cluster/quotas.h"
#include "controllers/elastic/elastic_plan.h"
#include "controllers/elastic/job_pods.h"

namespace grus {

class JobQuotas {
 public:
  JobQuotas(JobPods& pods, Quotas& quotas, const kube::Informer& priority_classes);

  // Called for a job that had a limit and may have a wider one. REQUIRES: before the informers start.
  void OnMore(std::function<void(const kube::ObjectKey& job)> callback) { on_more_ = std::move(callback); }

  // nullopt: quotas admit all wanted workers. REQUIRES: no other job is planned between this and Note().
  std::optional<QuotaLimit> LimitOf(const View& view, int wanted);
  // Counts the pods that the plan makes and that do not exist yet.
  void Note(const View& view, const Plan& plan);
  void Forget(const kube::ObjectKey& job);

 private:
  // A pod that is to be made.
  struct Wanted {
    QuotaPod pod;
    std::string refusal;  // In the API server's words, because of a quota; empty: none.
    std::optional<kube::Duration> look_again;
  };
  struct Promise {
    QuotaPod worker, launcher;
    int workers = 0, launchers = 0;
  };

  Wanted WantedOf(const JobPod& pod, const QuotaList& quotas) const;
  void Tell(const std::string& ns);

  JobPods& pods_;
  const Quotas& quotas_;
  const kube::Informer& priority_classes_;
  std::function<void(const kube::ObjectKey&)> on_more_;

  std::mutex mutex_;  // Guards what follows.
  std::map<kube::ObjectKey, Promise> promises_;
  std::set<kube::ObjectKey> limited_;
};

}  // namespace grus
