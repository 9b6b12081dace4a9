// SPDX-License-Identifier: Apache-2.0
// The replay of Gavel's pairs: the same jobs under each policy, and what one policy gains over another.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/interference/replay/sharing_replay.h"
#include "controllers/interference/pair_speed_cache.h"

namespace grus {

inline constexpr std::size_t kReplayGpus = 32;

enum class Side {
  kExclusive,
  kBestFit,
  kBestFitOtherSizes,  // Sizes of memory are drawn, anew for each seed.
  kBestFitFreeFirst,   // Takes a free GPU before it shares one, as gpushare does not.
  kGrus,               // Knows a fifth of the pairs.
  kGrusAllKnown,       // What a perfect prediction would come near to.
};
inline constexpr std::array kSides = {Side::kExclusive,        Side::kBestFit, Side::kBestFitOtherSizes,
                                      Side::kBestFitFreeFirst, Side::kGrus,    Side::kGrusAllKnown};

// What was measured on one GPU type.
struct ReplayWorld {
  std::string gpu_type = {};
  std::vector<CoRunSample> samples = {};
  MeasuredSpeeds speeds;
  PairSpeedCache::Model all_known = {};
  std::shared_ptr<PairSpeedCache> all_known_speeds = {};  // Of this model.
};

// `kinds` as in MeasuredSpeeds.
ReplayWorld MakeWorld(const std::vector<CoRunSample>& samples, const std::string& gpu_type,
                      const std::vector<std::string>& kinds);

// The seed draws the fifth of the pairs, the jobs, and the sizes of kBestFitOtherSizes; each by a stream of its own.
struct ReplayDraw {
  std::uint32_t seed = 1;
  std::shared_ptr<PairSpeedCache> fifth_known = {};
  double above_low_end = 0;  // Of the pairs not drawn, the share that gains at least what ChooseGpu takes it to gain.
};
ReplayDraw Draw(const ReplayWorld& world, std::uint32_t seed);

std::map<Side, SharingFigures> ReplaySides(const ReplayWorld& world, const ReplayDraw& draw, std::size_t count,
                                           double load, WorkLengths lengths);

// How much more `side` has than `other`, in percent.
struct SideGain {
  double work_a_busy_second = 0, work_a_gpu_second = 0, mean_jct = 0, makespan = 0;
};
SideGain GainOver(const SharingFigures& side, const SharingFigures& other);
SideGain MedianOf(const std::vector<SideGain>& gains);
SideGain WorstOf(const std::vector<SideGain>& gains);  // Of each figure.

}  // namespace grus
