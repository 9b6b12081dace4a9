// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_scope.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "controllers/measure/measured_work.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"

namespace grus {
namespace {

using api::Trial;

// A rate that is so much higher on more GPUs is not of one of them.
constexpr double kClearGrowth = 1.3;
// A step that is so much shorter on twice the GPUs does not hold the same batch for each of them.
constexpr double kClearlyShorter = 0.75;
constexpr char kWhoseIsIt[] = "it is not said whose the measured rate is: set measure.patterns with a scope";
// More than caches and the like explain.
constexpr double kTooFast = 1.4;

enum class Verdict { kOpen, kJob, kGpu };

struct Size {
  Trial* trial = nullptr;
  int gpus = 0;
  double rate = 0, step_seconds = 0;  // 0: not known.
  bool is_open = false;

  double samples() const { return rate * step_seconds; }
};

// The measured trials of one GPU type and batch size, ascending by GPUs.
using Series = std::vector<Size>;

std::map<std::pair<std::string, int>, Series> AllSeries(std::vector<Trial>& trials) {
  std::map<std::pair<std::string, int>, Series> all;
  for (Trial& trial : trials) {
    if (trial.phase != api::TrialPhase::kSucceeded || !trial.measured || trial.config.gpus <= 0) continue;
    const auto throughput = ThroughputOf(*trial.measured);
    if (!throughput) continue;
    all[{trial.config.gpu_type, trial.config.batch_size}].push_back(
        {&trial, trial.config.gpus, throughput->mean,
         ParseDecimal(trial.measured->step_milliseconds).value_or(0) / 1000, trial.measured->is_scope_unknown});
  }
  for (auto& [key, series] : all) {
    std::ranges::stable_sort(series, {}, &Size::gpus);
  }
  return all;
}

// Of the GPUs of `open`, how many its rate is of; 0: not known. `base` is a size whose scope is known.
int GpusOf(const api::TrialSpace& space, const Size& open, const Size& base) {
  const bool is_per_gpu = space.batch_size_scope == api::BatchSizeScope::kPerGpu;
  const double in_step = is_per_gpu ? base.samples() * open.gpus / base.gpus : base.samples();
  const int gpus = GpusBehind(open.samples(), in_step, open.gpus);
  if (gpus > 0) return gpus;
  return open.rate > kClearGrowth * base.rate ? open.gpus : 0;
}

// The verdict on all open sizes of a series; kOpen if they do not agree.
Verdict VerdictOn(const api::TrialSpace& space, const Series& series) {
  const Size& base = series.front();
  Verdict verdict = Verdict::kOpen;
  if (base.is_open) return verdict;
  for (const Size& size : series) {
    const int gpus = size.is_open ? GpusOf(space, size, base) : 0;
    if (gpus == 0) continue;
    const Verdict one = gpus > 1 ? Verdict::kJob : Verdict::kGpu;
    if (verdict != Verdict::kOpen && verdict != one) return Verdict::kOpen;
    verdict = one;
  }
  return verdict;
}

void Multiply(std::string& decimal, int factor) {
  if (const auto value = ParseDecimal(decimal)) decimal = Decimal(*value * factor);
}

void Settle(Trial& trial, Verdict verdict, api::ThroughputUnit unit) {
  api::Measurement& measured = *trial.measured;
  const int factor = verdict == Verdict::kGpu ? trial.config.gpus : 1;
  for (std::string* text : {&measured.throughput, &measured.throughput_low, &measured.throughput_high}) {
    Multiply(*text, factor);
  }
  measured.is_scope_unknown = false;
  trial.message = SpeedText(measured, unit);
}

// A step that becomes shorter with more GPUs, though each is said to have a batch of its own. Only where the throughput
// was made of the time of steps.
std::string ShorterSteps(const api::TrialSpace& space, const Series& series) {
  if (space.batch_size_scope != api::BatchSizeScope::kPerGpu) return {};
  const Size* before = nullptr;
  for (const Size& size : series) {
    if (!size.trial->measured->steps || size.step_seconds <= 0) continue;
    if (before != nullptr && size.gpus >= 2 * before->gpus &&
        size.step_seconds < kClearlyShorter * before->step_seconds) {
      return "a step takes " + before->trial->measured->step_milliseconds + " ms on " + ToText({"", before->gpus}) +
             " and " + size.trial->measured->step_milliseconds + " ms on " + std::to_string(size.gpus) +
             ", as if all GPUs shared one batch; if they do, set space.batchSizeScope: PerJob";
    }
    if (before == nullptr) before = &size;
  }
  return {};
}

// A speed that grows much faster than the GPUs: one of them does not become faster in a larger job, so that the rate
// was probably of more of them than its format says.
std::string FasterThanGpus(const Series& series, api::ThroughputUnit unit) {
  const Size& base = series.front();
  for (const Size& size : series) {
    if (size.gpus < 2 * base.gpus || size.rate * base.gpus < kTooFast * base.rate * size.gpus) continue;
    return "its speed grows faster than its GPUs: " + SpeedText(*base.trial->measured, unit) + " on " +
           ToText({"", base.gpus}) + " and " + SpeedText(*size.trial->measured, unit) + " on " +
           std::to_string(size.gpus) + "; if that is not so, say in measure.patterns what is printed, and whose it is";
  }
  return {};
}

}  // namespace

bool HasSpeedOfJob(const Trial& trial) {
  return trial.phase == api::TrialPhase::kSucceeded && trial.measured && !trial.measured->is_scope_unknown;
}

void SettleScopes(const api::TrialSpace& space, api::TrialJobStatus& status) {
  for (auto& [key, series] : AllSeries(status.trials)) {
    const Verdict verdict = VerdictOn(space, series);
    if (verdict == Verdict::kOpen) continue;
    for (Size& size : series) {
      if (size.is_open) Settle(*size.trial, verdict, status.throughput_unit);
    }
  }
}

std::optional<Doubt> FindDoubt(const api::TrialSpace& space, const api::TrialJobStatus& status) {
  std::vector<Trial> trials = status.trials;
  for (const auto& [key, series] : AllSeries(trials)) {
    std::string why;
    for (const Size& size : series) {
      if (!size.is_open || !why.empty()) continue;
      why = size.trial->message.empty() ? kWhoseIsIt : size.trial->message;
    }
    if (why.empty()) why = ShorterSteps(space, series);
    if (why.empty()) why = FasterThanGpus(series, status.throughput_unit);
    if (!why.empty()) return Doubt{key.first, key.second, why};
  }
  return std::nullopt;
}

}  // namespace grus
