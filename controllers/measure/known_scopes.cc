// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/known_scopes.h"

#include <array>

#include "controllers/measure/units.h"

namespace grus {
namespace {

using std::string_view;

struct KnownFormat {
  Measure measure;
  Scope scope;
  std::array<string_view, 2> has;  // Both are in the line.
};

constexpr KnownFormat kFormats[] = {
    // DeepSpeed's ThroughputTimer counts train_batch_size, which is of all processes.
    {Measure::kSamplesPerSecond, Scope::kJob, {"SamplesPerSec=", "MemAllocated="}},
    // timm multiplies by the number of processes.
    {Measure::kSamplesPerSecond, Scope::kJob, {"Train: ", " LR: "}},
    // The summary of Hugging Face's Trainer.
    {Measure::kSamplesPerSecond, Scope::kJob, {"train_samples_per_second", "train_runtime"}},
    // Composer logs a path; the rate of a device has one of its own.
    {Measure::kSamplesPerSecond, Scope::kJob, {"throughput/samples_per_sec", ""}},
    {Measure::kTokensPerSecond, Scope::kJob, {"throughput/tokens_per_sec", ""}},
    // torchtitan divides by the number of devices that hold one model.
    {Measure::kTokensPerSecond, Scope::kGpu, {"tps: ", "mfu: "}},
    // fairseq adds up the tokens of all workers.
    {Measure::kTokensPerSecond, Scope::kJob, {"wps", "ups"}},
    // llm.c: tokens of all ranks.
    {Measure::kTokensPerSecond, Scope::kJob, {" tok/s", " MFU | "}},
};

Scope KnownScope(string_view text, Measure measure) {
  const auto has = [&](string_view part) { return text.find(part) != string_view::npos; };
  for (const KnownFormat& format : kFormats) {
    if (format.measure == measure && has(format.has[0]) && has(format.has[1])) return format.scope;
  }
  return Scope::kNotSaid;
}

}  // namespace

Scope ScopeOfRate(string_view text, Measure measure, const Words& label, const Words* behind) {
  Scope scope = ScopeIn(label);
  if (behind && scope != Scope::kGpu && scope != Scope::kProcess) {
    if (const Scope said = ScopeIn(*behind); said != Scope::kNotSaid) scope = said;
  }
  return scope != Scope::kNotSaid ? scope : KnownScope(text, measure);
}

bool IsTrainersTotalBatch(string_view text, const Words& label) {
  return label.last() == "accumulation" && label.has("distributed") &&
         text.find("Total train batch size") != string_view::npos;
}

}  // namespace grus
