// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/lending.h"

#include <algorithm>
#include <cmath>

#include "nodeagent/cuda/share_files.h"

namespace grus {
namespace {

constexpr std::uint64_t kSlot = std::uint64_t{1} << cuda::kBusySlotShift;
// Marks are looked at late: the newest slots are not complete yet, and those of long launches are so after several
// looks.
constexpr std::uint64_t kNotYet = 30'000'000, kWindow = 300'000'000, kLongestLook = 300'000'000;
// A container that used less, and did not wait, is idle.
constexpr double kIdleBelow = 0.005;
// One that did not wait may want more by the next look: half as much again, and a little to begin with.
constexpr double kGrowth = 1.5, kSpare = 30;
// How fast the part that it worked is followed.
constexpr double kFollow = 0.8, kLeastWorked = 0.02;
// So near to all of the wall time, a rate holds a container up for nothing but errors.
constexpr double kAsGoodAsAll = 950;

double BusyInSlot(const TimeUse& use, std::uint64_t number) {
  if (use.busy.size() != cuda::kBusySlots) return 0;
  const std::uint32_t slot = use.busy[number % cuda::kBusySlots];
  const auto round = static_cast<std::uint32_t>(number / cuda::kBusySlots) << cuda::kBusyBits;
  const std::uint32_t mask = (std::uint32_t{1} << cuda::kBusyBits) - 1;
  return (slot & ~mask) == round ? static_cast<double>(std::min<std::uint64_t>(slot & mask, kSlot)) : 0;
}

struct Wall {
  double busy = 0;    // The part of the wall time in which the container was busy.
  double worked = 0;  // Of that, the part in which the GPU can have worked for it; 0: it was not busy.
};

// In [from, to): a slot that is more than full was shared. `is_long`: it runs a long launch, which has no mark yet.
std::vector<Wall> Walls(std::uint64_t from, std::uint64_t to, std::span<const TimeUse> uses,
                        const std::vector<bool>& is_long) {
  std::vector<double> slot(uses.size());
  std::vector<Wall> walls(uses.size());
  for (std::uint64_t number = from / kSlot; number < to / kSlot; ++number) {
    double sum = 0;
    for (std::size_t i = 0; i < uses.size(); ++i)
      sum += slot[i] = is_long[i] ? static_cast<double>(kSlot) : BusyInSlot(uses[i], number);
    const double part = std::min(1.0, static_cast<double>(kSlot) / std::max(sum, 1.0));
    for (std::size_t i = 0; i < uses.size(); ++i) {
      walls[i].busy += slot[i];
      walls[i].worked += slot[i] * part;
    }
  }
  for (Wall& wall : walls) {
    if (wall.busy > 0) wall.worked /= wall.busy;
    wall.busy /= static_cast<double>(std::max(to - from, kSlot));
  }
  return walls;
}

// A sum that ran back (an estimate was corrected, or a lie) has not grown.
std::uint64_t Growth(std::uint64_t before, std::uint64_t after) { return after > before ? after - before : 0; }

}  // namespace

std::vector<double> ShareOut(double total, std::span<const double> weights, std::span<const double> wants) {
  std::vector<double> gets(weights.size());
  std::vector<bool> is_content(weights.size());
  while (true) {
    double sum = 0, left = total;
    for (std::size_t i = 0; i < weights.size(); ++i)
      (is_content[i] ? left : sum) += is_content[i] ? -gets[i] : weights[i];
    if (sum <= 0 || left <= 0) return gets;
    bool all_want_more = true;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (is_content[i] || wants[i] > left * weights[i] / sum) continue;
      gets[i] = wants[i];
      is_content[i] = true;
      all_want_more = false;
    }
    if (!all_want_more) continue;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!is_content[i]) gets[i] = left * weights[i] / sum;
    }
    return gets;
  }
}

std::vector<std::uint32_t> Lending::Rates(std::uint64_t now, std::span<const TimeUse> uses) {
  const std::uint64_t elapsed = std::clamp<std::uint64_t>(Growth(looked_, now), 1, kLongestLook);
  looked_ = now;
  const std::uint64_t to = now > kNotYet ? now - kNotYet : 0, from = to > kWindow ? to - kWindow : 0;
  std::vector<bool> is_long;
  for (const TimeUse& use : uses)
    is_long.push_back(seen_.contains(use.container) && seen_[use.container].owed > elapsed);
  const std::vector<Wall> walls = Walls(from, to, uses, is_long);
  double all_busy = 0;
  for (const Wall& wall : walls) all_busy += wall.busy;

  std::map<std::string, Seen> seen;
  std::vector<double> weights, wants;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const TimeUse& use = uses[i];
    Seen mine = seen_[use.container];
    const std::uint64_t waited = mine.is_new ? 0 : Growth(mine.waited, use.waited);
    mine.owed += mine.is_new ? 0 : std::min(Growth(mine.charged, use.charged), 10 * kLongestLook);
    const std::uint64_t used = std::min(mine.owed, elapsed);
    mine.owed = std::min(mine.owed - used, 10 * kLongestLook);
    const double part = static_cast<double>(used) / static_cast<double>(elapsed);
    const bool is_idle = waited == 0 && part < kIdleBelow;
    if (walls[i].busy > 0) {
      mine.worked += (mine.was_idle ? 1 : kFollow) * (std::max(walls[i].worked, kLeastWorked) - mine.worked);
      mine.was_idle = false;
    } else if (is_idle) {
      mine.worked = 1 / (1 + all_busy);  // It will work beside those that are busy now.
      mine.was_idle = true;
    }
    const double milli = std::min(use.milli, cuda::kWholeGpu);
    weights.push_back(std::max(milli, 1.0));
    if (waited > 0) {
      wants.push_back(cuda::kWholeGpu);
    } else if (is_idle) {
      wants.push_back(0);
    } else {
      wants.push_back(std::min<double>(cuda::kWholeGpu, part * mine.worked * cuda::kWholeGpu * kGrowth + kSpare));
    }
    mine.charged = use.charged;
    mine.waited = use.waited;
    mine.is_new = false;
    seen[use.container] = mine;
  }
  seen_ = std::move(seen);

  const std::vector<double> gets = ShareOut(cuda::kWholeGpu, weights, wants);
  // What nobody wants is open to all who are busy: a program that starts to want more need not wait for the next look.
  std::vector<std::uint32_t> rates;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const double least = std::clamp<double>(uses[i].milli, 1, cuda::kWholeGpu);
    double rate = std::max(least, gets[i]) / seen_[uses[i].container].worked;
    if (rate > kAsGoodAsAll) rate = cuda::kWholeGpu;
    rates.push_back(static_cast<std::uint32_t>(std::clamp<double>(std::round(rate), 1, cuda::kWholeGpu)));
  }
  return rates;
}

}  // namespace grus
