// SPDX-License-Identifier: Apache-2.0
// Readings of one kind, as samples of the job's speed.
//
// A step time or a rate counts for the steps since the reading before, as far as a counter on its line tells them. A
// counter gives samples from the times of its lines; lines closer together than kShortest count as one, because
// buffered output arrives like that. A counter that goes back starts over, and so does a clock. Samples with an
// evaluation in them are kept apart.
//
// Speeds that are zero, negative, infinite or NaN are refused. Bounded: at most kMostSamples are kept; beyond that,
// neighbours are merged. A value; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/error.h"
#include "controllers/measure/reading.h"
#include "controllers/measure/steady_speed.h"

namespace grus {

struct ExampleLine {
  std::string text;    // Its beginning. Any bytes.
  std::size_t at = 0;  // Where the number begins in it.
};

// What a reading has in common with others of its series.
struct SeriesKey {
  Measure measure = Measure::kStep;
  Trust trust = Trust::kStated;
  Scope scope = Scope::kJob;
  std::uint32_t series = 0;
  double total = 0;  // Of the counter: an evaluation of 50 steps is not the training of 1000.
  friend bool operator==(const SeriesKey&, const SeriesKey&) = default;
};

// Whether the measure is a count, from which the times of the lines make a speed.
bool IsCounter(Measure measure);

class SpeedSeries {
 public:
  static constexpr std::size_t kMostSamples = 2048;
  static constexpr kube::Duration kShortest = std::chrono::milliseconds(250);

  explicit SpeedSeries(const SeriesKey& key) : key_(key) {}

  // REQUIRES: the key's measure is no counter. `counter`: of the same line, may be null. False: refused.
  bool AddSpeed(const Reading& reading, const Reading* counter);

  // REQUIRES: the key's measure is a counter. `gaps` counts the gaps in training so far. A sample that has
  // none in it is added here, any other to `mixed`, which may be null. False: refused.
  bool AddCount(double count, WallTime time, std::int64_t gaps, SpeedSeries* mixed);

  // A line with such a reading, for people.
  const ExampleLine& example() const { return example_; }
  void set_example(ExampleLine example) { example_ = std::move(example); }

  const SeriesKey& key() const { return key_; }
  const std::vector<SpeedSample>& samples() const { return samples_; }
  std::int64_t readings() const { return readings_; }
  double seconds() const { return seconds_; }  // That the samples cover.
  double resolution_seconds() const;           // Mean, half a unit of the last place.
  bool has_unit() const { return has_unit_; }
  // The counter reached its end and did not begin again: a bar that was drawn once, as for loading.
  bool is_done() const { return key_.total > 0 && last_count_ >= key_.total && restarts_ == 0; }

 private:
  struct Anchor {
    double count = 0;
    WallTime time;
    std::int64_t gaps = 0;
  };
  void AddSample(SpeedSample sample);
  void AddAverage(const Reading& reading, double count);
  void NoteCount(double count);

  SeriesKey key_;
  ExampleLine example_;
  std::vector<SpeedSample> samples_;
  std::size_t group_ = 1;  // How many added samples are merged into one.
  SpeedSample part_;       // The unfinished merged sample.
  std::size_t in_part_ = 0;
  double seconds_ = 0;
  double resolutions_ = 0;
  std::int64_t readings_ = 0;
  bool has_unit_ = true;
  double last_count_ = 0;
  int restarts_ = 0;
  int behind_ = 0;           // Counts in a row that are behind the anchor.
  int readings_of_run_ = 0;  // Since the counter began.
  std::optional<Anchor> anchor_;
  double averaged_seconds_ = 0, averaged_steps_ = 0;  // Up to the last sample, for a running average.
};

}  // namespace grus
