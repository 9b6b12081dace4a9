// SPDX-License-Identifier: Apache-2.0
// When a training is done, by how far it was and when.
//
// The speed is that of the latter half of what was seen since the size changed last, in whole epochs where they are
// known, so that each has its evaluation. Its interval is as wide as the speeds of the whole, the half and the quarter
// differ: evaluations, slow starts and noisy neighbours show in them.
// Right after a change of size there is no such speed; then the last one that was seen stands, times the ratio of the
// speeds at the two sizes.
//
// A share is of steps or of epochs. If their total changes and the count goes on, the shares before are of the new
// total, too; if the count falls, it is another training.
//
// No I/O, clock or thread. Bounded: kMostPoints. A value; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "clientlib/base/clock.h"
#include "controllers/telemetry/progress_reader.h"
#include "controllers/telemetry/speed_ratio.h"

namespace grus {

struct Eta {
  WallTime expected{}, earliest{}, latest{};  // The interval holds for seven of eight.
};

class ProgressTrack {
 public:
  static constexpr std::size_t kMostPoints = 64;

  // What is behind the one before, in share or in time, begins a new track. No effect without a share.
  void Add(const Position& at);

  using RatioOf = std::function<SpeedRatio(std::int32_t from, std::int32_t to)>;
  // The job has `workers` from now on. `ratio_of` is asked about the size at which a speed was seen last, and this one.
  // No effect for 0: it stands still. What was printed before `now` is of the size before. Returns whether it is
  // another size than before.
  bool Resize(std::int32_t workers, WallTime now, const RatioOf& ratio_of);

  // None: too little was seen, or it would take more than a year.
  std::optional<Eta> Ends() const;

 private:
  struct Point {
    WallTime time{};
    double done = 0;
  };
  struct Speed {  // Of the whole, each second.
    double usual = 0, least = 0, most = 0;
    Speed Times(const SpeedRatio& ratio) const { return {usual * ratio.usual, least * ratio.least, most * ratio.most}; }
  };
  enum class Unit { kSteps, kEpochs };
  struct Whole {  // What the share is a share of.
    Unit unit = Unit::kSteps;
    double total = 0;
  };
  static std::optional<Whole> WholeOf(const Position& at);
  void FollowTotal(const std::optional<Whole>& whole);
  void Restart();
  void StepBack(double by);
  bool HasSpeed() const;  // Of this size.
  std::optional<Speed> SpeedNow() const;
  double SlopeOver(double part) const;
  double SlopeOverEpochs() const;

  std::vector<Point> points_;
  ShareDone last_;
  std::optional<Whole> whole_;
  double epochs_ = 0;  // In all; 0: not known.
  WallTime resized_ = WallTime::min();
  std::int32_t workers_ = 0, seen_workers_ = 0;
  std::optional<Speed> seen_, expected_;  // With seen_workers_; with workers_, by the ratio.
};

}  // namespace grus
