// SPDX-License-Identifier: Apache-2.0
// The run of a job as it stands in the WorkloadProfile of its workload, as far as it decides about the next write.
// Pure.
#pragma once

#include <optional>

#include "clientlib/base/clock.h"
#include "clientlib/model/compact_string.h"
#include "controllers/policy/workload_fingerprint.h"
#include "crds/types/workload_usage.h"

namespace grus {

struct WrittenRun {
  explicit WrittenRun(const api::WorkloadRun& run);

  std::int64_t gpu_seconds = 0;
  std::int32_t gpus = 0;
  bool is_over = false, has_character = false;
  api::ResourceUsage usage = {};
  kube::CompactString kind = {}, bottleneck = {};  // Of its character.
};

struct RunRecord {
  WorkloadIdentity identity = {};
  bool was_resumed = false;
  std::optional<WrittenRun> written = {};
  int failures = 0;              // Of writes, one after another.
  kube::TimePoint not_before{};  // Of the next write.

  // Whether a reader would notice the difference.
  bool IsWorthWriting(const api::WorkloadRun& now) const;
};

}  // namespace grus
