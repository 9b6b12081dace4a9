// SPDX-License-Identifier: Apache-2.0
// The pods of a job as the API server makes them.
//
// LimitRanges, RuntimeClasses and webhooks add to what a template says: requests, overhead, node selectors. A job that
// is planned by its template alone may start pods that fit nowhere. So we ask the API server, with dry-run creates;
// jobs of a namespace whose pods are made alike share its answer. A start waits for the answer. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "clientlib/base/clock.h"
#include "clientlib/client/client.h"
#include "clientlib/model/pod.h"
#include "clientlib/runtime/object_memory.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

struct JobPod {
  std::shared_ptr<const kube::Pod> pod;      // Without a name.
  bool is_changed = false;                   // The API server changes what the pod needs of a node.
  bool needs_filling = false;                // The API server takes it only with FillPodSecurity().
  bool is_known = false;                     // False: the API server has not judged the template yet.
  std::string foreign_gate;                  // Of another controller, with which it will be made; empty: none.
  std::optional<kube::Error> refusal = {};   // Of the last dry-run create.
  bool is_refused = false;                   // Each time, and not by a quota, which others may make room in.
  std::optional<kube::Duration> look_again;  // When the API server may answer differently.
};

class JobPods {
 public:
  JobPods(kube::Client& client, const kube::Clock& clock) : client_(client), clock_(clock) {}

  // Asks the API server, unless it has answered lately.
  void Ask(const api::ElasticHorovodJob& job, std::stop_token stop);
  JobPod Worker(const api::ElasticHorovodJob& job);
  JobPod Launcher(const api::ElasticHorovodJob& job);
  bool HasVolumes(const kube::ObjectKey& job);  // Its templates have volume claims; false if not asked before.
  // `worker` exists: plan with pods like it until a later answer shows that something has changed.
  void Learn(const api::ElasticHorovodJob& job, const kube::Pod& worker);
  void Forget(const kube::ObjectKey& job);

 private:
  struct Answer {
    std::optional<kube::TimePoint> when = {};
    std::shared_ptr<const kube::Pod> pod = {};  // Null: none yet. A refusal keeps the last one.
    std::optional<kube::Error> refusal = {};
    int refusals = 0;        // Final ones in a row.
    bool is_filled = false;  // It is about the pod with FillPodSecurity().
  };
  // Shared by all jobs whose pods are made alike.
  struct Question {
    Answer worker, launcher;
  };
  // A pod as its template states it, the last answer, and the pod made of the two.
  struct Made {
    std::shared_ptr<const kube::Pod> stated, answer, made;
    bool is_changed = false, is_learnt = false;
  };
  struct Memory {
    std::int64_t generation = 0;  // Not KeptFor::kSpec: most new specs have the old question, which must stay alive.
    std::shared_ptr<Question> question;
    Made worker, launcher;
  };

  // Calls `use` with the memory of the job, and returns its result. REQUIRES: mutex_ is held.
  template <typename F>
  auto WithMemoryLocked(const api::ElasticHorovodJob& job, F&& use);
  void Begin(const api::ElasticHorovodJob& job, Memory& memory);
  JobPod PodLocked(const std::string& ns, Made& made, const Answer& answer) const;
  static void Make(Made& made, const kube::PodSpec& spec);
  // A namespace in which the API server does not answer about pods, for example because a webhook hangs: ask nothing
  // there before `until`, so that jobs of other namespaces get their reconcile threads.
  struct Silence {
    kube::TimePoint until{};
    kube::Duration pause{};
  };

  Answer AnswerTo(kube::Json pod, const std::string& ns, std::stop_token stop) const;
  kube::Duration AgeLeft(const Answer& answer) const;  // Until the next question; zero or less: ask now.
  void NoteLocked(const std::string& ns, const Answer& fresh);

  kube::Client& client_;
  const kube::Clock& clock_;
  kube::ObjectMemory<Memory> memory_;

  std::mutex mutex_;  // Guards what follows, and questions.
  std::map<std::string, Silence> silences_;
  std::map<std::string, int> in_flight_;                      // Questions, by namespace.
  std::map<std::string, std::weak_ptr<Question>> questions_;  // By namespace and what the pods are made of.
};

}  // namespace grus
