// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/launch_costs.h"

#include <algorithm>
#include <bit>

namespace grus::cuda {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
// What a launch may take longer than known, for no surprise: four times, or so long.
constexpr std::uint64_t kSurprise = 100'000;

std::uint64_t Mixed(std::uint64_t value) {
  value *= 0x9E3779B97F4A7C15;
  return value ^ std::rotr(value, 32);
}

}  // namespace

std::uint64_t LaunchKey(const void* handle, const LaunchShape& shape) {
  std::uint64_t key = Mixed(reinterpret_cast<std::uintptr_t>(handle));
  key = Mixed(key ^ (std::uint64_t{shape.grid[1]} << 32 | shape.grid[0]));
  key = Mixed(key ^ (std::uint64_t{shape.block[0]} << 32 | shape.grid[2]));
  key = Mixed(key ^ (std::uint64_t{shape.block[2]} << 32 | shape.block[1]));
  return key == 0 ? 1 : key;
}

const LaunchCosts::Place* LaunchCosts::At(std::uint64_t key) const {
  for (const Place& place : places_[key % kRows]) {
    if (place.key.load(kRelaxed) == key) return &place;
  }
  return nullptr;
}

LaunchCost LaunchCosts::Find(std::uint64_t key) const {
  const Place* place = At(key);
  if (place == nullptr) return {};
  return {.ns = place->cost.load(kRelaxed),
          .learned = place->learned.load(kRelaxed),
          .unmeasured = place->unmeasured.load(kRelaxed),
          .since = place->since.load(kRelaxed)};
}

LaunchCosts::Place& LaunchCosts::Take(std::uint64_t key) {
  if (const Place* place = At(key)) return const_cast<Place&>(*place);
  Place* least = nullptr;
  for (Place& place : places_[key % kRows]) {
    if (least == nullptr || place.key.load(kRelaxed) == 0 ||
        (least->key.load(kRelaxed) != 0 && place.learned.load(kRelaxed) < least->learned.load(kRelaxed))) {
      least = &place;
    }
  }
  least->cost.store(0, kRelaxed);
  least->since.store(0, kRelaxed);
  least->learned.store(0, kRelaxed);
  least->unmeasured.store(0, kRelaxed);
  least->key.store(key, kRelaxed);
  return *least;
}

void LaunchCosts::Count(std::uint64_t key, std::uint64_t now) {
  Place& place = Take(key);
  if (place.unmeasured.load(kRelaxed) == 0) place.since.store(now, kRelaxed);
  place.unmeasured.fetch_add(1, kRelaxed);
}

void LaunchCosts::Restart(std::uint64_t key) { Take(key).unmeasured.store(0, kRelaxed); }

void LaunchCosts::Learn(std::uint64_t key, std::uint64_t ns) {
  Place& place = Take(key);
  const std::uint64_t known = place.cost.load(kRelaxed);
  const std::uint64_t cost = known == 0 ? ns : known - known / 4 + ns / 4;
  place.cost.store(cost == 0 ? 1 : cost, kRelaxed);
  const bool surprises = known != 0 && ns > 4 * known + kSurprise;
  const std::uint32_t learned = place.learned.load(kRelaxed);
  place.learned.store(surprises ? 1 : std::min(learned + 1, kMostLearned), kRelaxed);
  place.unmeasured.store(0, kRelaxed);
}

void LaunchCosts::Forget(std::uint64_t key) {
  if (const Place* place = At(key)) const_cast<Place*>(place)->key.store(0, kRelaxed);
}

}  // namespace grus::cuda
