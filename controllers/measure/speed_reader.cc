// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/speed_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>
#include <utility>

#include "controllers/measure/auto_patterns.h"

namespace grus {
namespace {

constexpr std::chrono::minutes kSetBack{1};  // Less means lines out of order.
constexpr std::size_t kLongestShown = 120;   // Of a line that is shown to the user.

const Reading* FindCounter(const LineReadings& readings) {
  for (const Reading& reading : readings.all()) {
    if (reading.measure == Measure::kStep) return &reading;
  }
  return nullptr;
}

SeriesKey KeyOf(const Reading& reading, const Reading* counter) {
  SeriesKey key{reading.measure, reading.trust, reading.scope, reading.series, reading.total};
  if (!IsCounter(reading.measure) && counter) key.total = counter->total;
  return key;
}

// PyTorch: "torch.cuda.OutOfMemoryError: CUDA out of memory."; TensorFlow: "RESOURCE_EXHAUSTED: ... OOM when
// allocating tensor"; the driver: "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
bool SaysOutOfMemory(std::string_view text) {
  for (const std::string_view words : {"out of memory", "OutOfMemoryError", "OOM when allocating", "OUT_OF_MEMORY",
                                       "RESOURCE_EXHAUSTED: Out of memory"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

bool IsWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The text with 0.0 in place of each "nan" and the like: such a speed is refused, like one of zero. Empty: it has none.
std::string WithZeros(std::string_view text) {
  std::string zeros;
  for (const std::string_view word : {"nan", "NaN", "inf", "Inf"}) {
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size())) {
      const std::size_t end = at + word.size();
      if ((at > 0 && IsWordPart(text[at - 1])) || (end < text.size() && IsWordPart(text[end]))) continue;
      if (zeros.empty()) zeros = text;
      zeros.replace(at, word.size(), "0.0");
    }
  }
  return zeros;
}

LineReadings ReadAnyLine(std::string_view text) {
  const std::string zeros = WithZeros(text);
  return ReadLine(zeros.empty() ? text : zeros);
}

}  // namespace

std::vector<const MeasuredSpeed*> SpeedObservation::BestFirst() const {
  std::vector<const MeasuredSpeed*> all;
  const auto order = [](const MeasuredSpeed& speed) {
    const bool is_mixed = speed.trust == Trust::kMixed || speed.measure == Measure::kEpoch;
    return std::tuple(!std::isfinite(speed.steady.half_width_seconds), is_mixed, speed.scope == Scope::kNotSaid,
                      speed.is_counted);
  };
  for (const std::optional<MeasuredSpeed>* speed : {&step, &throughput, &gpu_throughput, &token_throughput, &epoch}) {
    if (*speed) all.push_back(&**speed);
  }
  std::ranges::stable_sort(all, [&](const auto* a, const auto* b) { return order(*a) < order(*b); });
  return all;
}

const MeasuredSpeed* SpeedObservation::main() const {
  const std::vector<const MeasuredSpeed*> all = BestFirst();
  return all.empty() ? nullptr : all.front();
}

kube::Result<SpeedReader> SpeedReader::Make(const SpeedReaderOptions& options) {
  kube::Result<UserPatterns> patterns = UserPatterns::Make(options.patterns);
  if (!patterns) return std::move(patterns).error();
  return SpeedReader(options, std::move(*patterns));
}

SpeedReader::SpeedReader(const SpeedReaderOptions& options, UserPatterns patterns)
    : options_(options), patterns_(std::move(patterns)) {
  series_.reserve(kMostSeries);
}

void SpeedReader::Add(std::string_view bytes) {
  if (!bytes.empty()) has_output_ = true;
  lines_.Add(bytes, [this](const LogLine& line) { ReadLogLine(line); });
}

void SpeedReader::ReadLogLine(const LogLine& line) {
  if (!first_output_) first_output_ = line.time;
  if (line.rank && rank_ && *line.rank > *rank_) return;
  if (SaysOutOfMemory(line.text)) ++counts_.out_of_memory;
  LineReadings readings;
  if (patterns_.empty() || options_.has_auto) readings = ReadAnyLine(line.text);
  patterns_.Read(line.text, readings, counts_.not_numbers);
  if (patterns_.empty() && IsUnderHeading(readings)) return;
  if (readings.phase != Phase::kTraining) ++gaps_;
  if (readings.samples_per_step > 0) {
    samples_per_step_ = readings.samples_per_step;
    batch_scope_ = readings.batch_scope;
  }
  if (readings.empty()) return;
  if (line.rank && line.rank != rank_) {  // The first rank, or a lower one than the one read so far.
    if (rank_) series_.clear();
    refused_ = {};
    has_taken_ = false;
    rank_ = line.rank;
  }
  ++counts_.matched_lines;
  if (line.time) {
    if (!first_match_) first_match_ = line.time;
    // If the node's clock is set back, the time seen before still counts.
    if (last_match_ && *last_match_ - *line.time >= kSetBack) {
      const auto by = *last_match_ - *line.time;
      first_match_ = std::max(*first_match_ - by, WallTime{});
      if (first_speed_) first_speed_ = std::max(*first_speed_ - by, WallTime{});
    }
    last_match_ = line.time;
    if (*line.time - *first_match_ < options_.warm_up) return;
    if (!first_speed_) first_speed_ = line.time;
    last_speed_ = line.time;
  }
  AddReadings(readings, line);
}

// PaddlePaddle says "Eval begin..." and then prints steps like those of the training. The heading counts until a line
// that is no such step: "Eval samples: 480", "Epoch 2/4", or a step beyond the last one of the training.
bool SpeedReader::IsUnderHeading(const LineReadings& readings) {
  if (readings.phase != Phase::kTraining) {
    is_under_heading_ = readings.is_heading && readings.phase == Phase::kEvaluation;
    return false;
  }
  const Reading* counter = FindCounter(readings);
  const auto is_epoch = [](const Reading& reading) { return reading.measure == Measure::kEpoch; };
  const bool has_epoch = std::any_of(readings.all().begin(), readings.all().end(), is_epoch);
  is_under_heading_ = is_under_heading_ && counter && counter->value <= last_step_ && !has_epoch;
  if (counter && !is_under_heading_) last_step_ = counter->value;
  return is_under_heading_;
}

void SpeedReader::AddReadings(const LineReadings& readings, const LogLine& line) {
  const Reading* counter = FindCounter(readings);
  const std::optional<WallTime> time = line.time;
  for (const Reading& reading : readings.all()) {
    const bool is_counter = IsCounter(reading.measure);
    if (is_counter && !time) continue;
    SeriesKey key = KeyOf(reading, counter);
    const std::optional<std::size_t> found = FindSeries(key, true);
    if (!found) continue;
    if (series_[*found].readings() == 0) {
      series_[*found].set_example({std::string(line.text.substr(0, kLongestShown)), reading.at});
    }
    bool is_taken = false;
    if (is_counter) {
      key.trust = Trust::kMixed;
      const std::optional<std::size_t> mixed = gaps_ > 0 ? FindSeries(key, false) : std::nullopt;
      is_taken = series_[*found].AddCount(reading.value, *time, gaps_, mixed ? &series_[*mixed] : nullptr);
    } else {
      is_taken = series_[*found].AddSpeed(reading, counter);
      NoteSpeed(reading, is_taken, line);
    }
    if (!is_taken) ++counts_.refused;
  }
}

void SpeedReader::NoteSpeed(const Reading& reading, bool is_taken, const LogLine& line) {
  has_taken_ = has_taken_ || is_taken;
  // The time of loading may be zero, and a number without a name need not be a speed.
  if (is_taken || reading.trust == Trust::kMixed || reading.trust == Trust::kWeak) return;
  if (refused_.readings++ == 0) {
    first_refused_ = line.time;
    refused_.line = line.text.substr(0, kLongestShown);
  }
  if (!line.time) return;
  if (!first_refused_) first_refused_ = line.time;
  refused_.span = std::max<kube::Duration>(*line.time - *first_refused_, kube::Duration::zero());
}

// The index of the series with the key, which is added if there is room or another one can be replaced.
std::optional<std::size_t> SpeedReader::FindSeries(const SeriesKey& key, bool may_replace) {
  const auto has_key = [&](const SpeedSeries& series) { return series.key() == key; };
  const auto found = std::find_if(series_.begin(), series_.end(), has_key);
  if (found != series_.end()) return static_cast<std::size_t>(found - series_.begin());
  if (series_.size() == kMostSeries) {
    if (!may_replace) return std::nullopt;
    // Replace the series with the least information: a log whose numbers keep getting new names must not fill the
    // table for good.
    const auto least = std::min_element(series_.begin(), series_.end(), [](const SpeedSeries& a, const SpeedSeries& b) {
      return a.samples().size() < b.samples().size();
    });
    if (least->samples().size() > 1) return std::nullopt;
    *least = SpeedSeries(key);
    return static_cast<std::size_t>(least - series_.begin());
  }
  series_.emplace_back(key);
  return series_.size() - 1;
}

SpeedObservation SpeedReader::Observe(WallTime now) const {
  SpeedObservation seen;
  seen.step = ChooseSpeed(series_, Measure::kStepSeconds, Scope::kJob);
  const auto first_of = [&](Measure measure, std::initializer_list<Scope> scopes) {
    std::optional<MeasuredSpeed> speed;
    for (const Scope scope : scopes) {
      if (!speed) speed = ChooseSpeed(series_, measure, scope);
    }
    return speed;
  };
  seen.throughput = first_of(Measure::kSamplesPerSecond, {Scope::kJob, Scope::kNotSaid});
  seen.gpu_throughput = first_of(Measure::kSamplesPerSecond, {Scope::kGpu, Scope::kProcess});
  seen.token_throughput =
      first_of(Measure::kTokensPerSecond, {Scope::kJob, Scope::kGpu, Scope::kProcess, Scope::kNotSaid});
  seen.epoch = ChooseSpeed(series_, Measure::kEpoch, Scope::kJob);
  seen.samples_per_step = samples_per_step_;
  seen.batch_scope = batch_scope_;
  seen.counts = counts_;
  seen.counts.lines = lines_.lines();
  if (first_speed_) seen.span = std::max<kube::Duration>(*last_speed_ - *first_speed_, kube::Duration::zero());
  if (refused_.readings > 0 && !has_taken_ && !seen.main()) seen.only_refused = refused_;
  seen.state = StateAt(now, seen);
  return seen;
}

SpeedState SpeedReader::StateAt(WallTime now, const SpeedObservation& seen) const {
  const MeasuredSpeed* speed = seen.main();
  if (speed && speed->steady.has_precision(options_.precision)) return SpeedState::kPrecise;
  if (now - options_.started >= options_.slice) return SpeedState::kSliceSpent;
  if (counts_.matched_lines > 0) return SpeedState::kMeasuring;
  if (!has_output_) return now - options_.started >= options_.patience ? SpeedState::kSilent : SpeedState::kWaiting;
  // A node's clock that is ahead of ours must not make the wait longer.
  const WallTime since = std::min(first_output_.value_or(options_.started), now);
  return now - since >= options_.patience ? SpeedState::kNotMatched : SpeedState::kWaiting;
}

}  // namespace grus
