// SPDX-License-Identifier: Apache-2.0
// When a training last printed something: a training that hangs falls silent.
//
// One small request asks the kubelet for the time of the last line of the launcher's log: about every ten minutes with
// the default limit, every 30 seconds once the training is silent. The answers are kept in memory; a new leader asks
// again, spread over a minute.
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

  // Sets in `view`: silent_since of the launcher that runs, if it was silent for the job's limit when last asked.
  // Blocks for some seconds at most. Returns when to look again.
  std::optional<kube::Duration> Look(View& view, std::stop_token stop);
  void Forget(const kube::ObjectKey& job) { records_.Forget(job); }

 private:
  // About the launcher's pod.
  struct Record {
    kube::Duration limit{};  // Of the job.
    // Decided at the last look: a clock that jumps does not reinterpret an old look.
    std::optional<kube::Time> silent_since{};
    kube::TimePoint ask_at{};
    kube::Time spoke{};            // The time of the last line, by its node's clock.
    kube::TimePoint spoke_seen{};  // When we first saw that line, by our clock.
  };
  kube::Result<std::optional<kube::Time>> TimeOfLastLine(const kube::ObjectKey& pod, std::stop_token stop);

  kube::Client& client_;
  const kube::Clock& clock_;
  kube::ObjectMemory<Record> records_;  // By job.
};

}  // namespace grus
