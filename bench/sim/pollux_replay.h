// SPDX-License-Identifier: Apache-2.0
// Plays a Pollux workload on a cluster of 16 nodes with 4 GPUs: jobs arrive and train, and a policy places them every
// 60 s. Deterministic, as long as the policy is.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/sim/pollux_job.h"
#include "clientlib/base/result.h"

namespace grus {

inline constexpr int kReplayNodes = 16;
inline constexpr int kReplayGpusPerNode = 4;
inline constexpr int kReplayRoundSeconds = 60;

using Applications = std::map<std::string, Application, std::less<>>;

// Error: see ReadCsvRows().
kube::Result<Applications> LoadApplications(const std::filesystem::path& traces);

// A workload file: name, time, application, num_replicas, batch_size. Error: see ReadCsvRows(); a name twice, an
// application that is not known, or a batch size outside those that were validated.
kube::Result<std::vector<ReplayJob>> LoadWorkload(const std::string& path, const Applications& applications,
                                                  BatchSize batch_size);

// A workload like this one: `count` of its jobs, drawn with replacement, each at the time of a job drawn likewise. The
// same seed draws the same. REQUIRES: there are jobs, and they have not trained.
std::vector<ReplayJob> DrawWorkload(const std::vector<ReplayJob>& jobs, unsigned count, unsigned seed);

class ReplayPolicy {
 public:
  virtual ~ReplayPolicy() = default;

  // GPUs for each of these jobs, which have arrived and are not complete, in their order of arrival in the file. A node
  // is a number below kReplayNodes. An answer that equals job.gpu_nodes() leaves the job alone.
  virtual std::vector<GpuNodes> Place(double now_s, const std::vector<const ReplayJob*>& jobs) = 0;
};

struct ReplayResult {
  double average_s = 0, p99_s = 0;  // From arrival to completion.
  double makespan_s = 0;            // Until the last is complete.
  double restarts_per_job = 0;
};

// Until all jobs are complete. Error kTimeout: a job makes no progress in a year.
kube::Result<ReplayResult> Replay(std::vector<ReplayJob> jobs, ReplayPolicy& policy,
                                  const Standstills& standstills = {});

// REQUIRES: all jobs are complete, and there are some.
ReplayResult Summarise(const std::vector<ReplayJob>& jobs);

}  // namespace grus
