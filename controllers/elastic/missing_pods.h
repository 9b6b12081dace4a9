// SPDX-License-Identifier: Apache-2.0
// Why pods are not made, or do not start, when no status says so: Kubernetes tells it in events alone.
//
// The controllers of StatefulSets and Jobs record an event when Pod Security, a quota or a webhook refuses a pod; the
// kubelet does when a volume cannot be mounted. Events of one object are asked for when it has waited for a while, and
// at most every ten seconds. What was asked is kept in memory; a restart asks again.
// Thread-safe, for one pass over each job at a time.
#pragma once

#include <optional>
#include <string>

#include "clientlib/client/client.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

class MissingPods {
 public:
  explicit MissingPods(kube::Client& client, const kube::Clock& clock) : client_(client), clock_(clock) {}

  // Completes `view`: refused_workers, refused_launcher, the trouble of a pod. `workers` and `launcher` may be null.
  // Returns when to look again, if something is missing.
  std::optional<kube::Duration> Explain(View& view, const kube::StatefulSet* workers, const kube::Job* launcher,
                                        std::stop_token stop);
  void Forget(const kube::ObjectKey& job) { records_.Forget(job); }

 private:
  // Of what waits for pods, or is one that does not start.
  struct Record {
    std::optional<kube::Time> since;  // First seen so.
    std::optional<kube::TimePoint> asked;
    std::string text;  // Of its last warning; empty: none.
  };
  // The last warning, asked for once it was seen so for `patience`; nullopt: none.
  std::optional<Refusal> Ask(const kube::ObjectKey& job, const std::string& uid, kube::Duration patience,
                             const kube::Time& now, std::stop_token stop);

  kube::Client& client_;
  const kube::Clock& clock_;
  kube::ObjectMemory<Record> records_;  // By job.
};

}  // namespace grus
