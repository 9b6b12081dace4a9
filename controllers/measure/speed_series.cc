// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/speed_series.h"

#include <algorithm>
#include <cmath>

namespace grus {
namespace {

// A twentieth of an epoch between the points of a running average: a smaller difference is mostly rounding.
constexpr double kAverageParts = 20;

constexpr int kMostOutOfOrder = 32;  // Lines in a row.

bool IsSpeed(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

bool IsCounter(Measure measure) {
  return measure == Measure::kStep || measure == Measure::kSampleCount || measure == Measure::kEpoch;
}

bool SpeedSeries::AddSpeed(const Reading& reading, const Reading* counter) {
  const bool is_time = reading.measure == Measure::kStepSeconds;
  const double seconds = is_time ? reading.value : 1 / reading.value;
  if (!IsSpeed(reading.value) || !IsSpeed(seconds)) return false;
  ++readings_;
  has_unit_ = has_unit_ && reading.has_unit;
  resolutions_ += is_time ? reading.resolution : reading.resolution * seconds * seconds;
  const double count = counter ? counter->value : 0;
  if (reading.averaged_over > 0) {
    AddAverage(reading, count);
    return true;
  }
  const double steps = count > last_count_ && readings_ > 1 ? count - last_count_ : 1;
  if (counter) NoteCount(count);
  AddSample({.seconds = seconds * steps, .steps = steps});
  return true;
}

// Averages over n and over m steps give the mean of the steps between. Over many samples the rounding errors cancel
// out, since each sample begins where the one before ended.
void SpeedSeries::AddAverage(const Reading& reading, double count) {
  const bool is_repeated = count == last_count_ && readings_of_run_ > 1;
  NoteCount(count);
  if (is_repeated) return;
  if (readings_of_run_ == 1) averaged_seconds_ = averaged_steps_ = 0;
  const double steps = reading.averaged_over - averaged_steps_;
  const double seconds = reading.value * reading.averaged_over - averaged_seconds_;
  if (steps < std::max(1.0, key_.total / kAverageParts) || seconds <= 0) return;
  AddSample({.seconds = seconds, .steps = steps});
  averaged_steps_ += steps;
  averaged_seconds_ += seconds;
}

void SpeedSeries::NoteCount(double count) {
  if (count < last_count_ || (count == last_count_ && readings_of_run_ == 1)) {
    ++restarts_;
    readings_of_run_ = 0;
  }
  ++readings_of_run_;
  last_count_ = count;
}

bool SpeedSeries::AddCount(double count, WallTime time, std::int64_t gaps, SpeedSeries* mixed) {
  if (!std::isfinite(count) || count < 0) return false;
  ++readings_;
  // Lines of ranks that print no prefix are slightly out of order. A new run begins near zero, or stays behind for
  // long.
  const bool is_behind = anchor_ && count < anchor_->count;
  behind_ = is_behind ? behind_ + 1 : 0;
  const bool is_new_run = is_behind && (count <= anchor_->count / 2 || behind_ > kMostOutOfOrder);
  if (is_behind && !is_new_run) return true;
  const bool is_back = is_new_run || (anchor_ && time < anchor_->time);
  if (is_new_run) ++restarts_;
  behind_ = 0;
  last_count_ = count;
  if (!anchor_ || is_back) {
    anchor_ = Anchor{count, time, gaps};
    return true;
  }
  const kube::Duration took = time - anchor_->time;
  if (took < kShortest || count <= anchor_->count) return true;
  const SpeedSample sample{.seconds = std::chrono::duration<double>(took).count(), .steps = count - anchor_->count};
  if (gaps == anchor_->gaps) {
    AddSample(sample);
  } else if (mixed) {
    mixed->AddSample(sample);
  }
  anchor_ = Anchor{count, time, gaps};
  return true;
}

void SpeedSeries::AddSample(SpeedSample sample) {
  seconds_ += sample.seconds;
  part_.seconds += sample.seconds;
  part_.steps += sample.steps;
  if (++in_part_ < group_) return;
  samples_.push_back(part_);
  part_ = {};
  in_part_ = 0;
  if (samples_.size() < kMostSamples) return;
  for (std::size_t i = 0; i < samples_.size() / 2; ++i) {
    samples_[i] = {samples_[2 * i].seconds + samples_[2 * i + 1].seconds,
                   samples_[2 * i].steps + samples_[2 * i + 1].steps};
  }
  samples_.resize(samples_.size() / 2);
  group_ *= 2;
}

double SpeedSeries::resolution_seconds() const {
  return readings_ == 0 ? 0 : resolutions_ / static_cast<double>(readings_);
}

}  // namespace grus
