// SPDX-License-Identifier: Apache-2.0
// What launches cost: GPU time by key, learned from those that were measured. A key is a function with its grid, or a
// graph. 4,096 keys, each in one of four places; a new key takes the place of the one among them that is known least.
//
// Safe for threads, without a lock: a reader may see the cost of a key that was just replaced; that mistake is charged
// back when the launch is measured. Takes no memory and no time of its own. Zeroes are a valid empty table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace grus::cuda {

// The key of a function with its grid and block (each mostly has one cost), or of a graph (leave them 0).
struct LaunchShape {
  std::uint32_t grid[3] = {}, block[3] = {};
};
std::uint64_t LaunchKey(const void* handle, const LaunchShape& shape);

struct LaunchCost {
  std::uint64_t ns = 0;          // 0: unknown.
  std::uint32_t learned = 0;     // How often it was measured since it last surprised; at most kMostLearned.
  std::uint32_t unmeasured = 0;  // While below kMostLearned: launches since one was measured last,
  std::uint64_t since = 0;       // the first of which was at this time.
};

class LaunchCosts {
 public:
  static constexpr std::uint32_t kMostLearned = 10;

  LaunchCost Find(std::uint64_t key) const;
  // A launch of a key that was measured fewer than kMostLearned times, at `now` (not 0).
  void Count(std::uint64_t key, std::uint64_t now);
  // What has not been measured by `now` may never be.
  void Restart(std::uint64_t key);
  // A launch took `ns`. A first one is believed; later ones count a quarter. One that took a multiple of what was known
  // is a surprise: the key is little known again.
  void Learn(std::uint64_t key, std::uint64_t ns);
  // The graph has gone: another may get its handle.
  void Forget(std::uint64_t key);

 private:
  static constexpr std::size_t kPlaces = 4, kRows = 1024;
  struct alignas(32) Place {
    std::atomic<std::uint64_t> key, cost, since;
    std::atomic<std::uint32_t> learned, unmeasured;
  };
  const Place* At(std::uint64_t key) const;
  Place& Take(std::uint64_t key);

  Place places_[kRows][kPlaces] = {};
};

}  // namespace grus::cuda
