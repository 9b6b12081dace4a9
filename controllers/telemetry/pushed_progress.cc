// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/pushed_progress.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace grus {
namespace {

constexpr double kMostCount = 1e15;  // No training counts further.

// The texts may hold anything, and an event takes few bytes.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, kLongestPush)) quoted += c >= ' ' && c <= '~' && c != '"' ? c : '?';
  return quoted + (text.size() > kLongestPush ? "...\"" : "\"");
}

// Reads one of the texts; empty: it is missing. Sets fault and refusal of `read`.
struct PushReader {
  ReadPush& read;

  std::optional<double> Number(const char* name, std::string_view text) {
    if (text.empty() || !read.refusal.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value < kMostCount) return value;
    Refuse(name, "is not a count",
           std::string("annotation ") + name + " is " + Quoted(text) +
               ", which is no count: write a number from 0, without a unit");
    return std::nullopt;
  }
  void Bound(const char* name, std::string_view text, double count, const char* of, std::string_view total_text,
             double total) {
    if (!read.refusal.empty() || total <= 0 || count <= total) return;
    Refuse(name, "is above its total",
           std::string("annotation ") + name + " is " + Quoted(text) + ", above " + of + ", " + Quoted(total_text) +
               ": write both at once, and the total of the whole training");
  }
  void Refuse(const char* name, const char* rule, std::string refusal) {
    read.fault = std::string(name) + " " + rule;
    read.refusal = std::move(refusal) + "; the progress stays as it was";
  }
};

ShareDone Exactly(double share) { return {share, share}; }

}  // namespace

ReadPush ReadPushedTexts(const PushedTexts& texts, const StatedTotals& stated, WallTime time) {
  ReadPush read;
  PushReader reader{read};
  Position where;
  where.time = time;
  where.step = reader.Number(kStepAnnotation, texts.step);
  where.total_steps = reader.Number(kTotalStepsAnnotation, texts.total_steps).value_or(0);
  where.epoch = reader.Number(kEpochAnnotation, texts.epoch);
  where.total_epochs = reader.Number(kTotalEpochsAnnotation, texts.total_epochs).value_or(0);
  reader.Bound(kStepAnnotation, texts.step, where.step.value_or(0), kTotalStepsAnnotation, texts.total_steps,
               where.total_steps);
  reader.Bound(kEpochAnnotation, texts.epoch, where.epoch.value_or(0), kTotalEpochsAnnotation, texts.total_epochs,
               where.total_epochs);
  if (!read.refusal.empty() || (!where.step && !where.epoch)) return read;
  // The command may mean something else; then it says nothing.
  if (where.step && where.total_steps == 0 && *where.step <= stated.steps) where.total_steps = stated.steps;
  if (where.epoch && where.total_epochs == 0 && *where.epoch <= stated.epochs) where.total_epochs = stated.epochs;
  if (where.step && where.total_steps > 0) where.done = Exactly(*where.step / where.total_steps);
  else if (where.epoch && where.total_epochs > 0) where.done = Exactly(*where.epoch / where.total_epochs);
  read.where = where;
  return read;
}

PushedTexts PushedProgress::TextsNow(const PushedTexts& on_job, const PushedTexts& on_pod) {
  if (of_earlier_ && !(on_job == *of_earlier_)) of_earlier_.reset();
  PushedTexts texts = on_pod;
  if (texts.total_steps.empty()) texts.total_steps = on_job.total_steps;
  if (texts.total_epochs.empty()) texts.total_epochs = on_job.total_epochs;
  if (!on_pod.HasPosition() && !of_earlier_) {
    texts.step = on_job.step;
    texts.epoch = on_job.epoch;
  }
  return texts;
}

std::optional<std::string> PushedProgress::Look(const PushedTexts& on_job, const PushedTexts& on_pod,
                                                const StatedTotals& stated, WallTime wall, kube::TimePoint now) {
  PushedTexts texts = TextsNow(on_job, on_pod);
  const bool is_first = !std::exchange(was_looked_at_, true);
  if (texts == texts_) return std::nullopt;
  texts_ = std::move(texts);
  if (!texts_.HasPosition()) {
    where_.reset();
    return std::nullopt;
  }
  ReadPush read = ReadPushedTexts(texts_, stated, wall);
  if (!read.refusal.empty()) return told_.insert(read.fault).second ? std::optional(read.refusal) : std::nullopt;
  where_ = std::move(read.where);
  if (!is_first) track_.Add(*where_);  // How old the first one is, nobody knows.
  const kube::Duration interval = came_ ? now - *came_ : kube::Duration::zero();
  came_ = now;
  counts_until_ = now + std::max<kube::Duration>(kCounts, interval * kCountsIntervals);
  return std::nullopt;
}

}  // namespace grus
