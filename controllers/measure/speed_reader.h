// SPDX-License-Identifier: Apache-2.0
// The speed of a training job, read from the log of one of its pods.
//
// The caller hands over the log's bytes as they come, asks what is known, and stops the trial when the speed
// is known as precisely as it is wanted or the time for it is over. Where several ranks write into one log,
// the lowest that tells a speed is read.
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
  bool has_auto = false;                               // That as well as the patterns.
  WallTime started = {};                               // When the job did.
  LogPosition position = {};                           // Where to go on in the log.
  kube::Duration warm_up{};                            // After the first line that tells a speed: what does not count.
  double precision = 0.05;                             // Half of the 90 % interval against the mean.
  kube::Duration slice = std::chrono::minutes(5);      // The trial's time, from `started` on.
  kube::Duration patience = std::chrono::seconds(30);  // Until silence and unknown output are worth a word.
};

enum class SpeedState {
  kWaiting,     // For the first output, or for the first that tells a speed.
  kSilent,      // No output for the patience from the start.
  kNotMatched,  // Nothing that tells a speed for the patience from the first output.
  kMeasuring,
  kPrecise,     // The interval is as narrow as wanted: the trial may stop.
  kSliceSpent,  // The time is over: the trial has to stop with what is known.
};

struct SpeedCounts {
  LogCounts log;
  std::int64_t matched_lines = 0;
  std::int64_t not_numbers = 0;    // Found by a pattern of the user, where a number should be.
  std::int64_t refused = 0;        // Speeds that are zero, negative, infinite or NaN.
  std::int64_t other_ranks = 0;    // Lines of ranks that are not read.
  std::int64_t not_kept = 0;       // Readings of more kinds than are kept.
  std::int64_t out_of_memory = 0;  // Lines in which a framework says that the GPU's memory does not do.
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
  std::optional<MeasuredSpeed> throughput;        // Samples a second of the whole job.
  std::optional<MeasuredSpeed> gpu_throughput;    // Samples a second of one GPU.
  std::optional<MeasuredSpeed> token_throughput;  // Tokens a second, of the whole job if that is said.
  std::optional<MeasuredSpeed> epoch;             // Seconds of an epoch, with all that is in it.
  double samples_per_step = 0;                    // 0: not said.
  kube::Duration span{};                          // From the first line that tells a speed to the last, by their times.
  std::optional<OnlyRefused> only_refused;        // None: a speed was taken or counted, or none was refused.
  SpeedCounts counts;

  // The one to compare trials by: one with an interval before one without, one without evaluations in it
  // before one with, one that is printed before one that is counted, and then the first of the above.
  const MeasuredSpeed* main() const;
  bool may_stop() const { return state == SpeedState::kPrecise || state == SpeedState::kSliceSpent; }
};

class SpeedReader {
 public:
  static constexpr std::size_t kMostSeries = 24;

  // Errors: kInvalidArgument, of a pattern.
  static kube::Result<SpeedReader> Make(const SpeedReaderOptions& options);

  void Add(std::string_view bytes);   // The next bytes of the log.
  void Resume() { lines_.Resume(); }  // The stream broke; what is added next is the log since since_time().

  SpeedObservation Observe(WallTime now) const;

  const LogPosition& position() const { return lines_.position(); }
  std::optional<WallTime> since_time() const { return lines_.since_time(); }

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
  bool is_under_heading_ = false;  // All since "Evaluation begins" had a counter that began anew.
  double last_step_ = -1;          // Of the counter in training; below zero before the first.
  double samples_per_step_ = 0;
  OnlyRefused refused_;
  std::optional<WallTime> first_refused_;
  bool has_taken_ = false;  // A speed, not a count.
};

}  // namespace grus
