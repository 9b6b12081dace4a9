// SPDX-License-Identifier: Apache-2.0
// What a job is, and what holds it back, from its series: kind, cycles, peak memory, bottleneck, and a sentence that
// says so to its user.
//
// Only what the series show is said: where two answers are possible, or samples are missing, the answer is kUnknown,
// and there is no number. Pure; a week of minutes (10,080 samples) takes some milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controllers/telemetry/bottleneck.h"
#include "controllers/telemetry/job_series.h"

namespace grus {

enum class JobKind {
  kUnknown,
  kTraining,     // Its GPUs work in cycles.
  kInference,    // It serves: its GPUs follow a load that comes from outside, and its memory stays.
  kBatch,        // It ends, and works steadily without a cycle that could be seen. It may be a training.
  kInteractive,  // People work with it: bursts, and long pauses in which it holds its GPUs.
  kIdle,         // It does not use its GPUs.
};

struct Character {
  JobKind kind = JobKind::kUnknown;
  bool is_cyclic = false;
  std::optional<double> period_s;               // Of the longest cycle, as an epoch.
  std::optional<double> iteration_s;            // Of the cycle within it. None: there is none that the samples show.
  std::optional<double> predicted_peak_memory;  // Bytes, at the end of the job.
  Bottleneck bottleneck = Bottleneck::kUnknown;
  std::string sentence;
};

Character CharacterOf(const JobSeries& job);

std::string_view NameOf(JobKind kind);  // "Training"
std::string_view NameOf(Bottleneck bottleneck);

}  // namespace grus
