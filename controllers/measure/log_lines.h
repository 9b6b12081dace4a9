// SPDX-License-Identifier: Apache-2.0
// The bytes of a pod's log, as lines with their times.
//
// The bytes are the body of GET .../log?follow=true&timestamps=true, in chunks of any size: each line starts with an
// RFC 3339 timestamp and a space. Programs that redraw a line (tqdm, Keras) separate the redraws by carriage returns:
// each becomes a line of its own, with the time of the whole line. ANSI colours and backspaces are removed, and so is
// the rank that horovodrun and torchrun write in front. Otherwise a line may contain any bytes.
//
// No line is read twice: the request's sinceTime has whole seconds, so a new stream repeats some lines, and after
// Resume() those up to the position are skipped. Only a line whose redraws had not ended when the stream broke is read
// again in full. Lines that the kubelet's rotation drops are not noticed. If the node's clock is set back to before the
// position's second, the lines count as new.
//
// Bounded: at most kMaxLine bytes of an unfinished line are kept; the rest of a longer one is dropped. A value without
// I/O or clock; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "controllers/measure/reading.h"

namespace grus {

struct LogLine {
  std::optional<WallTime> time;  // None if the line had none, or none that can be read.
  std::optional<int> rank;       // As written in front of the line.
  std::string_view text;         // Valid during the call only.
};

class LogLines {
 public:
  static constexpr std::size_t kMaxLine = 16 * 1024;
  using Sink = std::function<void(const LogLine&)>;

  // Calls `sink` for each line that the bytes end.
  void Add(std::string_view bytes, const Sink& sink);

  // REQUIRES: the stream broke and a new one begins, which repeats the unfinished line.
  void Resume();

  std::int64_t lines() const { return lines_; }                    // Ended by a newline, including skipped ones.
  std::optional<WallTime> position() const { return last_time_; }  // A new stream may begin with this second.

 private:
  void AddPiece(std::string_view piece, bool is_whole, const Sink& sink);
  void EndPiece(std::string_view piece, const Sink& sink);
  void StartLine(std::string_view& piece);
  void EndLine();
  bool IsReadAgain(WallTime time);

  std::optional<WallTime> last_time_;  // Of the last line that ended: with the next, how far the log was read.
  std::int64_t lines_at_time_ = 0;     // How many of the last lines have exactly this time.
  std::int64_t lines_ = 0;
  std::string unfinished_;
  std::string clean_;            // A piece without control characters.
  bool is_first_piece_ = true;   // Of its line: the one with the time.
  bool is_passed_over_ = false;  // The current line.
  bool is_resuming_ = false;
  std::int64_t again_at_time_ = 0;  // Lines seen again with last_time_.
  std::optional<WallTime> time_;    // Of the current line.
  std::optional<int> rank_;
};

}  // namespace grus
