// SPDX-License-Identifier: Apache-2.0
// When a training last printed something: a training that hangs falls silent.
//
// The time of the last line of the launcher's log, asked of its kubelet no more often than silence could last: one
// small request a job in ten minutes with the default limit. Kept in memory; a new leader asks again, spread over a
// minute.
// Thread-safe, for one pass over each job at a time.
#pragma once

#include <optional>

#include "clientlib/client/client.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

class TrainingOutput {
 public:
  TrainingOutput(kube::Client& client, const kube::Clock& clock) : client_(client), clock_(clock) {}

  // Completes `view`: silent_since of the launcher that runs, if it was silent for the job's limit when last asked.
  // Blocks for some seconds at most. Returns when to look again.
  std::optional<kube::Duration> Look(View& view, std::stop_token stop);
  void Forget(const kube::ObjectKey& job) { records_.Forget(job); }

 private:
  // Of the launcher's pod.
  struct Record {
    kube::Duration limit{};  // Of the job.
    // As of the last look: a clock that jumps, or a new limit, does not reinterpret an old look.
    std::optional<kube::Time> silent_since{};
    kube::TimePoint ask_at{};
    kube::Time spoke{};            // Its last line, by the clock of its node,
    kube::TimePoint spoke_seen{};  // and by ours.
  };
  kube::Result<std::optional<kube::Time>> TimeOfLastLine(const kube::ObjectKey& pod, std::stop_token stop);

  kube::Client& client_;
  const kube::Clock& clock_;
  kube::ObjectMemory<Record> records_;  // By job.
};

}  // namespace grus
