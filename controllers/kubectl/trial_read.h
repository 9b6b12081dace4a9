// SPDX-License-Identifier: Apache-2.0
// kubectl grus trial read: what a TrialJob would read from a log, for whoever wants to know before it costs GPUs.
//
// The answer is a JSON object. `throughput`, its interval, `unit` and `stepMilliseconds` are those that a trial on so
// many GPUs would get, as in status.trials; without `throughput`, it would get none. `speeds` are all that were found,
// the best first, each with its scope (NotSaid, PerProcess, PerGpu, PerJob) and one of the lines it stands on.
// `message` says what to do where something is missing.
//
// Pure: text in, text out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "crds/types/trial_job.h"

namespace grus {

struct LogSetting {
  int gpus = 1;
  int batch_size = 0;  // 0: as the training has it.
  api::BatchSizeScope batch_scope = api::BatchSizeScope::kPerGpu;
  bool has_process_per_gpu = true;
  std::vector<api::LogPattern> patterns = {};
};

// `log` with or without timestamps in front of its lines. Error kInvalidArgument: a pattern is none.
kube::Result<std::string> ReadSpeeds(std::string_view log, const LogSetting& setting);

// "KIND[:SCOPE]=REGEX", as in measure.patterns. Error kInvalidArgument.
kube::Result<api::LogPattern> ParsePattern(const std::string& text);

}  // namespace grus
