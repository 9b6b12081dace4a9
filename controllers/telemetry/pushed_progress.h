// SPDX-License-Identifier: Apache-2.0
// How far a training is, as it says itself by the annotations of pushed_texts.h.
//
// Steps and epochs are those that are done, of the whole training. Its share is that of its steps; without an end of
// the steps, that of its epochs. Ends may be stated elsewhere, as for a log. A total that changes is the new total.
//
// A push is a change of these texts, and the time at which it is seen is that of the step. What cannot be true is
// refused as a whole, and what was pushed before stays. No I/O, clock or thread. A value; not thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "clientlib/base/error.h"
#include "controllers/policy/pushed_texts.h"
#include "controllers/telemetry/progress_track.h"
#include "controllers/telemetry/stated_totals.h"

namespace grus {

struct ReadPush {
  std::optional<Position> where;  // None: it says nothing of a position, or is refused.
  std::string fault;              // Which annotation breaks which rule; empty: none.
  std::string refusal;            // The same for its author.
};
ReadPush ReadPushedTexts(const PushedTexts& texts, const StatedTotals& stated, WallTime time);

// What one launcher pushes.
class PushedProgress {
 public:
  // So long a push counts: other programs than the training do not go on with it.
  static constexpr kube::Duration kCounts = std::chrono::minutes(10);
  // Or this many times as long as it took since the one before, if that is longer.
  static constexpr int kCountsIntervals = 3;

  // What stands on the job when its launcher is seen first may be of an earlier one: it counts once it is changed.
  explicit PushedProgress(PushedTexts on_job) : of_earlier_(std::move(on_job)) {}

  // Returns why the push is refused, if that was not returned before.
  std::optional<std::string> Look(const PushedTexts& on_job, const PushedTexts& on_pod, const StatedTotals& stated,
                                  WallTime wall, kube::TimePoint now);

  const std::optional<Position>& where() const { return where_; }
  bool Counts(kube::TimePoint now) const { return where_ && now < counts_until_; }
  ProgressTrack& track() { return track_; }
  const ProgressTrack& track() const { return track_; }

 private:
  PushedTexts TextsNow(const PushedTexts& on_job, const PushedTexts& on_pod);

  std::optional<PushedTexts> of_earlier_;
  PushedTexts texts_;
  bool was_looked_at_ = false;
  std::optional<Position> where_;
  std::optional<kube::TimePoint> came_;
  kube::TimePoint counts_until_{};
  ProgressTrack track_;
  std::set<std::string> told_;  // Faults.
};

}  // namespace grus
