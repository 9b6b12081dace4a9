// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/replay/replay_sides.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include "bench/interference/left_out.h"
#include "bench/interference/replay/sharing_policies.h"
#include "controllers/interference/gpu_choice.h"

namespace grus {
namespace {

constexpr std::array kFigures = {&SideGain::work_a_busy_second, &SideGain::work_a_gpu_second, &SideGain::mean_jct,
                                 &SideGain::makespan};
constexpr std::array kMoreIsBetter = {true, true, false, false};

PairSpeedCache::Model MustFit(std::vector<CoRunSample> samples) {
  auto model = InterferenceModel::Fit(std::move(samples));
  if (!model) throw std::runtime_error(model.error().message());
  return std::make_shared<const InterferenceModel>(*std::move(model));
}

double ShareAboveLowEnd(const ReplayWorld& world, const std::vector<CoRunSample>& asked, PairSpeedCache& cache) {
  double pairs = 0, above = 0;
  for (const CoRunSample& sample : asked) {
    if (sample.job.fingerprint > sample.partner.fingerprint) continue;  // Once in each order.
    const CandidateGpu beside{"", {sample.partner}};
    const GpuChoice choice = ChooseGpu(sample.job, std::span(&beside, 1), {world.gpu_type, 1, 1}, cache);
    const double low_end = choice.chosen ? choice.chosen->gain : choice.runners_up.at(0).gain;
    const auto& kinds = world.speeds.kinds();
    const auto a = static_cast<std::size_t>(std::ranges::find(kinds, sample.job.fingerprint) - kinds.begin());
    const auto b = static_cast<std::size_t>(std::ranges::find(kinds, sample.partner.fingerprint) - kinds.begin());
    above += world.speeds.of(a, b) + world.speeds.of(b, a) - 1 >= low_end ? 1 : 0;
    ++pairs;
  }
  return above / pairs;
}

std::vector<double> DrawnMemory(std::size_t kinds, std::uint32_t seed) {
  std::seed_seq own_stream = {seed, 2u};  // Jobs are drawn by {seed, 1}, the fifth by the seed alone.
  std::mt19937 random(own_stream);
  std::vector<double> memory;
  for (std::size_t i = 0; i < kinds; ++i) memory.push_back(1 + static_cast<double>(random()));
  return memory;
}

std::unique_ptr<SharingPolicy> MakePolicy(Side side, const ReplayWorld& world, const ReplayDraw& draw) {
  const std::vector<std::string>& kinds = world.speeds.kinds();
  switch (side) {
    case Side::kExclusive: return std::make_unique<ExclusivePolicy>();
    case Side::kBestFit: return std::make_unique<MemoryBestFit>(world.speeds, AssumedMemory(kinds), false);
    case Side::kBestFitOtherSizes:
      return std::make_unique<MemoryBestFit>(world.speeds, DrawnMemory(kinds.size(), draw.seed), false);
    case Side::kBestFitFreeFirst: return std::make_unique<MemoryBestFit>(world.speeds, AssumedMemory(kinds), true);
    case Side::kGrus: return std::make_unique<GrusSharing>(world.speeds, world.gpu_type, draw.fifth_known);
    case Side::kGrusAllKnown:
      return std::make_unique<GrusSharing>(world.speeds, world.gpu_type, world.all_known_speeds);
  }
  throw std::logic_error("a side without a policy");
}

}  // namespace

ReplayWorld MakeWorld(const std::vector<CoRunSample>& samples, const std::string& gpu_type,
                      const std::vector<std::string>& kinds) {
  const PairSpeedCache::Model all_known = MustFit(samples);
  return {gpu_type, samples, MeasuredSpeeds(kinds, samples), all_known, std::make_shared<PairSpeedCache>(all_known)};
}

ReplayDraw Draw(const ReplayWorld& world, std::uint32_t seed) {
  const SeenAndAsked drawn = DrawAFifth(world.samples, world.gpu_type, false, seed);
  const auto cache = std::make_shared<PairSpeedCache>(MustFit(drawn.seen));
  return {seed, cache, ShareAboveLowEnd(world, drawn.asked, *cache)};
}

std::map<Side, SharingFigures> ReplaySides(const ReplayWorld& world, const ReplayDraw& draw, std::size_t count,
                                           double load, WorkLengths lengths) {
  const std::size_t kinds = world.speeds.kinds().size();
  const std::vector<ArrivingJob> jobs = DrawJobs(count, kinds, kReplayGpus, load, lengths, draw.seed);
  std::map<Side, SharingFigures> figures;
  for (const Side side : kSides) {
    figures[side] = Replay(jobs, kReplayGpus, world.speeds, *MakePolicy(side, world, draw));
  }
  return figures;
}

SideGain GainOver(const SharingFigures& side, const SharingFigures& other) {
  const auto percent = [](double a, double b) { return 100 * (a / b - 1); };
  return {percent(side.work_a_busy_second, other.work_a_busy_second),
          percent(side.work_a_gpu_second, other.work_a_gpu_second), percent(side.mean_jct, other.mean_jct),
          percent(side.makespan, other.makespan)};
}

SideGain MedianOf(const std::vector<SideGain>& gains) {
  SideGain median;
  for (const auto figure : kFigures) {
    std::vector<double> values;
    for (const SideGain& gain : gains) values.push_back(gain.*figure);
    std::ranges::sort(values);
    median.*figure = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  }
  return median;
}

SideGain WorstOf(const std::vector<SideGain>& gains) {
  SideGain worst = gains.at(0);
  for (const SideGain& gain : gains) {
    for (std::size_t f = 0; f < kFigures.size(); ++f) {
      const auto figure = kFigures[f];
      worst.*figure = kMoreIsBetter[f] ? std::min(worst.*figure, gain.*figure) : std::max(worst.*figure, gain.*figure);
    }
  }
  return worst;
}

}  // namespace grus
