// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/progress_track.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace grus {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::size_t kFewest = 4;  // Points, for a speed.
constexpr double kShortest = 20;    // Seconds that they cover.
constexpr double kNoise =
    0.12;  // Of a speed, at least: with it, recorded trainings end in their interval nine times of ten.
constexpr double kLongest = 365 * 86400;  // Seconds.

double Between(WallTime from, WallTime to) { return Seconds(to - from).count(); }

}  // namespace

void ProgressTrack::Add(WallTime time, const ShareDone& done) {
  const double middle = (done.least + done.most) / 2;
  if (!points_.empty() && (middle < points_.back().done || time < points_.back().time)) {
    points_.clear();
    before_.reset();
  }
  last_ = done;
  if (!points_.empty() && middle == points_.back().done) return;
  if (!points_.empty() && time == points_.back().time) {  // A bar that was redrawn.
    points_.back().done = middle;
    return;
  }
  if (points_.size() == kMostPoints) {  // Every other one; the first and the last stay.
    std::size_t kept = 0;
    for (std::size_t at = 0; at < points_.size(); at += 2) points_[kept++] = points_[at];
    points_.resize(kept);
  }
  points_.push_back({time, middle});
}

void ProgressTrack::Resize(double least, double most) {
  if (std::optional<Speed> speed = SpeedNow()) {
    before_ = Speed{speed->usual * std::sqrt(least * most), speed->least * least, speed->most * most};
  }
  if (!points_.empty()) points_ = {points_.back()};
}

double ProgressTrack::SlopeOver(double part) const {
  const Point& last = points_.back();
  const double span = Between(points_.front().time, last.time) * part;
  const auto from = std::ranges::find_if(points_, [&](const Point& p) { return Between(p.time, last.time) <= span; });
  // The point before it, if that leaves less than two.
  const Point& first = from == points_.end() || &*from == &last ? *(&last - 1) : *from;
  return (last.done - first.done) / Between(first.time, last.time);
}

std::optional<ProgressTrack::Speed> ProgressTrack::SpeedNow() const {
  if (points_.size() < kFewest || Between(points_.front().time, points_.back().time) < kShortest) return before_;
  const double whole = SlopeOver(1), half = SlopeOver(0.5), quarter = SlopeOver(0.25);
  const auto [least, most] = std::minmax({whole, half, quarter});
  return Speed{half, least * (1 - kNoise), most * (1 + kNoise)};
}

std::optional<Eta> ProgressTrack::Ends() const {
  const std::optional<Speed> speed = SpeedNow();
  if (!speed || speed->least <= 0) return std::nullopt;
  const double slowest = (1 - last_.least) / speed->least;
  if (slowest > kLongest) return std::nullopt;
  const WallTime from = points_.back().time;
  const auto after = [from](double seconds) {
    return from + std::chrono::duration_cast<WallTime::duration>(Seconds(std::max(seconds, 0.0)));
  };
  const double usual = (1 - (last_.least + last_.most) / 2) / speed->usual;
  return Eta{after(usual), after((1 - last_.most) / speed->most), after(slowest)};
}

}  // namespace grus
