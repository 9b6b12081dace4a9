// SPDX-License-Identifier: Apache-2.0
// The speed of a training job, read from the log of one of its pods.
//
// The caller adds the log's bytes as they come, observes the speed, and stops the trial when the speed is precise
// enough or the time is over. If several ranks write into one log, the lowest that prints a speed is read.
//
// No I/O, clock or thread: time comes with the log's lines and with Observe(). Any bytes can be added. Memory
// is bounded: kMostSeries of SpeedSeries::kMostSamples samples of 16 bytes, a line of LogLines::kMaxLine, and
// what RE2 needs for the user's patterns (at most 1 MiB each): below 1 MiB without patterns. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/error.h"
#include "controllers/measure/log_lines.h"
#include "controllers/measure/speed_choice.h"
#include "controllers/measure/speed_series.h"
#include "controllers/measure/user_patterns.h"

namespace grus {

struct SpeedReaderOptions {
  std::vector<SpeedPattern> patterns = {};             // None: what ReadLine() recognises.
  bool has_auto = false;                               // Use ReadLine() as well as the patterns.
  WallTime started = {};                               // When the job started.
  kube::Duration warm_up{};                            // Speeds this soon after the first do not count.
  double precision = 0.05;                             // Half of the 90 % interval against the mean.
  kube::Duration slice = std::chrono::minutes(5);      // The trial's time, from `started` on.
  kube::Duration patience = std::chrono::seconds(30);  // Before silence or unknown output is reported.
};

enum class SpeedState {
  kWaiting,     // For the first output, or for the first speed.
  kSilent,      // No output within `patience` of the start.
  kNotMatched,  // No speed within `patience` of the first output.
  kMeasuring,
  kPrecise,     // The interval is as narrow as wanted: the trial may stop.
  kSliceSpent,  // The time is over: the trial has to stop with what is known.
};

struct SpeedCounts {
  std::int64_t lines = 0;  // Of the log.
  std::int64_t matched_lines = 0;
  std::int64_t not_numbers = 0;    // Texts that a user's pattern found where a number should be.
  std::int64_t refused = 0;        // Speeds that are zero, negative, infinite or NaN.
  std::int64_t out_of_memory = 0;  // Lines in which a framework says that a GPU is out of memory.
};

// Speeds that were refused while none was taken.
struct OnlyRefused {
  std::int64_t readings = 0;
  kube::Duration span{};  // From the first such line to the last, by their times.
  std::string line;       // The first of them, or its beginning.
};

struct SpeedObservation {
  SpeedState state = SpeedState::kWaiting;
  std::optional<MeasuredSpeed> step;              // Seconds of a step.
  std::optional<MeasuredSpeed> throughput;        // Samples a second of the whole job, or of what is not said.
  std::optional<MeasuredSpeed> gpu_throughput;    // Samples a second of one GPU or one process.
  std::optional<MeasuredSpeed> token_throughput;  // Tokens a second, of the widest scope that is said.
  std::optional<MeasuredSpeed> epoch;             // Seconds of a whole epoch, with evaluations.
  double samples_per_step = 0;                    // 0: not said.
  Scope batch_scope = Scope::kJob;                // Of these samples.
  kube::Duration span{};                          // From the first line that tells a speed to the last, by their times.
  std::optional<OnlyRefused> only_refused;        // None: a speed was taken or counted, or none was refused.
  SpeedCounts counts;

  // The speed to compare trials by: prefer one with an interval, then one without evaluations in it, then one whose
  // scope is known, then a printed one over a counted one, then the order above.
  std::vector<const MeasuredSpeed*> BestFirst() const;
  const MeasuredSpeed* main() const;  // The best; null: there is none.
};

class SpeedReader {
 public:
  static constexpr std::size_t kMostSeries = 24;

  // Errors: kInvalidArgument, of a pattern.
  static kube::Result<SpeedReader> Make(const SpeedReaderOptions& options);

  void Add(std::string_view bytes);   // The next bytes of the log.
  void Resume() { lines_.Resume(); }  // The stream broke, and a new one begins: see LogLines.

  SpeedObservation Observe(WallTime now) const;

 private:
  SpeedReader(const SpeedReaderOptions& options, UserPatterns patterns);
  void ReadLogLine(const LogLine& line);
  bool IsUnderHeading(const LineReadings& readings);
  void AddReadings(const LineReadings& readings, const LogLine& line);
  void NoteSpeed(const Reading& reading, bool is_taken, const LogLine& line);
  std::optional<std::size_t> FindSeries(const SeriesKey& key, bool may_replace);
  SpeedState StateAt(WallTime now, const SpeedObservation& seen) const;

  SpeedReaderOptions options_;
  UserPatterns patterns_;
  LogLines lines_;
  std::vector<SpeedSeries> series_;
  SpeedCounts counts_;
  std::optional<WallTime> first_output_, first_match_, last_match_, first_speed_, last_speed_;
  bool has_output_ = false;
  std::optional<int> rank_;        // The one that is read.
  std::int64_t gaps_ = 0;          // Lines that are not about training.
  bool is_under_heading_ = false;  // Every line since "Evaluation begins" has a counter that started over.
  double last_step_ = -1;          // Of the counter in training; below zero before the first.
  double samples_per_step_ = 0;
  Scope batch_scope_ = Scope::kJob;
  OnlyRefused refused_;
  std::optional<WallTime> first_refused_;
  bool has_taken_ = false;  // A speed, not a count.
};

}  // namespace grus
