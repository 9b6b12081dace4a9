// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/log_lines.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>

#include "clientlib/model/time.h"

namespace grus {
namespace {

using std::chrono::floor;
using std::chrono::seconds;

constexpr std::size_t kLongestTime = 35;  // "2006-01-02T15:04:05.999999999+07:00"

// Cuts the digits off the front of the text; none if there are none or too many.
std::optional<int> CutNumber(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool CutPrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "[1,0]<stdout>:" of mpirun and horovodrun, "[0]<stderr>:" of horovodrun with Gloo, "[default0]:" of torchrun,
// "[rank0]:" of PyTorch.
std::optional<int> CutRank(std::string_view& text) {
  std::string_view rest = text;
  if (!CutPrefix(rest, "[")) return std::nullopt;
  const bool is_named = CutPrefix(rest, "default") || CutPrefix(rest, "rank");
  std::optional<int> rank = CutNumber(rest);
  if (rank && !is_named && CutPrefix(rest, ",")) rank = CutNumber(rest);  // After the number of the job.
  if (!rank || !CutPrefix(rest, "]")) return std::nullopt;
  const bool has_stream = CutPrefix(rest, "<stdout>") || CutPrefix(rest, "<stderr>");
  if (!CutPrefix(rest, ":") || (!is_named && !has_stream)) return std::nullopt;
  text = rest;
  return rank;
}

bool HasControls(std::string_view text) {
  return std::memchr(text.data(), '\x1b', text.size()) || std::memchr(text.data(), '\b', text.size());
}

// Without ANSI escape sequences (ECMA-48: CSI ends with 0x40 to 0x7e, OSC with BEL or ESC \) and backspaces.
void Clean(std::string_view text, std::string& clean) {
  clean.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\b') continue;
    if (text[i] != '\x1b') {
      clean.push_back(text[i]);
    } else if (i + 1 < text.size() && text[i + 1] == '[') {
      for (i += 2; i < text.size() && (text[i] < 0x40 || text[i] > 0x7e); ++i) continue;
    } else if (i + 1 < text.size() && text[i + 1] == ']') {
      for (i += 2; i < text.size() && text[i] != '\a' && text[i] != '\x1b'; ++i) continue;
      if (i + 1 < text.size() && text[i] == '\x1b') ++i;
    } else {
      ++i;  // A sequence of two bytes.
    }
  }
}

}  // namespace

void LogLines::Add(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    std::string_view line = bytes.substr(0, newline);
    for (std::size_t end = line.find('\r'); end != std::string_view::npos; end = line.find('\r')) {
      AddPiece(line.substr(0, end), true, sink);
      line.remove_prefix(end + 1);
    }
    if (newline == std::string_view::npos) return AddPiece(line, false, sink);
    AddPiece(line, true, sink);
    bytes.remove_prefix(newline + 1);
    EndLine();
  }
}

void LogLines::AddPiece(std::string_view piece, bool is_whole, const Sink& sink) {
  if (is_whole && unfinished_.empty() && piece.size() <= kMaxLine) return EndPiece(piece, sink);
  const std::size_t kept = std::min(piece.size(), kMaxLine - unfinished_.size());
  unfinished_.append(piece.substr(0, kept));
  if (!is_whole) return;
  EndPiece(unfinished_, sink);
  unfinished_.clear();
}

void LogLines::EndPiece(std::string_view piece, const Sink& sink) {
  if (is_first_piece_) {
    is_first_piece_ = false;
    StartLine(piece);
  }
  if (is_passed_over_ || piece.empty()) return;
  if (HasControls(piece)) {
    Clean(piece, clean_);
    piece = clean_;
  }
  if (const std::optional<int> rank = CutRank(piece)) rank_ = rank;
  if (!piece.empty()) sink({time_, rank_, piece});
}

// Cuts off the time, and decides whether the line is new.
void LogLines::StartLine(std::string_view& piece) {
  rank_.reset();
  time_.reset();
  is_passed_over_ = false;
  const std::size_t space = std::min(piece.find(' '), piece.size());
  if (space >= 20 && space <= kLongestTime && piece[4] == '-' && piece[10] == 'T') {
    const kube::Result<kube::Time> time = kube::ParseTime(piece.substr(0, space));
    // There were no containers before 1970, and the limit keeps the difference of two times from overflowing.
    if (time && time->value >= WallTime{}) time_ = time->value;
  }
  if (!time_) return;
  piece.remove_prefix(std::min(space + 1, piece.size()));
  is_passed_over_ = is_resuming_ && IsReadAgain(*time_);
  is_resuming_ = is_passed_over_;
}

// Only a complete line moves the position: redraws still to come must not be skipped.
void LogLines::EndLine() {
  ++lines_;
  is_first_piece_ = true;
  if (!time_ || is_passed_over_) return;
  lines_at_time_ = last_time_ == time_ ? lines_at_time_ + 1 : 1;
  last_time_ = time_;
}

bool LogLines::IsReadAgain(WallTime time) {
  if (!last_time_ || time > *last_time_ || time < floor<seconds>(*last_time_)) return false;
  if (time < *last_time_) return true;
  return ++again_at_time_ <= lines_at_time_;
}

void LogLines::Resume() {
  unfinished_.clear();
  is_first_piece_ = true;
  is_passed_over_ = false;
  is_resuming_ = last_time_.has_value();
  again_at_time_ = 0;
}

}  // namespace grus
