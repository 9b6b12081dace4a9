// SPDX-License-Identifier: Apache-2.0
// The pods of a job as the API server makes them.
//
// LimitRanges, RuntimeClasses and webhooks add to what a template says: requests, overhead, node selectors. A job that
// is planned by its template alone starts pods that fit nowhere. So we ask the API server, with dry-run creates; jobs
// of a namespace whose pods are made alike share its answer. Until there is one, a start waits. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "clientlib/base/clock.h"
#include "clientlib/client/client.h"
#include "clientlib/model/pod.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

struct JobPod {
  std::shared_ptr<const kube::Pod> pod;      // Without a name.
  bool is_changed = false;                   // The API server adds to what it asks of a node.
  bool is_known = false;                     // False: by its template, as nobody has judged it yet.
  std::optional<kube::Error> refusal = {};   // Of the last dry-run create.
  std::optional<kube::Duration> look_again;  // If it was asked for: when there may be another answer.
};

// Whether the API server has judged the pod: the same one would be refused again, until something else changes.
bool IsFinal(const kube::Error& refusal);

class JobPods {
 public:
  JobPods(kube::Client& client, const kube::Clock& clock) : client_(client), clock_(clock) {}

  // Asks the API server, unless it has said something lately.
  void Ask(const api::ElasticHorovodJob& job, std::stop_token stop);
  JobPod Worker(const api::ElasticHorovodJob& job);
  JobPod Launcher(const api::ElasticHorovodJob& job);
  bool HasVolumes(const kube::ObjectKey& job) const;  // Claims of volumes, as far as it was asked for its pods.
  // A worker that was made: what it is counts until another answer says that something has changed.
  void Learn(const api::ElasticHorovodJob& job, const kube::Pod& worker);
  void Forget(const kube::ObjectKey& job);

 private:
  struct Answer {
    std::optional<kube::TimePoint> when = {};
    std::shared_ptr<const kube::Pod> pod = {};  // Null: none yet. The last one there was, if then came a refusal.
    std::optional<kube::Error> refusal = {};
    int refusals = 0;  // In a row, that were final.
  };
  // What is asked for all jobs whose pods are made alike.
  struct Question {
    Answer worker, launcher;
  };
  // A pod by its template, and what became of it by an answer.
  struct Made {
    std::shared_ptr<const kube::Pod> stated, answer, made;
    bool is_changed = false, is_learnt = false;
  };
  struct Memory {
    std::string uid;
    std::int64_t generation = 0;
    std::shared_ptr<Question> question;
    Made worker, launcher;
  };

  Memory& MemoryLocked(const api::ElasticHorovodJob& job);
  JobPod PodLocked(const std::string& ns, Made& made, const Answer& answer) const;
  static void Make(Made& made, const kube::PodSpec& spec);
  // A namespace in which the API server does not answer about pods, for example since a webhook hangs: ask nothing
  // there until then, so that jobs of other namespaces get their reconcile threads.
  struct Silence {
    kube::TimePoint until{};
    kube::Duration pause{};
  };

  Answer AnswerTo(const kube::Json& workload, const std::string& ns, std::stop_token stop) const;
  kube::Duration AgeLeft(const Answer& answer) const;  // Until it is asked again; zero or less: now.
  void NoteLocked(const std::string& ns, const Answer& fresh);

  kube::Client& client_;
  const kube::Clock& clock_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::map<std::string, Silence> silences_;
  std::map<std::string, int> in_flight_;  // Questions, by namespace.
  std::map<kube::ObjectKey, Memory> memory_;
  std::map<std::string, std::weak_ptr<Question>> questions_;  // By namespace and what the pods are made of.
};

}  // namespace grus
