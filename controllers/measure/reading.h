// SPDX-License-Identifier: Apache-2.0
// What one line of a training job's log says about its speed. Values.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace grus {

using WallTime = std::chrono::system_clock::time_point;

enum class Measure {
  kStep,         // A counter of steps; the times of the lines make a speed of it.
  kSampleCount,  // A counter of samples, likewise.
  kEpoch,        // A counter of epochs, possibly with a fraction, likewise.
  kStepSeconds,
  kSamplesPerSecond,
  kTokensPerSecond,  // Also words: what samples consist of.
  kSamplesPerStep,   // The batch.
};

// How reliable a reading is, best first.
enum class Trust {
  kPattern,  // A pattern of the user says so.
  kStated,   // The text names a unit, or a step's time.
  kAverage,  // The same, but a running average, which remembers the warm-up.
  kUnclear,  // "time: 0.3": of a step, of all since the line before, or since the start?
  kWeak,     // Any two numbers with a slash, or one in brackets.
  kMixed,    // With evaluation, loading or warm-up in it.
};

// Whose a rate or a batch is. Without a word about it, it is not known: most programs print that of their own process,
// and some that of all.
enum class Scope { kNotSaid, kProcess, kGpu, kJob };

struct Reading {
  Measure measure = Measure::kStep;
  Trust trust = Trust::kStated;
  Scope scope = Scope::kJob;
  double value = 0;
  double resolution = 0;     // Half a unit of the last place that is printed.
  double averaged_over = 0;  // How many steps since the counter began this averages; 0: no average.
  double total = 0;          // Of a counter that is printed with one: 340/1000.
  std::uint32_t series = 0;  // The same for readings from the same kind of text.
  std::uint32_t at = 0;      // Where the number begins in the line.
  bool has_unit = true;      // False: seconds are assumed.
};

// Only the speed of training is wanted; every other phase that a line names is a gap in training.
enum class Phase { kTraining, kEvaluation, kOther };

class LineReadings {
 public:
  static constexpr std::size_t kMost = 12;

  void Add(const Reading& reading) {
    if (size_ < kMost) readings_[size_++] = reading;
  }
  std::span<const Reading> all() const { return std::span(readings_).first(size_); }
  std::span<Reading> all() { return std::span(readings_).first(size_); }
  bool empty() const { return size_ == 0; }

  Phase phase = Phase::kTraining;
  double samples_per_step = 0;  // 0: not said.
  Scope batch_scope = Scope::kJob;
  bool is_heading = false;  // A line without a number: "Evaluation begins".

 private:
  std::array<Reading, kMost> readings_;
  std::size_t size_ = 0;
};

// Identifies a kind of text (FNV-1a).
constexpr std::uint32_t SeriesOf(std::string_view text, std::uint32_t hash = 2166136261U) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace grus
