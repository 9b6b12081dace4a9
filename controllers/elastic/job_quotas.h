// SPDX-License-Identifier: Apache-2.0
// How many workers of each job the ResourceQuotas of its namespace admit.
//
// Pods that exist are counted in a quota; those that are planned and not made yet are counted here, so that two jobs do
// not start on the same rest of it. The launcher's pod is among them while there is none: workers without it train
// nothing. What pods do not state a LimitRange or a webhook may fill in: where a quota asks for it, the API server is
// asked by a create that is not carried out.
// Thread-safe, for one pass over each job at a time.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clientlib/client/client.h"
#include "controllers/cluster/quotas.h"
#include "controllers/elastic/elastic_plan.h"

namespace grus {

class JobQuotas {
 public:
  // `quotas` null: nothing is known of them. `priority_classes` may be null.
  JobQuotas(kube::Client& client, Quotas* quotas, const kube::Informer* priority_classes, const kube::Clock& clock);

  // A job that had a limit and may have a wider one. REQUIRES: before the informers start.
  void OnMore(std::function<void(const kube::ObjectKey& job)> callback) { on_more_ = std::move(callback); }

  // Asks the API server about what the job's pods do not state, if a quota asks for it.
  void AskWhatIsUnstated(const api::ElasticHorovodJob& job, std::stop_token stop);
  // nullopt: all that are wanted. From this to Note() nothing else may be planned.
  std::optional<QuotaLimit> LimitOf(const View& view, int wanted);
  // What the plan makes and is not there yet.
  void Note(const View& view, const Plan& plan);
  void Forget(const kube::ObjectKey& job);

 private:
  // A pod of a job, and what the API server said of it.
  struct Asked {
    QuotaPod pod;
    std::optional<kube::TimePoint> when = {};
    std::string refusal = {};  // In its words; empty: none.
  };
  struct Facts {
    std::string uid;
    std::int64_t generation = 0;
    Asked worker, launcher;
  };
  struct Promise {
    QuotaPod worker, launcher;
    int workers = 0, launchers = 0;
  };

  Facts FactsOf(const api::ElasticHorovodJob& job);
  void Ask(const kube::Json& workload, const std::string& ns, const QuotaList& quotas, Asked& asked,
           std::stop_token stop);
  void Tell(const std::string& ns);

  kube::Client& client_;
  Quotas* const quotas_;
  const kube::Informer* const priority_classes_;
  const kube::Clock& clock_;
  std::function<void(const kube::ObjectKey&)> on_more_;

  std::mutex mutex_;  // Guards what follows.
  std::map<kube::ObjectKey, Facts> facts_;
  std::map<kube::ObjectKey, Promise> promises_;
  std::set<kube::ObjectKey> limited_;
};

}  // namespace grus
