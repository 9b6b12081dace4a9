// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/progress_track.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace grus {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::size_t kFewest = 4;  // Points, for a speed.
constexpr double kShortest = 20;    // Seconds that they cover.
constexpr double kNoise =
    0.12;  // Of a speed, at least: with it, recorded trainings end in their interval nine times of ten.
constexpr double kLongest = 365 * 86400;  // Seconds.
constexpr double kRounding = 1e-12;       // Of a share that was multiplied.
constexpr double kLongestStepBack = 0.1;  // Of the whole: an elastic training goes on where it was saved.

double Between(WallTime from, WallTime to) { return Seconds(to - from).count(); }

}  // namespace

std::optional<ProgressTrack::Whole> ProgressTrack::WholeOf(const Position& at) {
  const bool is_of_steps = at.step && at.total_steps > 0 && at.done->least == *at.step / at.total_steps;
  if (is_of_steps) return Whole{Unit::kSteps, at.total_steps};
  if (at.epoch && at.total_epochs > 0) return Whole{Unit::kEpochs, at.total_epochs};
  return std::nullopt;
}

void ProgressTrack::Restart() {
  points_.clear();
  seen_.reset();
  expected_.reset();
}

void ProgressTrack::StepBack(double by) {
  if (by > kLongestStepBack) return Restart();
  if (HasSpeed()) {
    seen_ = expected_ = SpeedNow();
    seen_workers_ = workers_;
  }
  points_.clear();
}

void ProgressTrack::FollowTotal(const std::optional<Whole>& whole) {
  const std::optional<Whole> before = std::exchange(whole_, whole);
  if (!before || !whole || before->unit != whole->unit || before->total == whole->total) return;
  const double factor = before->total / whole->total;
  for (Point& point : points_) point.done *= factor;
  for (std::optional<Speed>* speed : {&seen_, &expected_}) {
    if (*speed) *speed = (*speed)->Times({factor, factor, factor});
  }
}

void ProgressTrack::Add(const Position& at) {
  if (!at.done) return;
  FollowTotal(WholeOf(at));
  epochs_ = at.total_epochs;
  const double middle = at.done->likely;
  if (!points_.empty() && at.time < points_.back().time) Restart();
  if (!points_.empty() && middle < points_.back().done - kRounding) StepBack(points_.back().done - middle);
  last_ = *at.done;
  if (at.time < resized_) {
    points_ = {{at.time, middle}};
    return;
  }
  if (!points_.empty() && middle <= points_.back().done + kRounding) return;
  if (!points_.empty() && at.time == points_.back().time) {  // A bar that was redrawn.
    points_.back().done = middle;
    return;
  }
  if (points_.size() == kMostPoints) {  // Every other one; the first and the last stay.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points_.size(); i += 2) points_[kept++] = points_[i];
    points_.resize(kept);
  }
  points_.push_back({at.time, middle});
}

bool ProgressTrack::Resize(std::int32_t workers, WallTime now, const RatioOf& ratio_of) {
  if (workers <= 0 || workers == workers_) return false;
  const std::int32_t before = std::exchange(workers_, workers);
  if (before == 0) return false;
  resized_ = now;
  if (HasSpeed()) {
    seen_ = SpeedNow();
    seen_workers_ = before;
  }
  if (seen_) expected_ = seen_->Times(workers == seen_workers_ ? SpeedRatio() : ratio_of(seen_workers_, workers));
  if (!points_.empty()) points_ = {points_.back()};
  return true;
}

bool ProgressTrack::HasSpeed() const {
  return points_.size() >= kFewest && Between(points_.front().time, points_.back().time) >= kShortest;
}

double ProgressTrack::SlopeOver(double part) const {
  const Point& last = points_.back();
  const double span = Between(points_.front().time, last.time) * part;
  const auto from = std::ranges::find_if(points_, [&](const Point& p) { return Between(p.time, last.time) <= span; });
  // The point before it, if that leaves less than two.
  const Point& first = from == points_.end() || &*from == &last ? *(&last - 1) : *from;
  return (last.done - first.done) / Between(first.time, last.time);
}

// Over whole epochs, about the latter half of those that were seen: each has one evaluation. If not one was, over the
// latter half of what was.
double ProgressTrack::SlopeOverEpochs() const {
  const Point& last = points_.back();
  const double seen = (last.done - points_.front().done) * epochs_;
  if (seen < 1) return SlopeOver(0.5);
  const double from = last.done - std::max(1.0, std::floor(seen / 2 + 0.5)) / epochs_;
  const auto after = std::ranges::find_if(points_, [from](const Point& point) { return point.done >= from; });
  double before = 0;  // Seconds from `from` to that point.
  if (after != points_.begin()) {
    const Point& earlier = *(after - 1);
    before = Between(earlier.time, after->time) * (after->done - from) / (after->done - earlier.done);
  }
  return (last.done - std::max(from, points_.front().done)) / (Between(after->time, last.time) + before);
}

std::optional<ProgressTrack::Speed> ProgressTrack::SpeedNow() const {
  if (!HasSpeed()) return expected_;
  const double usual = SlopeOverEpochs();
  const auto [least, most] = std::minmax({usual, SlopeOver(1), SlopeOver(0.5), SlopeOver(0.25)});
  return Speed{usual, least * (1 - kNoise), most * (1 + kNoise)};
}

std::optional<Eta> ProgressTrack::Ends() const {
  const std::optional<Speed> speed = SpeedNow();
  if (!speed || speed->least <= 0) return std::nullopt;
  const double slowest = (1 - last_.least) / speed->least;
  if (!(slowest <= kLongest)) return std::nullopt;
  const WallTime from = points_.back().time;
  const auto after = [from](double seconds) {
    return from + std::chrono::duration_cast<WallTime::duration>(Seconds(std::max(seconds, 0.0)));
  };
  const double usual = (1 - last_.likely) / speed->usual;
  return Eta{after(usual), after((1 - last_.most) / speed->most), after(slowest)};
}

}  // namespace grus
