// SPDX-License-Identifier: Apache-2.0
// Which GPU a job is to have, by how fast it and the jobs that are there would be. Pure, but for the cache.
//
// The gain of a GPU is how much more is done on it, in what a job does alone: 1 on a free one. Beside others it is the
// new job's speed less what it takes from theirs, at the low end of what is predicted for this sum: what residents do
// to each other is there before and after, so only the pairs with the new job count at their low end. Below 0, it is a
// loss.
//
// A shared place is for long: a job does not move when a whole GPU becomes free. While few jobs wait, one soon does,
// and to wait for it is better than a small gain; while many wait, those GPUs are for others, and a small gain is
// welcome.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controllers/interference/pair_speed_cache.h"

namespace grus {

// A GPU that has room for the job: the caller knows memory and shares. Features that cannot have been measured count as
// not known.
struct CandidateGpu {
  std::string name = {};
  std::vector<SharedJob> residents = {};  // In any order. One set of features for each fingerprint (SharedJob).
};

// Less than this, no job beside another has but by mistake. Half a GPU would be 0.5.
inline constexpr double kLeastSharedSpeed = 0.4;

// When no GPU is chosen although some have room.
enum class WhenToWait {
  kForGain,    // If sharing one is worth less than a whole one later; also as below.
  kIfTooSlow,  // If somebody would have less than the least speed on each.
  kNever,
};

struct SharingDemand {
  std::string gpu_type = {};               // Of all candidates.
  std::size_t gpus = 1;                    // Those of this type that such jobs may have, whole or shared, used or not.
  std::size_t waiting_jobs = 1;            // For these, the job in question included.
  double least_speed = kLeastSharedSpeed;  // Of each job on a shared GPU, at the low end.
  WhenToWait waits = WhenToWait::kForGain;
};

struct ResidentSpeed {
  SpeedShare before = {}, after = {};
};

struct GpuGain {
  std::size_t candidate = 0;  // Its place among the candidates.
  double gain = 1;
  SpeedShare job = {};                        // What the new job would have.
  std::vector<ResidentSpeed> residents = {};  // In the order of the candidate's.
  bool is_too_slow = false;                   // One of them has less than the least speed.
  bool is_without_loss = false;               // Beside others, and so little is lost that it counts as nothing.
};

struct GpuChoice {
  std::optional<GpuGain> chosen = {};    // nullopt: the job had better wait, or there is no candidate.
  std::vector<GpuGain> runners_up = {};  // The best of the others, at most kMaxRunnersUp. Of GPUs with equal residents,
                                         // in whatever order, only the first is counted. Last those that are too slow.
  double least_gain = 0;                 // What sharing had to gain, but where nobody loses.
  double least_speed = 0;                // As in the demand.
};

inline constexpr std::size_t kMaxRunnersUp = 3;
inline constexpr std::size_t kMaxExplanationBytes = 1000;

// What sharing must gain while so many jobs wait: near 1 if it is one of many GPUs' only job, little if a quarter as
// many jobs as GPUs wait, or more.
double LeastGain(const SharingDemand& demand);

// How well each candidate suits the job, in their order: greater is better, equal is equal. A free GPU has 1. It comes
// after those beside others where nobody loses; last come those that are too slow.
std::vector<double> SuitabilityOf(const SharedJob& job, std::span<const CandidateGpu> candidates,
                                  const SharingDemand& demand, PairSpeedCache& speeds);
bool IsTooSlow(double suitability);

// Free GPUs come first, but after a place beside others where nobody loses. Of equal GPUs, the first.
GpuChoice ChooseGpu(const SharedJob& job, std::span<const CandidateGpu> candidates, const SharingDemand& demand,
                    PairSpeedCache& speeds);

// A line for an annotation or an event: names are quoted, escaped and shortened, and what is beyond the most bytes is
// left out. REQUIRES: `candidates` are those of the choice.
std::string Explain(const GpuChoice& choice, std::span<const CandidateGpu> candidates);

}  // namespace grus
