// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/run_record.h"

#include <algorithm>

#include "controllers/telemetry/run_usage.h"

namespace grus {
namespace {

using kube::CompactString;

bool IsNewCharacter(const WrittenRun& before, const std::optional<api::RunCharacter>& now) {
  if (!before.has_character || !now) return before.has_character != now.has_value();
  return before.kind != now->kind || before.bottleneck != now->bottleneck;
}

}  // namespace

WrittenRun::WrittenRun(const api::WorkloadRun& run)
    : gpu_seconds(run.gpu_seconds),
      gpus(run.gpus),
      is_over(run.end.has_value()),
      has_character(run.character.has_value()),
      usage(run.usage) {
  if (!run.character) return;
  kind = CompactString::Shared(run.character->kind);
  bottleneck = CompactString::Shared(run.character->bottleneck);
}

bool RunRecord::IsWorthWriting(const api::WorkloadRun& now) const {
  if (!written) return true;
  const std::int64_t more = now.gpu_seconds - written->gpu_seconds;
  return now.end.has_value() != written->is_over || now.gpus > written->gpus || IsNews(written->usage, now.usage) ||
         IsNewCharacter(*written, now.character) ||
         more > std::max<std::int64_t>(written->gpu_seconds / 10, 600L * now.gpus);
}

}  // namespace grus
