// SPDX-License-Identifier: Apache-2.0
// A Pollux workload on a real control plane: each job of the trace is an ElasticHorovodJob whose pods are real and
// whose training is computed, from the nodes that its workers run on, as in grus-sim. Time passes `speedup` times as
// fast.
//
// What is written here as "trace seconds" is the time of the workload; all other times are those of the clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/sim/pollux_replay.h"
#include "clientlib/client/client.h"
#include "clientlib/model/pod.h"
#include "crds/types/elastic_horovod_job.h"
#include "tests/kit/observer.h"

namespace bench {

struct LiveOptions {
  double speedup = 60;
  double standstill_s = 30;  // Trace seconds that the training itself takes to start, and to go on with another size.
  kube::Duration limit = std::chrono::hours(2);
};

struct LiveResult {
  grus::ReplayResult replay;          // In trace seconds.
  double start_s = 0;                 // Trace seconds from a grant to the first step of training, on average.
  double wait_s = 0;                  // Trace seconds from arrival to a grant, on average.
  double resize_s = 0;                // Likewise from a change of size to the next step.
  std::vector<std::string> breaches;  // Of what must hold at any time; empty: none.
};

class PolluxLive {
 public:
  // `applications` outlive it. The cluster has the nodes of the replay, the CRDs and a manager, and no other pods.
  PolluxLive(kube::Client& client, const kube::Clock& clock, const kube::Log& log, std::vector<grus::ReplayJob> jobs,
             const LiveOptions& options);

  kube::Result<LiveResult> Run(const std::string& ns);

 private:
  // How one job is doing on the cluster.
  struct Live {
    bool is_submitted = false, is_told_to_end = false, has_ended = false;
    int granted = 0;
    std::optional<kube::TimePoint> granted_at;  // Until it trains with that many.
    bool is_start = true;                       // What it waits for since then.
    std::int32_t largest = 0;
  };

  kube::Status MakeProfiles();
  kube::Status Submit(std::size_t index);
  kube::Status End(std::size_t index);
  void NoteGrant(std::size_t index);
  void Move(std::size_t index);
  void Check();
  void Complain(const std::string& what);
  grus::GpuNodes TrainsOn(std::size_t index) const;
  std::shared_ptr<const kube::Pod> RunningLauncher(const std::string& job) const;  // Null: there is none.
  double TraceSeconds() const;

  kube::Client& client_;
  const kube::Clock& clock_;
  LiveOptions options_;
  std::string ns_;
  kube::TimePoint begun_;
  std::vector<grus::ReplayJob> jobs_;
  std::vector<Live> live_;
  std::vector<double> waits_s_, starts_s_, resizes_s_;
  std::map<std::string, int> breaches_;  // How often each.
  kit::Observer observer_;
};

}  // namespace bench
