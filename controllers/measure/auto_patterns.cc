// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/auto_patterns.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "controllers/measure/figures.h"
#include "controllers/measure/known_formats.h"
#include "controllers/measure/phase_words.h"
#include "controllers/measure/units.h"

namespace grus {
namespace {

using std::string_view;

constexpr string_view kEta = "ETA: ";
constexpr std::size_t kLongestStep = 12;  // Digits of a step.
constexpr double kShortestEta = 20;       // Seconds. Below, the cut-off fraction weighs too much.

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

constexpr std::array<string_view, 4> kAverages = {"avg", "average", "mean", "running"};
template <std::size_t N>
bool IsOneOf(string_view word, const std::array<string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool HasAverage(const Words& words) {
  return std::any_of(kAverages.begin(), kAverages.end(), [&](string_view word) { return words.has(word); });
}

class LineReader {
 public:
  explicit LineReader(string_view text) : text_(text) {}

  LineReadings Read() {
    if (IsEvent(text_)) return {};
    const std::span<Figure> figures = FindFigures(text_, figures_);
    for (const Figure& figure : figures) ReadFigure(figure);
    const string_view head = text_.substr(0, first_figure_ == string_view::npos ? kLongestHead : first_figure_);
    if (const Phase phase = PhaseOf(head, text_); phase != Phase::kTraining) {
      LineReadings other;
      other.phase = phase;
      other.is_heading = figures.empty();
      return other;
    }
    AddCounter();
    AddBareTime();
    AddRemainingTime();
    AddElapsedTime();
    AddEpochRow();
    MarkAverages();
    return result_;
  }

 private:
  void ReadFigure(const Figure& figure) {
    const Words label(figure.label);
    // "eval_steps_per_second", "val_time"
    if (!label.empty() && IsPhaseWord(label[0]) && figure.total == 0) return;
    if (figure.unit.starts_with('%')) return;
    if (IsOfAPart(label) && !(figure.is_whole && IsStepNoun(label.last()))) return;
    if (ReadLabel(figure, label) || ReadUnit(figure, label)) return;
    if (figure.is_whole && figure.total >= 2 && figure.value <= figure.total && !label.has("mem")) {
      plain_counter_ = figure;
    } else if (figure.is_whole && figure.total == 0 && IsLeadingCounter(figure)) {
      bracketed_counter_ = figure;
    }
  }

  // "[100] ...", "100: loss 3", and tf_cnn_benchmarks' "100<tab>images/sec: 12.3".
  bool IsLeadingCounter(const Figure& figure) const {
    if (figure.is_bracketed) return figure.begin <= 1 && figure.unit.starts_with(']');
    if (figure.unit.starts_with("] loss")) return text_.starts_with('[');  // "[1,  2000] loss: 2.1"
    const bool has_mark =
        figure.unit.starts_with(':') || text_.substr(figure.begin).find("\timages/sec: ") < kLongestStep;
    return has_mark && IsFirst(figure);
  }

  bool IsFirst(const Figure& figure) const { return text_.find_first_not_of(' ') == figure.begin; }

  // "global_step: 100", "Epoch 1/3", "SamplesPerSec=12.3", "step time 0.3", "ms/batch 12.3", "time: 0.3"
  bool ReadLabel(const Figure& figure, const Words& label) {
    if (label.empty()) return false;
    if (const std::optional<Unit> unit = FindUnit(label, true)) {
      Unit full = *unit;
      if (!full.has_unit) TakeTimeUnit(figure, full);
      if (full.measure != Measure::kStepSeconds) full.scale *= ThousandsIn(figure.unit);
      if (!full.has_unit && figure.is_whole) return false;  // Composer's "time/batch: 99" is a counter.
      AddSpeed(figure, full, label, nullptr);
      return true;
    }
    std::size_t back = 0;  // How many words at the end are a unit: "step time (ms)".
    const std::optional<double> seconds = SecondsIn(label.last());
    if (seconds && label.size() > 1) back = label.last(1) == "in" ? 2 : 1;
    if (seconds && label.size() == 1) return ReadTimeLabel(figure, "", seconds);  // "seconds: 2.1"
    const string_view last = label.last(back), before = label.last(back + 1);
    if (last == "epoch" || label.last(1) == "epoch") {  // Also "Epoch(train) [1]".
      if (last == "epoch" || figure.total > 0 || figure.is_bracketed) return AddEpoch(figure);
    }
    if (IsStepNoun(last)) return ReadStepLabel(figure, label);
    if (IsTimeWord(last) || last == "dt") return ReadTimeLabel(figure, before, seconds);
    if (last == "throughput") {
      Unit unit;
      unit.measure = Measure::kSamplesPerSecond;
      const Words behind(figure.unit);
      if (behind.empty() || !IsLetter(figure.unit[figure.unit.find_first_not_of(' ')]))
        AddSpeed(figure, unit, label, nullptr);
      return !FindUnit(behind, false);
    }
    // A batch that is not said to be of all GPUs may be of one, or of one of several passes before a step.
    const bool is_batch = last == "size" && before == "batch" && ScopeInLabel(label) == Scope::kJob;
    if ((is_batch || IsTrainersTotalBatch(text_, label)) && figure.is_whole) result_.samples_per_step = figure.value;
    return false;
  }

  bool ReadStepLabel(const Figure& figure, const Words& label) {
    if (IsSetting(label)) return true;
    const Words unit(figure.unit);
    if (unit.size() == 1 && SecondsIn(unit[0]) && IsLetter(figure.unit[0])) {  // "step: 12.3ms"
      Unit time;
      time.scale = *SecondsIn(unit[0]);
      AddSpeed(figure, time, label, nullptr);
      return true;
    }
    if (!figure.is_whole || (!figure.unit.empty() && IsLetter(figure.unit[0]))) return false;
    if (!counter_ || label.has("global")) {
      NoteFigure(figure);
      counter_ = figure;
      if (HasStepBehindSlash(text_)) counter_->value = std::exchange(counter_->total, 0);
    }
    return true;
  }

  // A bare "time" is unclear; "step time" is not; "data time" and "ETA" do not count.
  bool ReadTimeLabel(const Figure& figure, string_view before, std::optional<double> seconds) {
    Unit unit;
    unit.has_unit = seconds.has_value();
    unit.scale = seconds.value_or(1);
    if (!seconds) TakeTimeUnit(figure, unit);
    const Words label(figure.label);
    const string_view last = label.last();
    if (before == "iter" && IsIterationLoading(text_)) return true;
    if (IsStepNoun(before)) {
      AddSpeed(figure, unit, label, nullptr);
    } else if (last == "cost" && before.empty() && !unit.has_unit) {
      return true;  // Marian's "Cost" is the loss.
    } else if (before.empty() || before == "last" || before == "train" || before == "training" || before == "elapsed") {
      AddReading(figure, unit, Trust::kUnclear, SeriesOf(before, SeriesOf("time")));
    }
    return true;
  }

  // "28.1it/s", "45ms/step", "240.1 img/sec per GPU", and "500.00/s" without a noun.
  bool ReadUnit(const Figure& figure, const Words& label) {
    const Words words(figure.unit);
    if (words.empty()) return false;
    const std::size_t start = figure.unit.find_first_not_of(" (");
    if (start == string_view::npos || start > 2) return false;
    if (!IsLetter(figure.unit[start]) && figure.unit[start] != '/' &&
        static_cast<unsigned char>(figure.unit[start]) < 0x80) {
      return false;
    }
    // In "loss 6.1 tokens/s: 16381", the unit is the label of what comes.
    const std::size_t end = figure.unit.find_last_not_of(' ');
    if ((figure.unit[end] == ':' || figure.unit[end] == '=') && FindUnit(words, true)) return false;
    const std::optional<Unit> unit = FindUnit(words, false);
    if (unit && words.size() > 1 && IsNearFront(words)) {
      bar_counts_samples_ |= unit->measure != Measure::kStepSeconds && IsInBar(figure);
      AddSpeed(figure, *unit, label, &words);
      return true;
    }
    if (IsInBar(figure) && words.size() >= 2 && words[1] == "per" && !IsByteNoun(words[0])) {
      return ReadBar(figure, words, label);
    }
    if (words.size() >= 2 && words[0] == "per" && SecondsIn(words[1]) == 1.0 && start == 0 && label.empty()) {
      Unit samples;
      samples.measure = Measure::kSamplesPerSecond;
      AddSpeed(figure, samples, label, &words);
      return true;
    }
    if (label.empty() && words.size() == 1 && SecondsIn(words[0]) && !bare_time_) bare_time_ = figure;
    return false;
  }

  // Within the brackets of a tqdm bar: "[00:12<00:23, 28.1ba/s".
  bool IsInBar(const Figure& figure) const {
    const string_view before = text_.substr(0, figure.begin);
    const std::size_t open = before.rfind('[');
    return open != string_view::npos && before.find('<', open) != string_view::npos && before.ends_with(' ');
  }

  // A bar's unit can be any word: it names what the bar counts.
  bool ReadBar(const Figure& figure, const Words& words, const Words& label) {
    if (words.size() < 3 || SecondsIn(words[2]) != 1.0) return false;
    Unit unit;
    unit.is_inverse = true;
    AddSpeed(figure, unit, label, &words);
    return true;
  }

  // The unit must follow the number at once: in "3 loss, it/s" it belongs to what comes next.
  static bool IsNearFront(const Words& words) { return words[1] == "per" || (words.size() > 2 && words[2] == "per"); }

  static void TakeTimeUnit(const Figure& figure, Unit& unit) {
    const Words words(figure.unit);
    if (words.empty() || figure.unit.find_first_not_of(' ') > 1) return;
    if (const std::optional<double> seconds = SecondsIn(words[0])) {
      unit.scale = *seconds;
      unit.has_unit = true;
    }
  }

  void AddSpeed(const Figure& figure, const Unit& unit, const Words& label, const Words* behind) {
    const Trust trust = HasAverage(label) ? Trust::kAverage : Trust::kStated;
    // A bar may switch between "it/s" and "s/it", so the unit makes no difference.
    const std::uint32_t series = SeriesOf(label.last(), SeriesOf(label.last(1)));
    const bool is_step = unit.measure == Measure::kStepSeconds;
    const Scope scope = is_step && !unit.is_inverse ? Scope::kJob : ScopeOfRate(text_, unit.measure, label, behind);
    // Composer divides the steps of the job by its devices. No device makes such steps.
    if (is_step && (scope == Scope::kGpu || scope == Scope::kProcess)) return NoteFigure(figure);
    Reading& reading = AddReading(figure, unit, trust, series, is_step ? Scope::kJob : scope);
    if (unit.per == "step" && behind) keras_time_ = &reading;
  }

  Reading& AddReading(const Figure& figure, const Unit& unit, Trust trust, std::uint32_t series,
                      Scope scope = Scope::kJob) {
    NoteFigure(figure);
    Reading reading;
    reading.measure = unit.measure;
    reading.trust = trust;
    reading.scope = scope;
    reading.at = static_cast<std::uint32_t>(figure.begin);
    reading.has_unit = unit.has_unit;
    reading.series = series;
    reading.value = figure.value * unit.scale;
    reading.resolution = figure.resolution * unit.scale;
    if (unit.is_inverse) {
      reading.resolution /= reading.value * reading.value;
      reading.value = 1 / reading.value;
    }
    const auto is_same = [&](const Reading& r) {
      return r.measure == reading.measure && r.series == series && r.scope == scope;
    };
    const auto all = result_.all();
    const auto same = std::find_if(all.begin(), all.end(), is_same);
    if (same != all.end() && reading.trust < same->trust) *same = reading;        // "RunningAvg...=12.3, Curr...=12.5"
    if (same != all.end() || all.size() == LineReadings::kMost) return ignored_;  // "0.3 s/it (0.4 s/it)": the average.
    result_.Add(reading);
    return result_.all().back();
  }

  bool AddEpoch(const Figure& figure) {
    NoteFigure(figure);
    Reading reading;
    reading.measure = Measure::kEpoch;
    reading.value = figure.value;
    reading.resolution = figure.resolution;
    reading.total = figure.total;
    const auto all = result_.all();
    const bool has = std::any_of(all.begin(), all.end(), [](const Reading& r) { return r.measure == Measure::kEpoch; });
    if (!has) result_.Add(reading);
    return true;
  }

  void AddCounter() {
    Trust trust = Trust::kStated;
    std::optional<Figure> counter = counter_;
    if (!counter) {
      counter = plain_counter_ ? plain_counter_ : bracketed_counter_;
      trust = Trust::kWeak;
    }
    if (!counter) return;
    Reading reading;
    reading.trust = trust;
    reading.value = counter->value;
    reading.at = static_cast<std::uint32_t>(counter->begin);
    reading.resolution = 0.5;
    reading.total = counter->total;
    reading.series = SeriesOf(Words(counter->label).last());
    // PyTorch's MNIST example, and what was made of it, counts samples: "Train Epoch: 1 [640/60000 (1%)]".
    const bool is_bar_of_samples = bar_counts_samples_ && plain_counter_ && !counter_;
    if (text_.find("Train Epoch: ") != string_view::npos && trust == Trust::kWeak && counter->is_bracketed) {
      reading.measure = Measure::kSampleCount;
      reading.scope = IsOpenClip(text_) ? Scope::kJob : Scope::kProcess;  // "batch_idx * len(data)".
    } else if (is_bar_of_samples) {                                       // "640/60000 [00:05<05:00, 128.00img/s]"
      reading.measure = Measure::kSampleCount;
      reading.scope = Scope::kNotSaid;
    }
    result_.Add(reading);
    has_counter_ = true;
  }

  // "(135.21 ms | 12345 tok/s)": a time without a word, on a line with a counter and no better one.
  void AddBareTime() {
    if (!bare_time_ || !has_counter_) return;
    for (const Reading& reading : result_.all()) {
      if (reading.measure == Measure::kStepSeconds) return;
    }
    Unit unit;
    unit.scale = *SecondsIn(Words(bare_time_->unit)[0]);
    AddReading(*bare_time_, unit, Trust::kUnclear, SeriesOf("bare"));
  }

  // Before the last line of an epoch, Keras 2 prints no step time, only the remaining time at the average one.
  void AddRemainingTime() {
    const std::size_t at = text_.find(kEta);
    if (at == string_view::npos || !IsAtFront(plain_counter_, 4) || plain_counter_->value < 2) return;
    for (const Reading& reading : result_.all()) {
      if (reading.measure == Measure::kStepSeconds) return;
    }
    const double seconds = ReadDuration(text_.substr(at + kEta.size())) + 0.5;  // It is cut off, not rounded.
    const double steps = plain_counter_->total - plain_counter_->value;
    if (seconds < kShortestEta || steps <= 0) return;
    Reading reading;
    reading.measure = Measure::kStepSeconds;
    reading.trust = Trust::kAverage;
    reading.value = seconds / steps;
    reading.resolution = 0.5 / steps;
    reading.series = SeriesOf(kEta);
    reading.averaged_over = plain_counter_->value - 1;
    result_.Add(reading);
  }

  // A bar without a speed, as PyTorch Ignite draws it: "[30/60] 50%|#### [00:40<00:41]", or fastprogress:
  // "50% [30/60 00:40<00:41]". The elapsed time over the steps so far is an average.
  void AddElapsedTime() {
    if (!plain_counter_ || plain_counter_->value < 1 || bar_counts_samples_) return;
    for (const Reading& reading : result_.all()) {
      if (reading.measure == Measure::kStepSeconds) return;
    }
    const std::size_t less = text_.rfind('<');
    if (less == string_view::npos || less == 0 || text_.find(']', less) == string_view::npos) return;
    const std::size_t before = text_.find_last_of("[ ", less - 1);
    if (before == string_view::npos) return;
    const double seconds = ReadDuration(text_.substr(before + 1)) + 0.5;  // It is cut off, not rounded.
    if (seconds < kShortestEta) return;
    Reading reading;
    reading.measure = Measure::kStepSeconds;
    reading.trust = Trust::kAverage;
    reading.value = seconds / plain_counter_->value;
    reading.resolution = 0.5 / plain_counter_->value;
    reading.series = SeriesOf("elapsed");
    reading.averaged_over = plain_counter_->value;
    result_.Add(reading);
  }

  // A row of fastai's table of epochs: "[3, 0.1539, 0.135, '00:03']".
  void AddEpochRow() {
    if (!text_.starts_with('[') || !text_.ends_with("']") || !result_.empty()) return;
    Figure epoch;
    const std::size_t length = ReadNumber(text_.substr(1), epoch);
    const std::size_t quote = text_.rfind('\'', text_.size() - 3);
    if (length == 0 || !epoch.is_whole || !text_.substr(1 + length).starts_with(", ")) return;
    if (quote != string_view::npos && ReadDuration(text_.substr(quote + 1)) > 0) AddEpoch(epoch);
  }

  // "12/60 ...", and "step 12/60 ..." of PaddlePaddle.
  bool IsKerasLine() const { return IsAtFront(plain_counter_, 4) || IsPaddleLine(); }
  bool IsPaddleLine() const { return text_.starts_with("step ") && IsAtFront(counter_, 9); }
  static bool IsAtFront(const std::optional<Figure>& counter, std::size_t before) {
    return counter && counter->total > 0 && counter->begin < before;
  }

  void MarkAverages() {
    // Keras prints the average since the second step of the epoch, PaddlePaddle since the first. The last line of Keras
    // includes the validation.
    const bool is_keras = keras_time_ && keras_time_ != &ignored_ && IsKerasLine();
    if (is_keras) keras_time_->averaged_over = IsPaddleLine() ? counter_->value : plain_counter_->value - 1;
    const bool is_mixed = (is_keras && text_.find("val_") != string_view::npos) ||
                          text_.find("train_runtime") != string_view::npos;  // The summary of Hugging Face's Trainer.
    if (!is_mixed) return;
    for (Reading& reading : result_.all()) reading.trust = Trust::kMixed;
  }

  void NoteFigure(const Figure& figure) { first_figure_ = std::min(first_figure_, figure.begin); }

  string_view text_;
  Figures figures_;
  LineReadings result_;
  Reading ignored_;
  Reading* keras_time_ = nullptr;
  std::optional<Figure> counter_, plain_counter_, bracketed_counter_, bare_time_;
  std::size_t first_figure_ = string_view::npos;
  bool has_counter_ = false;
  bool bar_counts_samples_ = false;
};

}  // namespace

LineReadings ReadLine(string_view text) { return LineReader(text).Read(); }

}  // namespace grus
