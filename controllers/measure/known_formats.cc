// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/known_formats.h"

#include <algorithm>
#include <array>

#include "controllers/measure/units.h"

namespace grus {
namespace {

using std::string_view;

struct KnownFormat {
  Measure measure;
  Scope scope;
  std::array<string_view, 3> has;  // All are in the line.
};

constexpr KnownFormat kFormats[] = {
    // DeepSpeed's ThroughputTimer counts train_batch_size, which is of all processes.
    {Measure::kSamplesPerSecond, Scope::kJob, {"SamplesPerSec=", "MemAllocated=", "global_step="}},
    // timm multiplies by the number of processes.
    {Measure::kSamplesPerSecond, Scope::kJob, {"Train: ", " Time: ", " LR: "}},
    // The summary of Hugging Face's Trainer.
    {Measure::kSamplesPerSecond, Scope::kJob, {"train_samples_per_second", "train_runtime", ""}},
    // Composer logs a path; the rate of a device has one of its own.
    {Measure::kSamplesPerSecond, Scope::kJob, {"throughput/samples_per_sec", "", ""}},
    {Measure::kTokensPerSecond, Scope::kJob, {"throughput/tokens_per_sec", "", ""}},
    // torchtitan divides by the number of devices that hold one model.
    {Measure::kTokensPerSecond, Scope::kGpu, {"tps: ", "tflops: ", "memory: "}},
    // fairseq adds up the tokens of all workers.
    {Measure::kTokensPerSecond, Scope::kJob, {"wps", "ups", "wpb"}},
    // llm.c: tokens of all ranks.
    {Measure::kTokensPerSecond, Scope::kJob, {" tok/s", " MFU | ", "| norm "}},
};

Scope KnownScope(string_view text, Measure measure) {
  const auto has = [&](string_view part) { return text.find(part) != string_view::npos; };
  for (const KnownFormat& format : kFormats) {
    if (format.measure == measure && std::ranges::all_of(format.has, has)) return format.scope;
  }
  return Scope::kNotSaid;
}

}  // namespace

Scope ScopeOfRate(string_view text, Measure measure, const Words& label, const Words* behind) {
  // Behind the unit, the next field may begin: "128 img/s total_loss: 6.9".
  const Scope holder = behind ? HolderIn(*behind) : Scope::kNotSaid;
  const Scope scope = holder != Scope::kNotSaid ? holder : ScopeInLabel(label);
  return scope != Scope::kNotSaid ? scope : KnownScope(text, measure);
}

bool IsEvent(string_view text) { return text.starts_with(":::MLL") && text.find("throughput") == string_view::npos; }
bool HasStepBehindSlash(string_view text) { return text.find(" TRAIN Batch ") != string_view::npos; }
bool IsOpenClip(string_view text) { return text.find("Data (t)") != string_view::npos; }
bool IsIterationLoading(string_view text) { return text.find(" forward_time=") != string_view::npos; }

bool IsTrainersTotalBatch(string_view text, const Words& label) {
  return label.last() == "accumulation" && label.has("distributed") &&
         text.find("Total train batch size") != string_view::npos;
}

}  // namespace grus
