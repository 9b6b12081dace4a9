// SPDX-License-Identifier: Apache-2.0
// A cluster of GPUs that jobs share, replayed from event to event: jobs come, run at measured speeds, and end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controllers/interference/shared_job.h"

namespace grus {

// How fast each kind of job is beside each other, as measured on one GPU type.
class MeasuredSpeeds {
 public:
  // `kinds`: all that there are. Pairs that no sample is of do not run together.
  MeasuredSpeeds(std::vector<std::string> kinds, const std::vector<CoRunSample>& samples);

  const std::vector<std::string>& kinds() const { return kinds_; }
  bool CanShare(std::size_t a, std::size_t b) const { return of(a, b) > 0 && of(b, a) > 0; }
  double of(std::size_t kind, std::size_t partner) const { return speeds_[kind * kinds_.size() + partner]; }

 private:
  std::vector<std::string> kinds_;
  std::vector<double> speeds_;
};

struct ArrivingJob {
  double arrival = 0;
  double work = 1;  // How long it takes alone.
  std::size_t kind = 0;
};

enum class WorkLengths {
  kUniform,      // From a half to one and a half of the mean.
  kExponential,  // Of mean 1.
  kGavel,        // 10^x minutes, x from 1.5 to 3, or for a fifth of the jobs from 3 to 4; scaled to mean 1.
};

// Poisson arrivals: at load 1, work arrives as fast as `gpus` GPUs do it, each with one job at a time.
std::vector<ArrivingJob> DrawJobs(std::size_t count, std::size_t kinds, std::size_t gpus, double load,
                                  WorkLengths lengths, std::uint32_t seed);

class SharingPolicy {
 public:
  virtual ~SharingPolicy() = default;
  // The GPU for a job of this kind; nullopt: it is to wait. `gpus` has the kinds on each GPU, at most two;
  // `waiting_jobs` counts those that wait, this one included. REQUIRES of the answer: with a job there, both can share.
  virtual std::optional<std::size_t> Choose(std::size_t kind, const std::vector<std::vector<std::size_t>>& gpus,
                                            std::size_t waiting_jobs) = 0;
};

struct SharingFigures {
  double work_a_busy_second = 0;  // Of a GPU that has a job; 1 if it has no more than one.
  double work_a_gpu_second = 0;   // Of all GPUs, from the first arrival to the last end.
  double mean_jct = 0;            // From arrival to end.
  double makespan = 0;            // From the first arrival to the last end.
  double longest_wait = 0;        // Until a job starts.
};

// When a job comes or ends, all that wait are offered to the policy in the order of their arrival; one that has to
// wait does not hold up those behind it. REQUIRES: the policy places each job that is alone in the cluster.
SharingFigures Replay(const std::vector<ArrivingJob>& jobs, std::size_t gpus, const MeasuredSpeeds& speeds,
                      SharingPolicy& policy);

}  // namespace grus
