// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/progress_reader.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "clientlib/base/lower_case.h"
#include "controllers/measure/auto_patterns.h"

namespace grus {
namespace {

constexpr std::int64_t kRecent = 50;     // Lines with counters; one that was not in them is over.
constexpr double kTolerance = 0.02;      // Of the whole.
constexpr double kFewSteps = 10;         // Fewer may be a process that lags, and no new pass.
constexpr double kLongestResults = 0.4;  // Of an epoch: a validation is part of them.
constexpr double kMostCount = 1e15;      // No training counts further.

// How an epoch went.
bool IsResult(std::string_view text) {
  const auto lower = [](char c) { return kube::LowerCase(c); };
  const auto is_letter = [&](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  constexpr std::string_view kWords[] = {"loss", "accuracy", "complete", "finished", "time cost"};
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    const auto found = std::ranges::search(text, word, {}, lower);
    return !found.empty() && (found.begin() == text.begin() || !is_letter(*(found.begin() - 1)));  // "incomplete"
  });
}

bool IsCount(const Reading& reading) {
  return reading.measure == Measure::kStep || reading.measure == Measure::kSampleCount;
}

}  // namespace

void ProgressReader::Add(std::string_view bytes, const std::function<void(const Position&)>& each) {
  lines_.Add(bytes, [&](const LogLine& line) {
    if (ReadLogLine(line) && each) each(*Where());
  });
}

bool ProgressReader::ContinuesTraining(const LineReadings& readings) const {
  return std::ranges::any_of(readings.all(), [this](const Reading& reading) {
    if (!IsCount(reading)) return false;
    if (reading.total == 0) return !bare_step_ || reading.value > *bare_step_;
    const Counter* const known = Find(reading);
    return counters_.empty() || (known != nullptr && reading.value > known->last);
  });
}

bool ProgressReader::ReadLogLine(const LogLine& line) {
  if (!line.time || (line.rank && rank_ && *line.rank > *rank_)) return false;
  const LineReadings readings = ReadLine(line.text);
  if (readings.phase != Phase::kTraining) {  // PaddlePaddle says "Eval begin...", and then prints steps.
    is_evaluating_ = readings.is_heading && readings.phase == Phase::kEvaluation;
    return false;
  }
  std::vector<Reading> counts, epochs;
  for (const Reading& reading : readings.all()) {
    if (!(std::abs(reading.value) < kMostCount && reading.total < kMostCount)) continue;  // Nor what is no number.
    if (IsCount(reading)) counts.push_back(reading);
    if (reading.measure == Measure::kEpoch) epochs.push_back(reading);
  }
  if (counts.empty() && epochs.empty()) return false;
  if (!epochs.empty() || ContinuesTraining(readings)) is_evaluating_ = false;
  if (is_evaluating_) return false;
  if (line.rank && line.rank != rank_) {  // The first rank, or a lower one than the one read so far.
    counters_.clear();
    epochs_.reset();
    bare_step_.reset();
    rank_ = line.rank;
  }
  time_ = line.time;
  ++line_;
  const bool has_counter = std::ranges::any_of(counts, [](const Reading& count) { return count.total > 0; });
  const bool closes = !has_counter && IsResult(line.text);
  for (const Reading& reading : epochs) NoteEpoch(reading, closes);  // First: "Epoch 2 step 1/60".
  for (const Reading& reading : counts) NoteCount(reading);
  return true;
}

void ProgressReader::NoteEpoch(const Reading& reading, bool closes) {
  if (!epochs_ || (reading.total > 0 && !epochs_->is_printed)) {  // "start_epoch=0" says nothing beside "Epoch 1/3".
    const Counter* const counter = Main();
    epochs_ = Epochs{.first = reading.value,
                     .last = reading.value,
                     .total = stated_.epochs,
                     .full = counter && counter->is_at_end() ? counter->total : 0};
  }
  if (reading.value < epochs_->last) return;                                                // "best epoch: 7"
  if (reading.total == 0 && epochs_->is_printed && reading.value == epochs_->last) return;  // It may count from 0.
  if (reading.value > epochs_->last) epochs_->is_over = epochs_->was_begun = false;
  if (closes) NoteResult(reading.value);
  else epochs_->was_begun = true;
  epochs_->last = reading.value;
  epochs_->is_stale = false;
  epochs_->is_fractional |= reading.resolution > 0 && reading.resolution < 0.5;  // Also "3.0".
  if (reading.total > 0) {
    epochs_->total = reading.total;
    epochs_->is_printed = true;
  }
}

void ProgressReader::NoteResult(double epoch) {
  Epochs& epochs = *epochs_;
  if (!epochs.is_over) {
    const bool is_first = !epochs.first_result || epoch > epochs.result_of;
    if (is_first && epochs.first_result) {
      const auto whole = *time_ - *epochs.first_result;
      epochs.has_results_at_end = *epochs.last_result - *epochs.first_result < whole * kLongestResults;
    }
    if (is_first) epochs.first_result = *time_;
    epochs.is_over = epochs.has_results_at_end;
    epochs.result_of = epoch;
  }
  epochs.last_result = *time_;
}

void ProgressReader::NoteCount(const Reading& reading) {
  if (reading.total == 0) {
    has_bare_restarted_ |= bare_step_ && reading.value < *bare_step_ / 2;
    bare_step_ = reading.value;
    return;
  }
  if (reading.total < 2 || reading.value > reading.total) return;
  Counter& counter = CounterOf(reading);
  const bool is_new = counter.line == 0, is_of_same_line = !is_new && counter.time == *time_;
  counter.line = line_;
  counter.time = *time_;
  // A line of redraws that has not ended is read again from its beginning.
  if (is_of_same_line && reading.value <= counter.last) return;
  const double epoch = epochs_ ? epochs_->last : 0;
  const bool is_other_epoch = !is_new && epoch != counter.epoch;
  // Other processes may print the same counter a little later. Keras may print the last step of each epoch alone.
  const bool starts_over = (reading.value < counter.last / 2 && counter.last >= kFewSteps) ||
                           (counter.is_at_end() && reading.value < counter.last) ||
                           (is_other_epoch && counter.is_at_end() && !counter.goes_on);
  if (starts_over) {
    ++counter.passes;
    if (epochs_ && epochs_->full == counter.total && epochs_->first == epochs_->last) epochs_->ends_them = true;
    if (epochs_ && !is_other_epoch && !epochs_->ends_them) epochs_->is_stale = true;
  } else if (!is_new && reading.value <= counter.last) {
    return;  // The same once more, or a process that lags.
  }
  counter.goes_on |= is_other_epoch && !starts_over;
  counter.last = reading.value;
  counter.epoch = epoch;
}

const ProgressReader::Counter* ProgressReader::Find(const Reading& reading) const {
  const auto found = std::ranges::find_if(counters_, [&](const Counter& counter) {
    return counter.measure == reading.measure && counter.series == reading.series && counter.total == reading.total;
  });
  return found == counters_.end() ? nullptr : &*found;
}

ProgressReader::Counter& ProgressReader::CounterOf(const Reading& reading) {
  if (const Counter* const known = Find(reading)) return counters_[static_cast<std::size_t>(known - counters_.data())];
  if (counters_.size() == kMostCounters) counters_.erase(std::ranges::min_element(counters_, {}, &Counter::line));
  return counters_.emplace_back(Counter{.measure = reading.measure,
                                        .series = reading.series,
                                        .total = reading.total,
                                        .is_named = reading.trust <= Trust::kStated});
}

bool ProgressReader::IsRecent(const Counter& counter) const { return line_ - counter.line < kRecent; }

bool ProgressReader::IsOneOfSeveral(const Counter& counter) const {
  return !counter.is_named && !counter.goes_on && std::ranges::any_of(counters_, [&](const Counter& other) {
    return &other != &counter && !other.is_named && IsRecent(other) && !(other.is_at_end() && other.passes == 0);
  });
}

// The counter of the training: one that goes on, with a name, to the highest end, that was seen last.
const ProgressReader::Counter* ProgressReader::Main() const {
  const Counter* best = nullptr;
  const auto rank = [this](const Counter& counter) {
    // Over: as that of loading.
    const bool is_over = counter.is_at_end() && counter.passes == 0 && !counter.goes_on && counters_.size() > 1;
    return std::tuple(counter.goes_on, IsRecent(counter) && !is_over, counter.is_named, counter.total, counter.line);
  };
  for (const Counter& counter : counters_) {
    if (best == nullptr || rank(counter) > rank(*best)) best = &counter;
  }
  // A step with a name, whose end is not said, before a bar that may be anything.
  return best != nullptr && bare_step_ && !best->is_named && !best->goes_on && best->passes == 0 ? nullptr : best;
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
  } else if (bare_step_ && !has_bare_restarted_ && *bare_step_ <= stated_.steps) {
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
    if (has_bare_restarted_ || *bare_step_ > stated_.steps) return std::nullopt;
    const double share = *bare_step_ / stated_.steps;
    return ShareDone{share, share, share};
  }
  const bool goes_on = counter != nullptr && counter->goes_on;
  if (has_end && !goes_on && (counter == nullptr || counter->passes > 0 || epochs_->is_fractional)) {
    return DoneByEpochs(counter);
  }
  if (counter == nullptr || (counter->passes > 0 && !goes_on) || IsOneOfSeveral(*counter)) return std::nullopt;
  const double share = counter->last / counter->total;
  const bool is_whole = epochs_ ? epochs_->is_fractional || goes_on || epochs_->total == 1 : counter->is_named;
  if (is_whole) return ShareDone{share, share, share};
  // Further than the whole training can be in this epoch.
  const auto by_epochs = has_end ? DoneByEpochs(nullptr) : std::nullopt;
  if (by_epochs && share > by_epochs->most + kTolerance) return DoneByEpochs(counter);
  return std::nullopt;
}

// By the epoch, and the counter within it; null: there is none.
std::optional<ShareDone> ProgressReader::DoneByEpochs(const Counter* counter) const {
  const Epochs& epochs = *epochs_;
  if (epochs.is_stale || epochs.last > epochs.total) return std::nullopt;
  // "Epoch 0/2" may be the first of two or, as Lightning counts, of three.
  const double most_epochs = epochs.total + (epochs.first == 0 && epochs.is_printed ? 1 : 0);
  const double least_epochs = epochs.last == epochs.total ? most_epochs : epochs.total;
  const auto of_all = [&](double least, double most) {
    const double low = std::clamp(least / most_epochs, 0.0, 1.0), high = std::clamp(most / least_epochs, 0.0, 1.0);
    return ShareDone{low, high, (low + high) / 2};
  };
  if (epochs.is_fractional) return of_all(epochs.last, epochs.last);
  // The number of the first epoch, 0 or 1; if it was not seen, either.
  const bool is_first_known = epochs.first <= 1;
  const double before =
      epochs.last - (is_first_known ? epochs.first : 1) + (epochs.ends_them || epochs.is_over ? 1 : 0);
  const double most_before = before + (is_first_known ? 0 : 1);
  if (epochs.is_over && !epochs.ends_them) {
    const ShareDone over = of_all(before, most_before);
    if (epochs.was_begun) return over;
    return ShareDone{of_all(before - 1, most_before).least, over.most, over.likely};
  }
  if (counter == nullptr) return of_all(before, most_before + 1);
  // Not that of the epoch before.
  const double share = counter->epoch == epochs.last ? counter->last / counter->total : 0;
  return of_all(before + share, most_before + share);
}

}  // namespace grus
