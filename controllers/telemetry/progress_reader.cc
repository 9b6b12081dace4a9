// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/progress_reader.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "controllers/measure/auto_patterns.h"

namespace grus {
namespace {

constexpr std::int64_t kRecent = 50;  // Lines with counters; one that was not in them is over.
constexpr double kTolerance = 0.02;   // Of the whole.

bool IsCount(const Reading& reading) {
  return reading.measure == Measure::kStep || reading.measure == Measure::kSampleCount;
}

}  // namespace

void ProgressReader::Add(std::string_view bytes, const std::function<void(const Position&)>& each) {
  lines_.Add(bytes, [&](const LogLine& line) {
    if (ReadLogLine(line) && each) each(*Where());
  });
}

bool ProgressReader::ReadLogLine(const LogLine& line) {
  if (!line.time || (line.rank && rank_ && *line.rank > *rank_)) return false;
  const LineReadings readings = ReadLine(line.text);
  if (readings.phase != Phase::kTraining) {  // PaddlePaddle says "Eval begin...", and then prints steps.
    is_evaluating_ = readings.is_heading && readings.phase == Phase::kEvaluation;
    return false;
  }
  const auto all = readings.all();
  const bool has_epoch = std::ranges::any_of(all, [](const Reading& r) { return r.measure == Measure::kEpoch; });
  if (!has_epoch && std::ranges::none_of(all, IsCount)) return false;
  is_evaluating_ &= !has_epoch;
  if (is_evaluating_) return false;
  if (line.rank && line.rank != rank_) {  // The first rank, or a lower one than the one read so far.
    counters_.clear();
    epochs_.reset();
    bare_step_.reset();
    rank_ = line.rank;
  }
  time_ = line.time;
  ++line_;
  // The epoch first: "Epoch 2 step 1/60".
  for (const Reading& reading : all) {
    if (reading.measure == Measure::kEpoch) NoteEpoch(reading);
  }
  for (const Reading& reading : all) {
    if (IsCount(reading)) NoteCount(reading);
  }
  return true;
}

void ProgressReader::NoteEpoch(const Reading& reading) {
  const bool is_fractional = reading.resolution > 0 && reading.resolution < 0.5;  // Also "3.0".
  if (!epochs_) {
    const Counter* const counter = Main();
    epochs_ = {.first = reading.value,
               .last = reading.value,
               .total = stated_.epochs,
               .ends_them = counter && counter->is_at_end()};
  }
  epochs_->last = reading.value;
  epochs_->is_fractional |= is_fractional;
  if (reading.total > 0) {
    epochs_->total = reading.total;
    epochs_->is_printed = true;
  }
}

void ProgressReader::NoteCount(const Reading& reading) {
  if (reading.total < 2 || reading.value > reading.total) {
    if (reading.total == 0) bare_step_ = reading.value;
    return;
  }
  Counter& counter = CounterOf(reading);
  const double epoch = epochs_ ? epochs_->last : 0;
  const bool is_other_epoch = counter.line > 0 && epoch != std::exchange(counter.epoch, epoch);
  // Other processes may print the same counter a little later. Keras may print the last step of each epoch alone.
  const bool starts_over = reading.value < counter.last / 2 || (counter.is_at_end() && reading.value < counter.last) ||
                           (is_other_epoch && counter.is_at_end() && !counter.goes_on);
  if (starts_over) ++counter.passes;
  counter.goes_on |= is_other_epoch && reading.value > counter.last;
  if (starts_over || reading.value > counter.last) counter.last = reading.value;
  counter.epoch = epoch;
  counter.line = line_;
}

ProgressReader::Counter& ProgressReader::CounterOf(const Reading& reading) {
  const auto found = std::ranges::find_if(counters_, [&](const Counter& counter) {
    return counter.measure == reading.measure && counter.series == reading.series && counter.total == reading.total;
  });
  if (found != counters_.end()) return *found;
  if (counters_.size() == kMostCounters) counters_.erase(std::ranges::min_element(counters_, {}, &Counter::line));
  return counters_.emplace_back(Counter{.measure = reading.measure,
                                        .series = reading.series,
                                        .total = reading.total,
                                        .is_named = reading.trust <= Trust::kStated});
}

// The counter of the training: one that goes on, with a name, to the highest end, that was seen last.
const ProgressReader::Counter* ProgressReader::Main() const {
  const Counter* best = nullptr;
  const auto rank = [this](const Counter& counter) {
    const bool is_over = counter.is_at_end() && counter.passes == 0 && !counter.goes_on && counters_.size() > 1;
    const bool is_recent = line_ - counter.line < kRecent && !is_over;  // Over: as that of loading.
    return std::tuple(counter.goes_on, is_recent, counter.is_named, counter.total, counter.line);
  };
  for (const Counter& counter : counters_) {
    if (best == nullptr || rank(counter) > rank(*best)) best = &counter;
  }
  return best;
}

std::optional<Position> ProgressReader::Where() const {
  if (!time_) return std::nullopt;
  const Counter* const counter = Main();
  Position where;
  where.time = *time_;
  where.step = bare_step_;
  if (counter != nullptr) {
    where.step = counter->last;
    where.total_steps = counter->total;
  } else if (bare_step_) {
    where.total_steps = stated_.steps;
  }
  if (epochs_) {
    where.epoch = epochs_->last;
    where.total_epochs = epochs_->total;
  }
  where.done = Done(counter);
  return where;
}

std::optional<ShareDone> ProgressReader::Done(const Counter* counter) const {
  const bool has_end = epochs_ && epochs_->total > 0;
  if (counter == nullptr && bare_step_ && stated_.steps > 0) {
    const double share = std::min(*bare_step_ / stated_.steps, 1.0);
    return ShareDone{share, share};
  }
  const bool goes_on = counter != nullptr && counter->goes_on;
  if (has_end && !goes_on && (counter == nullptr || counter->passes > 0 || epochs_->is_fractional)) {
    return DoneByEpochs(counter);
  }
  if (counter == nullptr || (counter->passes > 0 && !goes_on)) return std::nullopt;
  const double share = counter->last / counter->total;
  const bool is_whole = epochs_ ? epochs_->is_fractional || counter->goes_on || epochs_->total == 1 : counter->is_named;
  if (is_whole) return ShareDone{share, share};
  // Further than the whole training can be in this epoch.
  if (has_end && share > DoneByEpochs(nullptr).most + kTolerance) return DoneByEpochs(counter);
  return std::nullopt;
}

// By the epoch, and the counter within it; null: there is none.
ShareDone ProgressReader::DoneByEpochs(const Counter* counter) const {
  const Epochs& epochs = *epochs_;
  // "Epoch 0/2" may be the first of two or, as Lightning counts, of three.
  const double most_epochs = epochs.total + (epochs.first == 0 && epochs.is_printed ? 1 : 0);
  const double least_epochs = epochs.last == epochs.total ? most_epochs : epochs.total;
  const auto of_all = [&](double least, double most) {
    return ShareDone{std::clamp(least / most_epochs, 0.0, 1.0), std::clamp(most / least_epochs, 0.0, 1.0)};
  };
  if (epochs.is_fractional) {
    const double share = std::min(epochs.last / epochs.total, 1.0);
    return {share, share};
  }
  // The number of the first epoch, 0 or 1; if it was not seen, either.
  const bool is_first_known = epochs.first <= 1;
  const double before = epochs.last - (is_first_known ? epochs.first : 1) + (epochs.ends_them ? 1 : 0);
  const double most_before = before + (is_first_known ? 0 : 1);
  if (counter == nullptr) return of_all(before, most_before + 1);
  const double share =
      counter->epoch == epochs.last ? counter->last / counter->total : 0;  // Not that of the one before.
  return of_all(before + share, most_before + share);
}

}  // namespace grus
