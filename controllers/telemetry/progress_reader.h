// SPDX-License-Identifier: Apache-2.0
// How far a training is, as the counters in its log say: "step 40/400", "12/60" under "Epoch 3/10".
//
// What a counter counts is not always said. One that starts over counts within an epoch, one that goes on when the
// epoch changes counts the whole training, and so does one that is called a step where no epochs are. A bar without a
// name ("12/60") may be either until it has been seen. As long as that is open, and where the log contradicts itself,
// no share of the whole is given: none is better than a wrong one. What cannot be told apart from a whole training: the
// first of several in one log, if each counts named steps from 1 to its own end. Ends that the log does not say may be
// stated elsewhere. A new total is a new counter. If several ranks write into one log, the lowest is read.
//
// No I/O, clock or thread; any bytes can be added, also with gaps between them. Bounded: kMostCounters counters, and an
// unfinished line of LogLines::kMaxLine. A value; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "controllers/measure/log_lines.h"
#include "controllers/measure/reading.h"
#include "controllers/telemetry/stated_totals.h"

namespace grus {

// Of the whole training, from 0 to 1: it is between these, and most likely the one named so.
struct ShareDone {
  double least = 0, most = 0, likely = (least + most) / 2;
};

struct Position {
  WallTime time{};                           // Of the last line with a counter.
  std::optional<double> step, epoch;         // As the training counts them.
  double total_steps = 0, total_epochs = 0;  // 0: not said.
  std::optional<ShareDone> done;             // None: not known.
};

class ProgressReader {
 public:
  static constexpr std::size_t kMostCounters = 8;

  explicit ProgressReader(const StatedTotals& stated = {}) : stated_(stated) {}

  // Bytes of the log, with time stamps. Lines that were read before are passed over after Resume(). `each`, if any, is
  // called after each line with a counter.
  void Add(std::string_view bytes, const std::function<void(const Position&)>& each = nullptr);
  void Resume() { lines_.Resume(); }
  std::optional<WallTime> position() const { return lines_.position(); }  // A new stream may begin with this second.

  // None: the log has no counter so far.
  std::optional<Position> Where() const;

 private:
  struct Counter {
    Measure measure = Measure::kStep;
    std::uint32_t series = 0;
    double total = 0, last = 0;
    bool is_named = false;  // Not any two numbers with a slash.
    int passes = 0;         // How often it started over.
    bool goes_on = false;   // It did not, when the epoch changed.
    double epoch = 0;       // When it last changed.
    WallTime time{};        // Of the line that it was last seen in.
    std::int64_t line = 0;  // That it was last seen in.
    bool is_at_end() const { return last >= total; }
  };
  struct Epochs {
    double first = 0, last = 0, total = 0;
    double full = 0;          // The total of the counter that was at its end before the first of them; 0: none.
    bool is_stale = false;    // A counter has started over since, and no epoch was read.
    bool is_printed = false;  // The total; else it is stated.
    bool is_fractional = false;
    bool ends_them = false;  // Its line stands behind the epoch, not before it.
    // Lines that say how it went, and have no counter, stand at its end, if the epoch before has none elsewhere. One
    // that no other line of its epoch came before may also stand at its begin.
    std::optional<WallTime> first_result{}, last_result{};
    double result_of = 0;  // That epoch.
    bool has_results_at_end = false, is_over = false, was_begun = false;
  };

  bool ReadLogLine(const LogLine& line);  // False: it has no counter of the training.
  // `closes`: its line says how the epoch went, and has no counter.
  void NoteEpoch(const Reading& reading, bool closes);
  void NoteResult(double epoch);
  void NoteCount(const Reading& reading);
  const Counter* Find(const Reading& reading) const;  // Null: it is new.
  Counter& CounterOf(const Reading& reading);
  const Counter* Main() const;
  bool IsRecent(const Counter& counter) const;
  // Of bars without names, of which none is known to be the training's.
  bool IsOneOfSeveral(const Counter& counter) const;
  bool ContinuesTraining(const LineReadings& readings) const;
  std::optional<ShareDone> Done(const Counter* counter) const;
  std::optional<ShareDone> DoneByEpochs(const Counter* counter) const;

  const StatedTotals stated_;
  LogLines lines_;
  std::vector<Counter> counters_;
  std::optional<Epochs> epochs_;
  std::optional<double> bare_step_;  // Of a counter without a total.
  bool has_bare_restarted_ = false;
  std::optional<int> rank_;
  std::optional<WallTime> time_;
  bool is_evaluating_ = false;  // Since "Eval begin".
  std::int64_t line_ = 0;       // Lines with counters.
};

}  // namespace grus
