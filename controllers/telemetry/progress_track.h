// SPDX-License-Identifier: Apache-2.0
// When a training is done, by how far it was and when.
//
// The speed is that of the latter half of what was seen since the size changed last. Its interval is as wide as the
// speeds of the whole, the half and the quarter differ: evaluations, slow starts and noisy neighbours show in them.
// Right after a change of size there is no such speed; then the one before stands, times the ratio of the two.
//
// No I/O, clock or thread. Bounded: kMostPoints. A value; not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "clientlib/base/clock.h"
#include "controllers/telemetry/progress_reader.h"

namespace grus {

struct Eta {
  WallTime expected{}, earliest{}, latest{};  // The interval holds for seven of eight.
};

class ProgressTrack {
 public:
  static constexpr std::size_t kMostPoints = 64;

  // What is behind the one before, in share or in time, begins a new track.
  void Add(WallTime time, const ShareDone& done);
  // The job has another size from now on, and is between `least` and `most` times as fast.
  void Resize(double least, double most);

  // None: too little was seen, or it would take more than a year.
  std::optional<Eta> Ends() const;

 private:
  struct Point {
    WallTime time{};
    double done = 0;
  };
  struct Speed {  // Of the whole, each second.
    double usual = 0, least = 0, most = 0;
  };
  std::optional<Speed> SpeedNow() const;
  double SlopeOver(double part) const;

  std::vector<Point> points_;
  ShareDone last_;
  std::optional<Speed> before_;  // The size changed, times the ratio.
};

}  // namespace grus
