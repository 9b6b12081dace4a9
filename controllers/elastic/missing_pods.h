// SPDX-License-Identifier: Apache-2.0
// Why pods are not made, or do not start, where Kubernetes says so only in events.
//
// The controller of Jobs records an event when Pod Security, a quota or a webhook refuses a pod; the kubelet does when
// a volume cannot be mounted. When an object has waited for a while, its events are listed, at most every ten seconds.
// The refusal of a worker is the answer to our own create. All is kept in memory; a restart asks again. Thread-safe,
// for one pass over each job at a time.
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

  // Sets these of `view`: refused_workers, may_make_workers, refused_launcher, the trouble of a pod. `launcher` may be
  // null. Returns when to look again, if something is missing.
  std::optional<kube::Duration> Explain(View& view, const kube::Job* launcher, std::stop_token stop);
  // What became of the creates of workers; nullopt: all were made. Returns when to try again.
  std::optional<kube::Duration> NoteCreates(const View& view, const std::optional<kube::Error>& refusal);
  void Forget(const kube::ObjectKey& job);

 private:
  // About a Job that lacks a pod, or a pod that does not start.
  struct Record {
    std::optional<kube::Time> since;  // When that was first seen.
    std::optional<kube::TimePoint> asked;
    std::string text;  // Of its last warning; empty: none.
  };
  // The last warning about the object `uid`. Lists no events before `patience` has passed. nullopt: no warning.
  std::optional<Refusal> Ask(const kube::ObjectKey& job, const std::string& uid, kube::Duration patience,
                             const kube::Time& now, std::stop_token stop);

  kube::Client& client_;
  const kube::Clock& clock_;
  struct RefusedCreates {
    Refusal refusal;
    kube::TimePoint last;
  };
  kube::ObjectMemory<Record> records_;                          // By job.
  kube::ObjectMemory<std::optional<RefusedCreates>> refusals_;  // Of workers.
};

}  // namespace grus
