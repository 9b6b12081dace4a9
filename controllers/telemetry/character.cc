// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/character.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "controllers/telemetry/character_sentence.h"
#include "controllers/telemetry/cycle_search.h"
#include "controllers/telemetry/peak_memory.h"

namespace grus {
namespace {

constexpr std::size_t kFewest = 20;          // Samples.
constexpr double kShortest = 120;            // Seconds of them.
constexpr double kLeastSpread = 0.015;       // Of a share: exporters round to hundredths.
constexpr double kLeastMemorySpread = 0.01;  // Of the largest.
constexpr double kUnused = 0.05;             // GPUs below this do nothing.
constexpr double kServing = 0.9;             // Of the mean: a server has room for more load.
constexpr double kDay = 86400;               // Seconds. A load that follows the day follows people.
constexpr double kDayTolerance = 0.06;       //

struct Usage {  // Of the GPUs.
  double mean = 0;
  double spread = 0;         // Standard deviation.
  double idle = 0;           // Share of the samples.
  double longest_pause = 0;  // Seconds.
  int bursts = 0;            // Stretches of work between pauses.
};

// Since `from`, Unix time.
Usage UsageOf(const Series& gpu, double from) {
  Usage usage;
  double sum = 0, squares = 0, count = 0, idle = 0, pause = 0;
  bool was_idle = true;
  const double loading =
      std::clamp((from - static_cast<double>(gpu.start)) / gpu.step, 0.0, static_cast<double>(gpu.values.size()));
  for (const float value : std::span(gpu.values).subspan(static_cast<std::size_t>(loading))) {
    if (std::isfinite(value)) {
      const bool is_idle = value < kUnused;
      sum += value;
      squares += static_cast<double>(value) * value;
      ++count;
      if (is_idle) ++idle;
      if (was_idle && !is_idle) ++usage.bursts;
      was_idle = is_idle;
    }
    pause = was_idle ? pause + gpu.step : 0;
    usage.longest_pause = std::max(usage.longest_pause, pause);
  }
  usage.mean = sum / count;
  usage.spread = std::sqrt(std::max(0.0, squares / count - usage.mean * usage.mean));
  usage.idle = idle / count;
  return usage;
}

// The memory of a server stays as it is once its model is loaded. None: not known.
std::optional<bool> HoldsMemorySteadily(const Series& memory) {
  if (CountPresent(memory) < kFewest) return std::nullopt;
  const double low = *Quantile(memory, 0.2), high = *Max(memory);
  return high > 0 && high - low <= 0.03 * high;
}

JobKind KindOf(const JobSeries& job, const Cycles& cycles) {
  const Series& gpu = job.gpu_utilization;
  if (CountPresent(gpu) < kFewest || Duration(gpu) < kShortest) return JobKind::kUnknown;
  const Usage usage = UsageOf(gpu, cycles.from);
  if (usage.mean < kUnused / 2 && *Quantile(gpu, 0.98) < kUnused) return JobKind::kIdle;
  if (cycles.outer) {
    // A service that is asked at regular times pauses between them. Blips on a GPU that is not used are no training.
    const bool is_training = job.is_batch ? usage.mean >= kUnused : usage.idle < 0.5 && usage.mean >= 0.15;
    return is_training ? JobKind::kTraining : JobKind::kUnknown;
  }
  const double duration = Duration(gpu);
  const bool is_steady = usage.idle < 0.3 && usage.longest_pause < std::max(0.1 * duration, 60.0);
  if (job.is_batch) return is_steady ? JobKind::kBatch : JobKind::kUnknown;
  const std::optional<bool> is_memory_steady = HoldsMemorySteadily(job.gpu_memory);
  const bool pauses = usage.idle >= 0.5 && usage.longest_pause >= 300;
  if (pauses && usage.bursts >= 2 && is_memory_steady && !*is_memory_steady) return JobKind::kInteractive;
  const bool follows_load = usage.spread >= 0.03 && usage.mean < kServing;
  if (is_steady && follows_load && is_memory_steady && *is_memory_steady) return JobKind::kInference;
  return JobKind::kUnknown;
}

// In the series in which they show. Without any, `from` is when the GPUs began to work.
Cycles FindCyclesOf(const JobSeries& job) {
  const double most = Quantile(job.gpu_utilization, 0.98).value_or(0);
  if (most < kUnused) return {};
  const double most_memory = Max(job.gpu_memory).value_or(0);
  const Cycles of_gpu = FindCycles(job.gpu_utilization, kLeastSpread);
  Cycles cycles = of_gpu;
  if (!cycles.outer) cycles = FindCycles(job.memory_bandwidth, kLeastSpread);
  if (!cycles.outer && most_memory > 0) cycles = FindCycles(job.gpu_memory, kLeastMemorySpread * most_memory);
  const Cycles none{.from = of_gpu.from};
  if (!cycles.outer) return none;
  for (const double period : {kDay / 2, kDay, 7 * kDay}) {
    if (std::abs(cycles.outer->period_s / period - 1) < kDayTolerance) return none;
  }
  return cycles;
}

}  // namespace

Character CharacterOf(const JobSeries& job) {
  const Cycles cycles = FindCyclesOf(job);
  Character character;
  character.kind = KindOf(job, cycles);
  character.is_cyclic = cycles.outer.has_value();
  if (cycles.outer) {
    character.period_s = cycles.outer->period_s;
    if (cycles.inner) character.iteration_s = cycles.inner->period_s;
    character.predicted_peak_memory =
        PredictPeakMemory(job.gpu_memory, cycles.from, cycles.outer->period_s, job.gpu_memory_limit);
  }
  const BottleneckFinding finding = FindBottleneck(job, cycles.from);
  character.bottleneck = finding.bottleneck;
  character.sentence = SentenceOf(character, finding, job);
  return character;
}

std::string_view NameOf(JobKind kind) {
  switch (kind) {
    case JobKind::kTraining: return "Training";
    case JobKind::kInference: return "Inference";
    case JobKind::kBatch: return "Batch";
    case JobKind::kInteractive: return "Interactive";
    case JobKind::kIdle: return "Idle";
    case JobKind::kUnknown: break;
  }
  return "Unknown";
}

std::string_view NameOf(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kNone: return "None";
    case Bottleneck::kInput: return "Input";
    case Bottleneck::kCompute: return "Compute";
    case Bottleneck::kMemoryBandwidth: return "MemoryBandwidth";
    case Bottleneck::kCommunication: return "Communication";
    case Bottleneck::kUnknown: break;
  }
  return "Unknown";
}

}  // namespace grus
